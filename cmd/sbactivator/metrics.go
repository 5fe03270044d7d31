package main

import (
	"context"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/migrations"
	"github.com/pgsbroker/sbroker/sbroker"
)

// metrics counts what the activator says as its Observer, and adds its status and the database's figures at each
// scrape. docs/operations.md has a table of them. The only label without bound is the queue, and the series of a queue
// end with it.
type metrics struct {
	registry *prometheus.Registry

	messages, batches, failures, unreceived, backOffs, disabled, notifications *prometheus.CounterVec
	waited, took                                                               *prometheus.HistogramVec
	polls                                                                      *prometheus.CounterVec
	reconnects, delivered                                                      prometheus.Counter

	mu        sync.RWMutex
	queues    map[sbroker.QueueName]*queueMetrics
	connected bool // has been listening before
}

// queueMetrics are the series of one queue, all there from the start so that rates see the first event.
type queueMetrics struct {
	messages, batches, failed, retried, unreceived, restingGroups, rests, disabled, notifications prometheus.Counter
	waited, took                                                                                  prometheus.Observer
}

func newMetrics() *metrics {
	m := &metrics{registry: prometheus.NewRegistry(), queues: map[sbroker.QueueName]*queueMetrics{}}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
		m.registry.MustRegister(v)
		return v
	}
	histogram := func(name, help string, buckets ...float64) *prometheus.HistogramVec {
		v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, []string{"queue"})
		m.registry.MustRegister(v)
		return v
	}
	m.messages = counter("sbactivator_messages_handled_total",
		"Messages handled and committed; not those of activation procedures, which receive by themselves.", "queue")
	m.batches = counter("sbactivator_batches_handled_total",
		"Calls of a handler or activation procedure that have committed.", "queue")
	m.failures = counter("sbactivator_batches_failed_total",
		"Calls of a handler or activation procedure that were rolled back; retryable are deadlocks and the like, which are nobody's fault.",
		"queue", "retryable")
	m.unreceived = counter("sbactivator_not_received_total",
		"Times that an activation procedure or program has ended without receiving what was there.", "queue")
	m.waited = histogram("sbactivator_message_wait_seconds",
		"From the send of the first message of a batch to the start of its handler.",
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800)
	m.took = histogram("sbactivator_handler_seconds", "One call of a handler or activation procedure, commit included.",
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60)
	m.backOffs = counter("sbactivator_back_offs_total",
		"Times that a conversation group (scope group), or a queue after its activation procedure failed (scope queue), was left alone for a while.",
		"queue", "scope")
	m.disabled = counter("sbactivator_queue_disabled_total", "Times that poison message handling has switched the queue off.", "queue")
	m.notifications = counter("sbactivator_notifications_total",
		"Notifications heard; those for operators are of no queue.", "queue")
	m.polls = counter("sbactivator_polls_total",
		"Looks at queues without a notification: at all of them (reason interval), or where something was expected.", "reason")
	m.reconnects = counter("sbactivator_listener_reconnects_total",
		"Times that the connection that hears notifications was made again.").WithLabelValues()
	m.delivered = counter("sbactivator_messages_delivered_total",
		"Messages moved on from the transmission queue by this activator.").WithLabelValues()
	for _, reason := range []string{"interval", "expected"} {
		m.polls.WithLabelValues(reason)
	}

	version, _ := buildVersion()
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "sbactivator_info", Help: "1; version is the program's, schema the version of sb that it needs.",
		ConstLabels: prometheus.Labels{"version": version, "schema": strconv.FormatUint(uint64(migrations.Latest()), 10)},
	})
	info.Set(1)
	m.registry.MustRegister(info, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// label makes a value of a name. In a database with encoding SQL_ASCII a name may be any bytes.
func label(queue sbroker.QueueName) string { return strings.ToValidUTF8(string(queue), "\uFFFD") }

// queue returns the series of a queue.
func (m *metrics) queue(name sbroker.QueueName) *queueMetrics {
	m.mu.RLock()
	q := m.queues[name]
	m.mu.RUnlock()
	if q != nil {
		return q
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if q = m.queues[name]; q == nil {
		l := label(name)
		q = &queueMetrics{
			messages: m.messages.WithLabelValues(l), batches: m.batches.WithLabelValues(l),
			failed: m.failures.WithLabelValues(l, "false"), retried: m.failures.WithLabelValues(l, "true"),
			unreceived: m.unreceived.WithLabelValues(l), restingGroups: m.backOffs.WithLabelValues(l, "group"), rests: m.backOffs.WithLabelValues(l, "queue"),
			disabled: m.disabled.WithLabelValues(l), notifications: m.notifications.WithLabelValues(l),
			waited: m.waited.WithLabelValues(l), took: m.took.WithLabelValues(l),
		}
		m.queues[name] = q
	}
	return q
}

// retain ends the series of queues that are not there any more.
func (m *metrics) retain(exists map[sbroker.QueueName]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.queues {
		if exists[name] {
			continue
		}
		delete(m.queues, name)
		gone := prometheus.Labels{"queue": label(name)}
		for _, v := range []*prometheus.CounterVec{m.messages, m.batches, m.failures, m.unreceived, m.backOffs, m.disabled, m.notifications} {
			v.DeletePartialMatch(gone)
		}
		m.waited.DeletePartialMatch(gone)
		m.took.DeletePartialMatch(gone)
	}
}

// Observe implements activator.Observer.
func (m *metrics) Observe(e activator.Event) {
	switch e := e.(type) {
	case activator.HandlerCalled:
		q := m.queue(e.Queue)
		q.took.Observe(e.Took.Seconds())
		if e.Messages > 0 || e.Waited > 0 {
			q.waited.Observe(e.Waited.Seconds())
		}
		switch {
		case e.Err == nil:
			q.batches.Inc()
			q.messages.Add(float64(e.Messages))
		case e.Retryable:
			q.retried.Inc()
		default:
			q.failed.Inc()
		}
	case activator.BackedOff:
		if e.Group.IsZero() {
			m.queue(e.Queue).rests.Inc()
		} else {
			m.queue(e.Queue).restingGroups.Inc()
		}
	case activator.NotReceived:
		m.queue(e.Queue).unreceived.Inc()
	case activator.QueueDisabled:
		m.queue(e.Queue).disabled.Inc()
	case activator.Notified:
		if e.Queue == "" {
			m.notifications.WithLabelValues("").Inc()
		} else {
			m.queue(e.Queue).notifications.Inc()
		}
	case activator.Polled:
		if e.Sweep {
			m.polls.WithLabelValues("interval").Inc()
		} else {
			m.polls.WithLabelValues("expected").Inc()
		}
	case activator.Listening:
		m.mu.Lock()
		defer m.mu.Unlock()
		if e.Up && m.connected {
			m.reconnects.Inc()
		}
		m.connected = m.connected || e.Up
	case activator.Delivered:
		m.delivered.Add(float64(e.Messages))
	}
}

// handler answers a scrape with what has been counted, what a is doing and what is to be seen in the database, as far as
// it can be had. It is made once.
func (m *metrics) handler(a *activator.Activator, f *cached[figures], errorLog *log.Logger) http.Handler {
	m.registry.MustRegister(&watcher{metrics: m, a: a, figures: f})
	all := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog: errorLog, ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: 10,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, q := range a.Status().Queues {
			m.queue(q.Queue) // has series before anything has happened
		}
		all.ServeHTTP(w, r)
	})
}

