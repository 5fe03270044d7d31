package sqltest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// Sessions are killed by the server and connections are cut by the client at any moment, also during COMMIT: what the
// server says it has committed is there, once, and nothing else.
func TestKills(t *testing.T) {
	t.Parallel()
	stressKills(t, 15*time.Second)
}

func stressKills(t *testing.T, d time.Duration) {
	c := newChaos(t)
	c.retries, c.kills = true, true
	admin := c.owner("killer")
	killed := 0
	killer := func(w *worker) {
		// Same role, so no superuser is needed.
		killed += len(admin.Query(`
select pg_terminate_backend(pid) from pg_stat_activity
 where datname = current_database() and application_name like 'chaos %' and state <> 'idle'
 order by random() limit 1`))
		time.Sleep(time.Duration(w.rnd.IntN(400)) * time.Millisecond)
	}
	cut := func(load func(w *worker)) func(w *worker) {
		return func(w *worker) {
			if w.conn != nil && !w.conn.IsClosed() && w.chance(3) {
				socket := w.conn.PgConn().Conn()
				timer := time.AfterFunc(time.Duration(w.rnd.IntN(8000))*time.Microsecond, func() { socket.Close() })
				defer timer.Stop()
			}
			load(w)
		}
	}
	c.run(d, cut(oneVerb), cut(oneVerb), cut(oneVerb), cut(mixture), cut(mixture), cut(outline(0)), cut(outline(1)), killer)
	// The last victims' transactions are over when their backends are.
	pgtest.Eventually(t, 20*time.Second, func() bool {
		return admin.Value("select count(*) from pg_stat_activity where datname = current_database() and application_name like 'chaos %'") == "0"
	})
	t.Logf("%d sessions killed, %d commits in doubt", killed, len(c.doubtful))
	if killed == 0 || len(c.doubtful) == 0 {
		t.Error("too few to prove anything")
	}
	c.finish()
}

// A SEND is cancelled at any moment, also between taking and giving back the advisory lock by which it sees whether
// anybody waits: it never keeps it, and waiters can always raise their flag.
func TestCancelledSendKeepsNoAdvisoryLock(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	handle := c.dialogsBetween(1)[0]
	sender, canceller, waiter := c.owner("sender"), c.owner("canceller"), c.owner("waiter")
	deadline := time.Now().Add(6 * time.Second)
	cancelled := 0
	sending := sender.Go(func(ctx context.Context, conn *pgx.Conn) error {
		for time.Now().Before(deadline) {
			_, err := conn.Exec(ctx, "select sb.send($1::uuid, 'Note', 'x'::text) from generate_series(1, 20)", handle)
			if pgtest.SQLState(err) == "57014" {
				cancelled++
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	// Inside the server, for the moment between two statements of SEND is very short.
	cancelling := canceller.GoExec(fmt.Sprintf(`
do $$
begin
  while clock_timestamp() < now() + interval '5.5 s' loop
    perform pg_cancel_backend(%d);
    perform pg_sleep(random() * 0.001);
  end loop;
end
$$`, sender.PID()))
	raised := 0
	waiting := waiter.Go(func(ctx context.Context, conn *pgx.Conn) error {
		// A lock left behind keeps the flag down for good.
		for ; time.Now().Before(deadline); raised++ {
			ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
			_, err := conn.Exec(ctx, "select sb.start_waiting('Queue1')")
			if err == nil {
				_, err = conn.Exec(ctx, "select sb.stop_waiting('Queue1')")
			}
			cancel()
			if err != nil {
				return err
			}
		}
		return nil
	})
	for _, result := range []<-chan error{sending, cancelling, waiting} {
		if err := wait(t, result); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d cancelled, flag raised %d times", cancelled, raised)
	if cancelled < 200 || raised < 50 {
		t.Errorf("%d cancelled, flag raised %d times: too few to prove anything", cancelled, raised)
	}
	if locks := waiter.Query("select pid, mode from pg_locks where locktype = 'advisory' and classid = 8420 and database = (select oid from pg_database where datname = current_database())"); len(locks) > 0 {
		t.Errorf("left: %v", locks)
	}
}
