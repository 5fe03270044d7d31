package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
)

// sample is one line of an exposition.
type sample struct {
	labels map[string]string
	value  float64 // of a histogram the count
}

// families is what a scrape has brought, by name.
type families map[string][]sample

// parse reads an exposition as Prometheus does.
func parse(t *testing.T, text string) families {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, text)
	}
	all := families{}
	for name, family := range parsed {
		for _, m := range family.GetMetric() {
			s := sample{
				labels: map[string]string{},
				value:  m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()),
			}
			for _, l := range m.GetLabel() {
				s.labels[l.GetName()] = l.GetValue()
			}
			all[name] = append(all[name], s)
		}
	}
	return all
}

func (d *daemon) scrape(t *testing.T) families {
	t.Helper()
	code, text := d.get(t, "/metrics")
	if code != http.StatusOK {
		t.Fatalf("/metrics: %d %s", code, text)
	}
	return parse(t, text)
}

// value returns the sample of a family, of a queue if one is named, with any further labels given as name and value; -1
// when there is not just one.
func value(all families, name string, labels ...string) float64 {
	if len(labels) > 0 {
		labels = append([]string{"queue"}, labels...)
	}
	found := -1.0
	for _, s := range all[name] {
		fits := true
		for i := 0; i < len(labels); i += 2 {
			fits = fits && s.labels[labels[i]] == labels[i+1]
		}
		if fits && found >= 0 {
			return -1
		}
		if fits {
			found = s.value
		}
	}
	return found
}

// hostile are names that an exposition has to escape.
var hostile = []string{
	`q"uote\back{slash="x"} 1`, "new\nline\r\n# HELP x", "ünï\u2028cödé 🐘", "tab\there", `\n`, " ", strings.Repeat("ß", 128),
}

// Everything that happens is counted, under the names that queues have.
func TestMetrics(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, 0)
	for _, name := range hostile {
		w.exec(t, "select sb.create_queue($1)", name)
	}
	// One with a procedure that fails always, and with it four messages of which none gets through.
	bad := hostile[0]
	w.exec(t, "select sb.create_service('bad', $1, '{DEFAULT}')", bad)
	w.superuser(t, `create function app.fail() returns void language plpgsql as $$
begin
  perform from sb.receive('`+bad+`');
  raise exception 'no luck';
end $$`)
	w.exec(t, "select sb.set_option('poison_message_threshold', '3')")
	w.exec(t, "select sb.alter_queue($1, activation_procedure => 'app.fail')", bad)
	// And messages that nobody can deliver.
	w.exec(t, "select sb.send(sb.begin_dialog('client', 'nowhere'), 'DEFAULT', 'x'::text)")

	d := startDaemon(t, w.url, "")
	d.becomes(t, http.StatusOK, "ready")
	pgtest.Eventually(t, 20*time.Second, func() bool { // it waits for a notification
		return w.count(t, `
select count(*) from pg_locks as l join sb.service_queues as q on q.queue_id = l.objid::bigint
where l.locktype = 'advisory' and l.classid = 8420 and l.database = (select oid from pg_database where datname = current_database())
  and q.name = 'server'`) == 1
	})
	w.send(t, 3)
	w.exec(t, "select sb.send(sb.begin_dialog('client', 'bad'), 'DEFAULT', 'x'::text)")
	pgtest.Eventually(t, 20*time.Second, func() bool {
		return w.count(t, countDone) == 3 && w.count(t, "select count(*) from sb.queue_statistics where not is_on") == 1
	})
	var all families
	pgtest.Eventually(t, 3*figuresAge, func() bool {
		all = d.scrape(t)
		return value(all, "sbactivator_queue_on", bad) == 0 && value(all, "sbactivator_queue_disabled_total", bad) == 1
	})
	for _, want := range []struct {
		name   string
		labels []string
		value  float64
	}{
		{"sbactivator_batches_failed_total", []string{bad, "retryable", "false"}, 3},
		{"sbactivator_batches_failed_total", []string{bad, "retryable", "true"}, 0},
		{"sbactivator_batches_handled_total", []string{bad}, 0},
		{"sbactivator_back_offs_total", []string{bad, "scope", "queue"}, 3},
		{"sbactivator_handler_seconds", []string{bad}, 3},
		{"sbactivator_queue_ready_messages", []string{bad}, 1},
		{"sbactivator_batches_failed_total", []string{"server", "retryable", "false"}, 0},
		{"sbactivator_readers_limit", []string{"server"}, 2},
		{"sbactivator_queue_on", []string{"server"}, 1},
		{"sbactivator_queue_served", []string{"server"}, 1},
		{"sbactivator_queue_ready_messages", []string{"server"}, 0},
		{"sbactivator_transmission_queue_messages", nil, 1},
		{"sbactivator_listener_up", nil, 1},
		{"sbactivator_listener_reconnects_total", nil, 0},
		{"sbactivator_database_up", nil, 1},
		{"sbactivator_messages_delivered_total", nil, 0},
	} {
		if got := value(all, want.name, want.labels...); got != want.value {
			t.Errorf("%s%q is %v, want %v", want.name, want.labels, got, want.value)
		}
	}
	for name, labels := range map[string][]string{
		"sbactivator_batches_handled_total":            {"server"},
		"sbactivator_message_wait_seconds":             {"server"},
		"sbactivator_notifications_total":              {"server"},
		"sbactivator_queue_oldest_message_age_seconds": {bad},
		"sbactivator_last_poll_timestamp_seconds":      nil,
		"sbactivator_info":                             nil,
	} {
		if got := value(all, name, labels...); got <= 0 {
			t.Errorf("%s%q is %v", name, labels, got)
		}
	}
	for _, name := range hostile {
		if got := value(all, "sbactivator_queue_ready_messages", name); got < 0 {
			t.Errorf("nothing of queue %q", name)
		}
	}

	// A queue takes its series with it.
	w.exec(t, "select sb.alter_queue('server', activation_enabled => false)")
	w.exec(t, "select sb.drop_service('server'), sb.drop_queue('server')")
	pgtest.Eventually(t, 3*figuresAge, func() bool {
		all = d.scrape(t)
		for _, samples := range all {
			if slices.ContainsFunc(samples, func(s sample) bool { return s.labels["queue"] == "server" }) {
				return false
			}
		}
		return true
	})
}

