package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// A queue whose role the activator may not be is not served, and the log says so; what is mended is noticed.
func TestRoleRefused(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t, 0)
	reader := w.db.CreateRole(t, "reader")
	w.superuser(t, fmt.Sprintf("grant %[1]s to %[2]s; grant %[1]s to %[3]s; grant usage on schema app to %[1]s; grant insert on public.done to %[1]s",
		reader, w.role(t), w.db.Owner))
	w.exec(t, "select sb.alter_queue('server', execute_as => $1), sb.grant_receive('server', $1)", reader)
	d := startDaemon(t, w.url, "activation: { poll_interval: 200ms }")
	served := func(want float64) {
		t.Helper()
		pgtest.Eventually(t, 20*time.Second, func() bool { return value(d.scrape(t), "sbactivator_queue_served", "server") == want })
	}
	served(1)
	w.superuser(t, fmt.Sprintf("revoke %s from %s, %s", reader, w.role(t), w.db.Owner)) // of which the activator is a member
	served(0)
	if got := d.log.String(); !strings.Contains(got, "the activator is no member of it and may not SET ROLE to it") || !strings.Contains(got, "execute_as="+reader) {
		t.Error("the log does not say why")
	}
	w.send(t, 1)
	w.superuser(t, fmt.Sprintf("grant %s to %s", reader, w.role(t)))
	served(1)
	pgtest.Eventually(t, 20*time.Second, func() bool { return w.count(t, countDone) == 1 })

	w.exec(t, "update sb_internal.queue set execute_as = 'gone' where name = 'server'") // DROP ROLE is for an empty cluster
	served(0)
}

// A procedure that fails before it receives, or does not receive, shows wherever one looks: the metrics, status, doctor.
func TestNotReceived(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"returns": "begin end",
		"fails":   "begin perform 1/0; end",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t, 0)
			w.superuser(t, "create or replace function app.work() returns void language plpgsql as $$"+body+"$$")
			d := startDaemon(t, w.url, "")
			w.send(t, 1)
			pgtest.Eventually(t, 20*time.Second, func() bool {
				all := d.scrape(t)
				return value(all, "sbactivator_not_received_total", "server")+value(all, "sbactivator_batches_failed_total", "server", "retryable", "false") >= 2
			})
			pgtest.Eventually(t, 20*time.Second, func() bool {
				return w.count(t, "select count(*) from sb.dm_broker_queue_monitors where queue_name = 'server' and state = 'NOTIFIED'") == 1
			})
			status := func() queueStatus {
				report := executeJSON[statusReport](t, exitDone, "status", "--database-url", w.db.URL())
				return report.queue(t, "server")
			}
			if status().IsNotReceived {
				t.Error("not received, after a few seconds")
			}
			// As if that had been going on for long. The activator reports what changes, and nothing does.
			w.exec(t, "update sb_internal.message set message_enqueue_time = now() - interval '10 minutes'")
			w.exec(t, "update sb_internal.queue_monitor set last_activated_time = now() - interval '10 minutes'")
			if q := status(); !q.IsNotReceived || q.State != "on" {
				t.Errorf("%+v", q)
			}
			if _, stdout, _ := execute(t, "status", "--database-url", w.db.URL()); !strings.Contains(stdout, "server  not received") {
				t.Error(stdout)
			}
			_, stdout, _ := execute(t, "doctor", "--json", "--database-url", w.db.URL(), "--skip", ofServer)
			if !strings.Contains(stdout, `"check": "not-received"`) || strings.Contains(stdout, `"check": "unread"`) {
				t.Error(stdout)
			}
			// Once it is right the messages go, and so does the finding.
			w.superuser(t, `create or replace function app.work() returns void language plpgsql as $$
begin
  perform sb.end_conversation(r.conversation_handle) from sb.receive('server') as r;
end $$`)
			w.exec(t, "select sb.alter_queue('server', activation_enabled => true)")
			pgtest.Eventually(t, 40*time.Second, func() bool { return w.count(t, countWaiting) == 0 })
			report := executeJSON[statusReport](t, exitDone, "status", "--database-url", w.db.URL())
			if slices.ContainsFunc(report.Queues, func(q queueStatus) bool { return q.Name == "server" && q.IsNotReceived }) {
				t.Error("still not received")
			}
		})
	}
}
