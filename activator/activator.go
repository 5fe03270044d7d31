package activator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/nearest"
	"github.com/pgsbroker/sbroker/sbroker"
)

// Activator runs the handlers of queues while there is something for them to receive. Any number of
// activators may work on one database.
type Activator struct {
	cfg      Config
	log      *slog.Logger
	handlers map[sbroker.QueueName]*registration
	misuse   error // of Handle
	ran      atomic.Bool
	deaf     bool // notifications are dropped, for tests

	direct      *pgx.ConnConfig
	isSuperuser bool
	control     *pgxpool.Pool // for the activator's own calls
	pool        *pgxpool.Pool // for Go handlers
	moves       atomic.Int64  // how often a server was left for another one

	listener  *listener
	scheduler *scheduler
	forwarder *forwarder
	reporter  *reporter
	health    health

	starting context.Context // of Run: ends when no reader may start any more
	working  context.Context // of handlers: ends when the shutdown timeout has passed
	readers  sync.WaitGroup
	excusing sync.Mutex

	mu         sync.Mutex
	monitors   map[int32]*monitor
	list       []*monitor                    // the same, by id; replaced, never changed
	failing    map[sbroker.GroupID]time.Time // groups that this activator has backed off, and when
	complained map[sbroker.QueueName]string  // what was last logged about a queue that cannot be served
	outageAt   time.Time                     // when an outage was last logged; zero: there is none
	isHearing  bool                          // there is a connection that hears notifications
}

type registration struct {
	handler Handler
	program *ProgramOptions // instead of handler
	options HandlerOptions
}

// New returns an Activator. It does not connect yet.
func New(cfg Config) (*Activator, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	a := &Activator{
		cfg: cfg, log: cfg.Logger,
		handlers: map[sbroker.QueueName]*registration{}, monitors: map[int32]*monitor{},
		failing: map[sbroker.GroupID]time.Time{}, complained: map[sbroker.QueueName]string{},
	}
	a.listener = &listener{a: a}
	a.scheduler = &scheduler{a: a, bell: newBell()}
	a.forwarder = &forwarder{a: a, bell: newBell()}
	a.reporter = &reporter{a: a, bell: newBell()}
	return a, nil
}

// Handle registers a handler for a queue, to be called before Run; one options value at most. The queue need not
// exist yet. While the queue also has an activation procedure, this activator runs only the handler. Registering
// twice, too late, or with options out of range is an error of Run.
func (a *Activator) Handle(queue sbroker.QueueName, h Handler, options ...HandlerOptions) {
	var o HandlerOptions
	if len(options) > 0 {
		o = options[0]
	}
	err := o.validate()
	external, isExternal := h.(*ExternalHandler)
	switch {
	case err != nil:
	case h == nil:
		err = errors.New("the handler is nil")
	case len(options) > 1:
		err = errors.New("more than one HandlerOptions")
	case isExternal:
		err = external.transport.validate()
	}
	o.Batch = cmp.Or(o.Batch, defaultBatch)
	o.Timeout = cmp.Or(o.Timeout, a.cfg.HandlerTimeout)
	a.register(queue, err, &registration{handler: h, options: o})
}

// register takes a registration in, unless something is wrong with it.
func (a *Activator) register(queue sbroker.QueueName, err error, r *registration) {
	switch {
	case err != nil:
	case queue == "":
		err = errors.New("the queue has no name")
	case a.handlers[queue] != nil:
		err = errors.New("the queue has a handler already")
	case a.ran.Load():
		err = errors.New("the activator runs already")
	}
	if err != nil {
		a.misuse = errors.Join(a.misuse, fmt.Errorf("activator: Handle(%q): %w", queue, err))
		return
	}
	a.handlers[queue] = r
}

// HandleFunc registers a function, as Handle does.
func (a *Activator) HandleFunc(queue sbroker.QueueName, h func(ctx context.Context, b *Batch) error, options ...HandlerOptions) {
	if h == nil {
		a.Handle(queue, nil, options...)
		return
	}
	a.Handle(queue, HandlerFunc(h), options...)
}