// docs/operations.md has a line for each metric, and the metrics are as Prometheus wants them.
func TestMetricsAreDocumented(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, 0)
	w.send(t, 1)
	w.superuser(t, "analyze sb_internal.endpoint")
	w.superuser(t, "grant pg_read_all_stats to "+w.role(t))
	d := startDaemon(t, w.url, "")
	d.becomes(t, http.StatusOK, "ready")
	pgtest.Eventually(t, 20*time.Second, func() bool { return w.count(t, countDone) == 1 })
	_, text := d.get(t, "/metrics")
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	all := parse(t, text)
	page := readFile(t, "docs/operations.md")
	documented := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(sbactivator_[a-z_]+)`").FindAllStringSubmatch(page, -1) {
		documented[m[1]] = true
	}
	for _, name := range regexp.MustCompile("sbactivator_[a-z_]+").FindAllString(page, -1) { // those in the alerts too
		if all[name] == nil {
			t.Errorf("docs/operations.md has %s, /metrics has not", name)
		}
	}
	for name := range all {
		if strings.HasPrefix(name, "sbactivator_") && !documented[name] {
			t.Errorf("docs/operations.md lacks %s", name)
		}
	}
}

// What holds back vacuum shows, however short the transactions are that go on meanwhile.
func TestHeldBack(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	holder := db.Session(t, "holder")
	holder.Begin()
	holder.Exec("set transaction isolation level repeatable read")
	holder.Exec("select 1")
	other := db.Session(t, "other")
	for range 50 {
		other.Exec("select pg_current_xact_id()")
	}
	for role, seesTime := range map[string]bool{db.Owner: false, "": true} {
		pool, err := askingPool(DatabaseConfig{URL: db.URLAs(role)})
		if err != nil {
			t.Fatal(err)
		}
		defer pool.Close()
		f, err := gatherFigures(t.Context(), pool)
		if err != nil {
			t.Fatal(err)
		}
		if f.XminAge < 50 || (f.OldestTransaction != nil) != seesTime || seesTime && *f.OldestTransaction <= 0 {
			t.Errorf("role %q: %+v", role, f)
		}
	}
	holder.Rollback()
}

// What is counted of events alone.
func TestObserve(t *testing.T) {
	t.Parallel()
	m := newMetrics()
	var group sbroker.GroupID
	group[0] = 1
	for _, e := range []activator.Event{
		activator.HandlerCalled{Queue: "q", Messages: 7, Waited: time.Second, Took: time.Second},
		activator.HandlerCalled{Queue: "q", Messages: 5, Err: errors.New("x")},
		activator.HandlerCalled{Queue: "q", Messages: 5, Err: errors.New("x"), Retryable: true},
		activator.HandlerCalled{Queue: "q", Procedure: "p"},
		activator.BackedOff{Queue: "q", Group: group},
		activator.NotReceived{Queue: "q"},
		activator.QueueDisabled{Queue: "bytes \xff"},
		activator.Notified{},
		activator.Notified{Queue: "q"},
		activator.Polled{Sweep: true},
		activator.Polled{},
		activator.Polled{},
		activator.Listening{Up: true},
		activator.Listening{},
		activator.Listening{Up: true},
		activator.Delivered{Messages: 9},
		activator.ReaderStarted{Queue: "q"},
	} {
		m.Observe(e)
	}
	all := gathered(t, m)
	for _, want := range []struct {
		name   string
		labels []string
		value  float64
	}{
		{"sbactivator_messages_handled_total", []string{"q"}, 7},
		{"sbactivator_batches_handled_total", []string{"q"}, 2},
		{"sbactivator_batches_failed_total", []string{"q", "retryable", "true"}, 1},
		{"sbactivator_batches_failed_total", []string{"q", "retryable", "false"}, 1},
		{"sbactivator_message_wait_seconds", []string{"q"}, 3},
		{"sbactivator_handler_seconds", []string{"q"}, 4},
		{"sbactivator_back_offs_total", []string{"q", "scope", "group"}, 1},
		{"sbactivator_not_received_total", []string{"q"}, 1},
		{"sbactivator_queue_disabled_total", []string{"bytes \uFFFD"}, 1},
		{"sbactivator_notifications_total", []string{""}, 1},
		{"sbactivator_notifications_total", []string{"q"}, 1},
		{"sbactivator_listener_reconnects_total", nil, 1},
		{"sbactivator_messages_delivered_total", nil, 9},
	} {
		if got := value(all, want.name, want.labels...); got != want.value {
			t.Errorf("%s%q is %v, want %v", want.name, want.labels, got, want.value)
		}
	}
	m.retain(map[sbroker.QueueName]bool{"q": true})
	if all := gathered(t, m); value(all, "sbactivator_queue_disabled_total", "bytes \uFFFD") != -1 ||
		value(all, "sbactivator_notifications_total", "") != 1 || value(all, "sbactivator_messages_handled_total", "q") != 7 {
		t.Errorf("%v", all)
	}
}

// gathered is what a scrape would bring.
func gathered(t *testing.T, m *metrics) families {
	t.Helper()
	got, err := prometheus.Gatherers{m.registry}.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, family := range got {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			t.Fatal(err)
		}
	}
	return parse(t, text.String())
}

// An answer is asked for once by however many ask, and an error is an answer.
func TestCached(t *testing.T) {
	t.Parallel()
	asked := 0
	c := &cached[int]{age: time.Hour, timeout: time.Minute, ask: func(ctx context.Context) (int, error) {
		asked++
		if _, limited := ctx.Deadline(); !limited {
			t.Error("no time limit")
		}
		return asked, fmt.Errorf("no answer")
	}}
	for range 3 {
		if n, err := c.get(); n != 1 || err == nil {
			t.Errorf("%d, %v", n, err)
		}
	}
	c.at = c.at.Add(-time.Hour)
	if n, _ := c.get(); n != 2 {
		t.Errorf("%d", n)
	}
}