// figures is what a scrape asks of the database.
type figures struct {
	Queues            []queueFigures
	Transmission      float64
	Endpoints         *float64 // nil: not known yet
	XminAge           float64
	OldestTransaction *float64 // nil: the role may not see it
}

// queueFigures is a row of sb.queue_statistics.
type queueFigures struct {
	Queue         sbroker.QueueName
	IsOn          bool
	Ready         float64
	OldestAge     float64
	BlockedGroups float64
	Rollbacks     float64
	Transmission  float64
}

// gatherFigures asks in one round trip, and nothing that takes long however much waits.
func gatherFigures(ctx context.Context, pool *pgxpool.Pool) (f figures, err error) {
	batch := &pgx.Batch{}
	batch.Queue(`
select s.queue_name, s.is_on, s.ready_messages, coalesce(extract(epoch from s.oldest_ready_age), 0)::double precision,
       s.blocked_groups, s.consecutive_rollbacks, s.transmission_backlog
from sb.queue_statistics as s`).Query(func(rows pgx.Rows) (err error) {
		f.Queues, err = pgx.CollectRows(rows, pgx.RowToStructByPos[queueFigures])
		return err
	})
	// The view looks for the status of each row, and for the state of each endpoint. So only a few are counted, and
	// the rest is estimated as the planner does it: by the size of the table now and its density at the last vacuum.
	batch.Queue(`
with estimates as (
  select c.relname, c.reltuples::double precision / nullif(c.relpages, 0)
         * pg_catalog.pg_relation_size(c.oid) / pg_catalog.current_setting('block_size')::integer as n
  from pg_catalog.pg_class as c
  join pg_catalog.pg_namespace as s on s.oid = c.relnamespace
  where s.nspname = 'sb_internal' and c.reltuples >= 0)
select case when t.n < 1000 then t.n
            else greatest(t.n, (select e.n from estimates as e where e.relname = 'transmission'))
       end,
       (select round(e.n) from estimates as e where e.relname = 'endpoint')
from (select count(*)::double precision as n from (select from sb.transmission_queue limit 1000) as t) as t`,
	).QueryRow(func(row pgx.Row) error { return row.Scan(&f.Transmission, &f.Endpoints) })
	// What holds back vacuum: everybody may see snapshots, but not since when they are held.
	batch.Queue(`
with holders as (
  select pg_catalog.age(coalesce(a.backend_xmin, a.backend_xid)) as xmin_age,
         pg_catalog.clock_timestamp() - a.xact_start as time
  from pg_catalog.pg_stat_activity as a
  where coalesce(a.backend_xmin, a.backend_xid) is not null
    and a.pid <> pg_catalog.pg_backend_pid()
    and (a.datname = pg_catalog.current_database() or a.datname is null)
    and a.backend_type is distinct from 'autovacuum worker'
  union all
  select pg_catalog.age(p.transaction), pg_catalog.clock_timestamp() - p.prepared
  from pg_catalog.pg_prepared_xacts as p
  where p.database = pg_catalog.current_database()
  union all
  select pg_catalog.age(s.xmin), null
  from pg_catalog.pg_replication_slots as s
  where s.xmin is not null)
select coalesce(max(h.xmin_age), 0),
       case when pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'usage')
            then coalesce(extract(epoch from max(h.time)), 0)::double precision
       end
from holders as h`).QueryRow(func(row pgx.Row) error { return row.Scan(&f.XminAge, &f.OldestTransaction) })
	err = pool.SendBatch(ctx, batch).Close()
	return f, err
}