// Run connects and works until ctx ends. Then it starts nothing more, lets running handlers finish for
// up to Config.ShutdownTimeout, rolls back the rest, and returns nil when every goroutine has ended; an error if a
// handler still runs 10 s after its context has ended. It returns an
// error that wraps ErrCannotStart when it could not begin; once it has begun, it waits out whatever
// happens to the database. It runs once.
func (a *Activator) Run(ctx context.Context) error {
	if a.misuse != nil {
		return fmt.Errorf("%w: %w", ErrCannotStart, a.misuse)
	}
	if a.ran.Swap(true) {
		return fmt.Errorf("%w: it has run before", ErrCannotStart)
	}
	if err := a.connect(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	// Handlers outlive the request to end.
	working, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	a.starting, a.working = ctx, working
	a.health.enter(Working)
	defer a.health.enter(Stopped)

	duties := []func(context.Context){a.scheduler.run, a.forwarder.run, a.forwarder.maintain, a.reporter.run}
	if a.cfg.Pooler {
		a.forwarder.leads.Store(true) // who cannot tell whether another one does
	} else {
		duties = append(duties, a.listener.run)
	}
	var loops sync.WaitGroup
	for _, loop := range duties {
		loops.Go(func() { loop(ctx) })
	}
	a.log.Info("activator started", "name", a.cfg.Name)
	<-ctx.Done()
	a.health.enter(Stopping)
	err := a.drain(abort)
	loops.Wait()
	for _, m := range a.allMonitors() {
		m.close()
	}
	a.closeHandlers()
	a.farewell(ctx)
	if err != nil {
		return err // closing the pool would wait for that handler
	}
	a.pool.Close()
	a.control.Close()
	a.log.Info("activator stopped", "name", a.cfg.Name)
	return nil
}

// drain waits for the readers, at first patiently.
func (a *Activator) drain(abort context.CancelFunc) error {
	for _, m := range a.allMonitors() {
		m.flagState() // whoever was starting a reader under the mutex has done so
	}
	a.log.Info(fmt.Sprintf("stopping, waiting for %d readers", a.readerCount()), "name", a.cfg.Name)
	done := make(chan struct{})
	go func() {
		a.readers.Wait()
		close(done)
	}()
	if ended(done, a.cfg.ShutdownTimeout) {
		return nil
	}
	a.log.Warn("shutdown timeout: running handlers are rolled back", "shutdown_timeout", a.cfg.ShutdownTimeout)
	a.excuseReaders()
	abort()
	if ended(done, 2*cleanupTimeout) {
		return nil
	}
	return errors.New("activator: a handler does not heed the end of its context")
}

// excuseReaders sees to it that being rolled back now does not count as a handler's failure. It has to come before:
// afterwards nobody can tell which transactions those were. It goes without, when the database does not answer.
func (a *Activator) excuseReaders() {
	batch := &pgx.Batch{}
	for _, m := range a.allMonitors() {
		for _, pid := range m.pids() {
			batch.Queue(`select sb.excuse_reader(queue_id => @queue_id::integer, pid => @pid::integer)`,
				pgx.StrictNamedArgs{"queue_id": m.id, "pid": pid})
		}
	}
	ctx, cancel := context.WithTimeout(a.working, time.Second)
	defer cancel()
	if err := a.control.SendBatch(ctx, batch).Close(); err != nil {
		a.log.Warn("what is rolled back counts as failed", "error", err)
	}
}

// closeHandlers closes the external handlers, all at the same time.
func (a *Activator) closeHandlers() {
	var group sync.WaitGroup
	for queue, r := range a.handlers {
		if h, ok := r.handler.(*ExternalHandler); ok {
			group.Go(func() {
				if err := h.Close(); err != nil {
					a.log.Warn("handler not closed", "queue", queue, "error", err)
				}
			})
		}
	}
	group.Wait()
}

func ended(done <-chan struct{}, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// farewell takes this activator's tasks out of the views.
func (a *Activator) farewell(ctx context.Context) {
	ctx, cancel := detach(ctx)
	defer cancel()
	_, monitors, _ := a.reporter.gather(time.Now())
	if err := a.reporter.send(ctx, []task{}, monitors); err != nil {
		a.log.Debug("report failed", "error", err)
	}
}

// mayStart reports whether readers may start, and go on.
func (a *Activator) mayStart() bool { return a.starting.Err() == nil }

// readerCount returns how many readers run.
func (a *Activator) readerCount() (n int) {
	for _, m := range a.allMonitors() {
		m.mu.Lock()
		n += len(m.running)
		m.mu.Unlock()
	}
	return n
}

// monitor returns the monitor of a queue, nil when there is none.
func (a *Activator) monitor(id int32) *monitor {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.monitors[id]
}

// allMonitors returns the monitors by id.
func (a *Activator) allMonitors() []*monitor {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.list
}

// apply makes the monitors follow the plan, and reports whether a queue has more readers than it should.
func (a *Activator) apply(plan []plannedQueue) (surplus bool) {
	planned := make(map[int32]bool, len(plan))
	changed := false
	for _, p := range plan {
		planned[p.ID] = true
		surplus = surplus || p.Surplus > 0
		m := a.monitor(p.ID)
		if m == nil {
			m = &monitor{a: a, id: p.ID, name: p.Name, log: a.log.With("queue", p.Name), running: map[*reader]struct{}{}}
			a.mu.Lock()
			a.monitors[p.ID] = m
			a.mu.Unlock()
			changed = true
		}
		option := 0
		if h := a.handlers[p.Name]; h != nil {
			option = h.options.MaxQueueReaders
		}
		if retired := m.configure(p, a.runnerFor(m, p), option); retired != nil {
			retired.close()
		}
		m.logSwitch(p.IsOn)
	}
	for _, m := range a.allMonitors() {
		if !planned[m.id] {
			changed = true
			if m.close() {
				surplus = true // shown until they have ended
				continue
			}
			a.mu.Lock()
			delete(a.monitors, m.id)
			a.mu.Unlock()
		}
	}
	if changed {
		a.mu.Lock()
		a.list = slices.SortedFunc(maps.Values(a.monitors), func(x, y *monitor) int { return cmp.Compare(x.id, y.id) })
		a.mu.Unlock()
		a.listener.poke()
	}
	a.complainMissing(plan)
	return surplus
}

// runnerFor returns what is to serve the queue: the runner it has if that is still right, nil when it cannot be served.
func (a *Activator) runnerFor(m *monitor, p plannedQueue) runner {
	current := m.currentRunner()
	h := a.handlers[p.Name]
	if a.cfg.Pooler && (h == nil || h.program != nil) {
		a.complain(p.Name, "a pooler gives no session, which activation procedures and programs need: they are not run here")
		return nil
	}
	if h != nil {
		if p.Procedure == "" {
			a.complain(p.Name, "")
		} else {
			a.complain(p.Name, "the queue's activation procedure is not run here: there is a handler", "procedure", p.Procedure)
		}
		if current != nil {
			return current
		}
		if h.program != nil {
			return &sqlRunner{a: a, queue: p.ID, name: p.Name, procedure: "program " + h.program.Command.Args[0], program: h.program}
		}
		return &goRunner{a: a, queue: p.ID, name: p.Name, handler: h.handler, options: h.options}
	}
	switch {
	case a.isSuperuser:
		// A procedure can always RESET ROLE.
		a.complain(p.Name, "a superuser runs no activation procedures: log in as an admin of sb that is a member of the execute_as roles",
			"procedure", p.Procedure)
		return nil
	case p.Statement == "":
		a.complain(p.Name, "the activation procedure does not exist", "procedure", p.Procedure)
		return nil
	case !p.MayBecome:
		a.complain(p.Name, "the activation procedure is not run: its role does not exist, or the activator is no member of it and may not SET ROLE to it",
			"procedure", p.Procedure, "execute_as", p.ExecuteAs)
		return nil
	}
	a.complain(p.Name, "")
	if r, ok := current.(*sqlRunner); ok && r.serves(p) {
		return r
	}
	return &sqlRunner{
		a: a, queue: p.ID, name: p.Name, procedure: p.Procedure, statement: p.Statement, isProcedure: p.IsProcedure,
		executeAs: p.ExecuteAs, log: a.log.With("queue", p.Name, "procedure", p.Procedure),
	}
}

// complain logs once what is wrong with a queue; with an empty text nothing is.
func (a *Activator) complain(queue sbroker.QueueName, text string, args ...any) {
	a.mu.Lock()
	isNew := a.complained[queue] != text
	a.complained[queue] = text
	a.mu.Unlock()
	if isNew && text != "" {
		a.log.Warn(text, append([]any{"queue", queue}, args...)...)
	}
}

// complainMissing logs which queues have handlers but do not exist.
func (a *Activator) complainMissing(plan []plannedQueue) {
	for name := range a.handlers {
		exists := slices.ContainsFunc(plan, func(p plannedQueue) bool { return p.Name == name })
		const missing = "the queue of a handler does not exist"
		a.mu.Lock()
		isKnown := a.complained[name] == missing
		a.mu.Unlock()
		if !exists && !isKnown {
			a.complain(name, missing, "nearest", a.nearestQueue(name))
		}
	}
}

// nearestQueue returns the queue whose name is most like a name; empty when there is none to be seen.
func (a *Activator) nearestQueue(name sbroker.QueueName) string {
	ctx, cancel := context.WithTimeout(a.starting, callTimeout)
	defer cancel()
	rows, err := a.control.Query(ctx, `select q.name from sb.service_queues as q`)
	if err != nil {
		return ""
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return ""
	}
	return nearest.Of(string(name), names)
}

// outagePause is how often an outage is logged.
const outagePause = time.Minute

// outage says that the database cannot be reached: in a long outage all loops find that out all the time, so it is
// logged now and then.
func (a *Activator) outage(err error) {
	a.mu.Lock()
	isDue := a.outageAt.IsZero() || time.Since(a.outageAt) >= outagePause
	if isDue {
		a.outageAt = time.Now()
	}
	a.mu.Unlock()
	if isDue {
		a.log.Warn("database trouble, retrying", "error", err)
	}
}

// recovered says that it has answered.
func (a *Activator) recovered() {
	a.mu.Lock()
	was := !a.outageAt.IsZero() && (a.isHearing || a.cfg.Pooler)
	if was {
		a.outageAt = time.Time{}
	}
	a.mu.Unlock()
	if was {
		a.log.Info("database is back")
	}
}
