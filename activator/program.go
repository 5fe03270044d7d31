package activator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"

	"github.com/pgsbroker/sbroker/sbroker"
)

// ProgramOptions configures HandleProgram.
type ProgramOptions struct {
	// Command to run. It finds the queue's name in SBROKER_QUEUE; its standard input is a pipe that ends when the
	// activator does, and what it writes to standard output and error goes to the log.
	Command Command
	// MaxQueueReaders is how many copies may run at the same time, over all activators of the database: see
	// HandlerOptions.
	MaxQueueReaders int
	// Timeout after which a program is killed; 0 is none.
	Timeout time.Duration
}

// Validate reports what is missing or out of range.
func (o ProgramOptions) Validate() error {
	if err := o.Command.validate(); err != nil {
		return err
	}
	return HandlerOptions{MaxQueueReaders: o.MaxQueueReaders, Timeout: o.Timeout}.validate()
}

// HandleProgram registers a program for a queue, as Handle does a handler: external activation. It is started
// when there is something to receive, connects and receives by itself, and ends when it finds nothing more; it is
// started again while there is something. When Run is asked to end, the program gets SIGTERM, to finish what it is
// doing, and SIGKILL when Config.ShutdownTimeout has passed; with all it has started, for it leads a process group.
//
// A program that fails, or that receives nothing although something is there, is started again after 0.1 s, doubling
// to 30 s.
func (a *Activator) HandleProgram(queue sbroker.QueueName, o ProgramOptions) {
	a.register(queue, o.Validate(), &registration{
		program: &o, options: HandlerOptions{MaxQueueReaders: o.MaxQueueReaders},
	})
}

// watchable lets a wait on the connection be interrupted without asking the server.
func watchable(config *pgx.ConnConfig) {
	config.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.DeadlineContextWatcherHandler{Conn: conn.Conn()}
	}
}

// runProgram runs the program once, while the session holds a reader slot: it is the limit's witness, and the program
// does not outlive it.
func (s *sqlSession) runProgram(ctx context.Context, slots int, found func()) (outcome, error) {
	callCtx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if out, err := s.prepare(callCtx, s.conn, slots, found); out != worked || err != nil {
		return out, errors.Join(err, s.resetUnless(err))
	}
	cancel()
	out, err := s.observe(ctx, func() error { return s.supervise(ctx) })
	if s.a.starting.Err() != nil {
		return full, nil // it was asked to end; close resets the session
	}
	return out, errors.Join(err, s.resetUnless(err))
}

// supervise runs the program to its end.
func (s *sqlSession) supervise(ctx context.Context) error {
	p, err := startProcess(s.program.Command, map[string]string{"SBROKER_QUEUE": string(s.name)}, func(p *process, r io.Reader) {
		logLines(r, s.program.Command.logger().With("pid", p.pid), "stdout")
	})
	if err != nil {
		return err
	}
	watchCtx, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	var (
		lost    = make(chan struct{})
		lostErr error // nil when it was stopped; not before lost is closed
	)
	go func() {
		defer close(lost)
		// Nothing ever comes: it is how the end of the connection, and of the slot, is noticed at once.
		for watchCtx.Err() == nil && lostErr == nil {
			if _, err := s.conn.WaitForNotification(watchCtx); watchCtx.Err() == nil {
				lostErr = err
			}
		}
	}()
	var timeout <-chan time.Time
	if s.program.Timeout > 0 {
		timer := time.NewTimer(s.program.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	stopping := s.a.starting.Done()
	for running := true; running; {
		select {
		case <-stopping:
			p.terminate()
			stopping = nil
			continue
		case <-p.done:
		case <-lost:
		case <-ctx.Done():
			err = ctx.Err()
		case <-timeout:
			err = fmt.Errorf("killed after the timeout of %v", s.program.Timeout)
		}
		running = false
	}
	p.kill()
	<-p.done
	stopWatching()
	<-lost
	switch {
	case lostErr != nil:
		return fmt.Errorf("the connection that holds the reader slot is lost: %w", lostErr)
	case err != nil:
		return err
	}
	return p.err
}