// watcher is the part of the metrics that is asked for at a scrape.
type watcher struct {
	*metrics
	a       *activator.Activator
	figures *cached[figures]
}

func gauge(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("sbactivator_"+name, help, labels, nil)
}

var (
	readersDesc = gauge("readers", "Readers that run in this process.", "queue")
	limitDesc   = gauge("readers_limit", "Readers that may run, over all activators.", "queue")
	servedDesc  = gauge("queue_served", "1 when this activator can read the queue, 0 when not: its log says why.", "queue")
	upDesc      = gauge("listener_up", "1 while the connection that hears notifications is there.")
	lookedDesc  = gauge("last_poll_timestamp_seconds", "When the activator last got an answer about its queues.")

	databaseDesc     = gauge("database_up", "1 when the database has answered; when it has not, all that follows from it is missing.")
	onDesc           = gauge("queue_on", "1 for a queue that is on, 0 for one that was stopped, by hand or by poison message handling.", "queue")
	readyDesc        = gauge("queue_ready_messages", "Messages in the queue; from 10,000 on an estimate.", "queue")
	oldestDesc       = gauge("queue_oldest_message_age_seconds", "Age of the oldest message in the queue; 0 when it is empty.", "queue")
	blockedDesc      = gauge("queue_blocked_groups", "Conversation groups that are left alone after a failure.", "queue")
	rollbacksDesc    = gauge("queue_consecutive_rollbacks", "Receiving transactions rolled back in a row: at the poison limit the queue is stopped.", "queue")
	backlogDesc      = gauge("queue_transmission_backlog", "Messages in the transmission queue that are for the queue's services, counted up to 10,000.", "queue")
	transmissionDesc = gauge("transmission_queue_messages", "Messages in the transmission queue; from 1,000 on an estimate.")
	endpointsDesc    = gauge("conversation_endpoints", "Conversation endpoints, estimated; missing before vacuum has seen some.")
	xminDesc         = gauge("xmin_age_transactions", "How many transactions ago the oldest snapshot was taken that holds back vacuum.")
	oldestTxDesc     = gauge("oldest_transaction_seconds", "Age of the oldest transaction that holds back vacuum; missing unless the role has pg_read_all_stats.")
)

// Describe implements prometheus.Collector.
func (*watcher) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		readersDesc, limitDesc, servedDesc, upDesc, lookedDesc, databaseDesc, onDesc, readyDesc, oldestDesc, blockedDesc,
		rollbacksDesc, backlogDesc, transmissionDesc, endpointsDesc, xminDesc, oldestTxDesc,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (w *watcher) Collect(ch chan<- prometheus.Metric) {
	put := func(d *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	f, err := w.figures.get()
	status := w.a.Status()
	exists := map[sbroker.QueueName]bool{}
	for _, q := range status.Queues {
		exists[q.Queue] = true
		put(readersDesc, float64(q.Readers), label(q.Queue))
		put(limitDesc, float64(q.Limit), label(q.Queue))
		put(servedDesc, oneIf(q.Served), label(q.Queue))
	}
	put(upDesc, oneIf(status.Listening))
	if !status.LookedAt.IsZero() {
		put(lookedDesc, float64(status.LookedAt.UnixNano())/float64(time.Second))
	}
	put(databaseDesc, oneIf(err == nil))
	if err != nil {
		return
	}
	for _, q := range f.Queues {
		exists[q.Queue] = true
		l := label(q.Queue)
		put(onDesc, oneIf(q.IsOn), l)
		put(readyDesc, q.Ready, l)
		put(oldestDesc, q.OldestAge, l)
		put(blockedDesc, q.BlockedGroups, l)
		put(rollbacksDesc, q.Rollbacks, l)
		put(backlogDesc, q.Transmission, l)
	}
	put(transmissionDesc, f.Transmission)
	if f.Endpoints != nil {
		put(endpointsDesc, *f.Endpoints)
	}
	put(xminDesc, f.XminAge)
	if f.OldestTransaction != nil {
		put(oldestTxDesc, *f.OldestTransaction)
	}
	w.retain(exists)
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
