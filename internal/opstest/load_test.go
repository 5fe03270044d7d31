//go:build unix

package opstest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
)

const loadSetUp = `
select sb.create_message_type('Note');
select sb.create_contract('Talk', sent_by_any => '{Note}');
select sb.create_queue('Outbox'), sb.create_queue('Inbox');
select sb.create_service('Source', 'Outbox', '{Talk}'), sb.create_service('Sink', 'Inbox', '{Talk}');
create table public.sent (handle uuid, n integer, primary key (handle, n));
create table public.taken (id bigint generated always as identity primary key, handle uuid, n integer)`

// load is an application at work: senders that number their messages and readers, who keep the books in the transactions
// of the messages. In the end the books say whether anything was lost, doubled or overtaken.
type load struct {
	t       *testing.T
	url     atomic.Pointer[string] // where to connect now
	options pgx.TxOptions
	modify  func(*pgx.ConnConfig)
	handles []string
	acked   []atomic.Int64 // for each handle the last number whose commit was acknowledged
	taken   atomic.Int64   // messages received
	stop    atomic.Bool
	// deadlocks counts transactions that were done again because of one.
	deadlocks atomic.Int64
	wg        sync.WaitGroup
}

// newLoad begins the dialogs: their senders take turns.
func newLoad(t *testing.T, dialogs int, url string) *load {
	t.Helper()
	conn := connect(t, url)
	exec(t, conn, loadSetUp)
	l := &load{t: t, acked: make([]atomic.Int64, dialogs)}
	l.url.Store(&url)
	l.handles = pgtest.Strings(t, conn, fmt.Sprintf("select sb.begin_dialog('Source', 'Sink', 'Talk') from generate_series(1, %d)", dialogs))
	return l
}

// run works with so many senders and readers until finish, over any number of outages.
func (l *load) run(senders, readers int) {
	for s := range senders {
		l.wg.Go(func() {
			l.work(func(ctx context.Context, pool *pgxpool.Pool) error { return l.send(ctx, pool, s, senders) })
		})
	}
	for r := range readers {
		turn := 0
		l.wg.Go(func() {
			l.work(func(ctx context.Context, pool *pgxpool.Pool) error {
				turn++
				return l.read(ctx, pool, r == 0 && turn%2 == 0)
			})
		})
	}
}

// work repeats fn on a connection that is opened again when it breaks.
func (l *load) work(fn func(ctx context.Context, pool *pgxpool.Pool) error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for !l.stop.Load() {
		config, err := pgxpool.ParseConfig(*l.url.Load())
		if err != nil {
			l.t.Error(err)
			return
		}
		config.MaxConns = 1
		if l.modify != nil {
			l.modify(config.ConnConfig)
		}
		pool, err := pgxpool.NewWithConfig(ctx, config)
		if err != nil {
			l.t.Error(err)
			return
		}
		for err == nil && !l.stop.Load() {
			err = fn(ctx, pool)
			if code := pgtest.SQLState(err); code != "" && code[:2] != "57" && code[:2] != "08" && code != "25006" {
				l.t.Errorf("%T: %v", err, err)
				l.stop.Store(true)
			}
		}
		pool.Close()
		if err != nil {
			time.Sleep(20 * time.Millisecond) // the server is down
		}
	}
}

// send sends the next message of each of this sender's dialogs, a transaction each.
func (l *load) send(ctx context.Context, pool *pgxpool.Pool, first, step int) error {
	for i := first; i < len(l.handles); i += step {
		handle := l.handles[i]
		n := 0
		err := l.transact(ctx, pool, func(tx pgx.Tx) error {
			err := tx.QueryRow(ctx, `insert into public.sent (handle, n)
				select $1::text::uuid, coalesce(max(s.n), 0) + 1 from public.sent as s where s.handle = $1::text::uuid returning n`, handle).Scan(&n)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, "select sb.send($1::text::uuid, 'Note', $1::text || ' ' || $2::int4)", handle, n)
			return err
		})
		if err != nil {
			return err
		}
		l.acked[i].Store(int64(n))
	}
	return nil
}

const takeSQL = `
insert into public.taken (handle, n)
select split_part(b.body, ' ', 1)::uuid, split_part(b.body, ' ', 2)::integer
  from sb.receive('Inbox', $1::int4) as r
 cross join lateral (select sb.body_text(r.message_body) as body) as b`

var errGiveUp = fmt.Errorf("gives up")

func (l *load) read(ctx context.Context, pool *pgxpool.Pool, giveUp bool) error {
	got := int64(0)
	err := l.transact(ctx, pool, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, takeSQL, 3)
		if err == nil && giveUp {
			err = errGiveUp
		}
		got = tag.RowsAffected()
		return err
	})
	switch {
	case err == errGiveUp: //nolint:errorlint // never wrapped
		return nil
	case err == nil && got == 0:
		time.Sleep(time.Millisecond)
	case err == nil:
		l.taken.Add(got)
	}
	return err
}

// transact is a transaction that is done again as long as it only has to be.
func (l *load) transact(ctx context.Context, pool *pgxpool.Pool, fn func(tx pgx.Tx) error) error {
	for {
		err := pgx.BeginTxFunc(ctx, pool, l.options, fn)
		if code := pgtest.SQLState(err); code != "40001" && code != "40P01" || !sbroker.IsRetryable(err) {
			return err
		} else if code == "40P01" {
			l.deadlocks.Add(1)
		}
	}
}

// await returns when so many more messages have been received.
func (l *load) await(n int64) {
	l.t.Helper()
	target := l.taken.Load() + n
	pgtest.Eventually(l.t, 2*time.Minute, func() bool { return l.taken.Load() >= target || l.stop.Load() })
}

// finish ends the work, receives the rest, and looks into the books.
func (l *load) finish() {
	l.t.Helper()
	l.stop.Store(true)
	l.wg.Wait()
	conn := connect(l.t, *l.url.Load())
	want(l.t, conn, "queues that are on", "select name from sb.service_queues where name like '%box' and is_receive_enabled and is_enqueue_enabled order by 1", "Inbox", "Outbox")
	for exec(l.t, conn, takeSQL, 1000).RowsAffected() > 0 {
	}
	for i, handle := range l.handles {
		want(l.t, conn, "an acknowledged message is not in the books", fmt.Sprintf(
			"select 1 where %d > (select coalesce(max(n), 0) from public.sent where handle = '%s')", l.acked[i].Load(), handle))
	}
	checkBooks(l.t, conn)
	if l.taken.Load() == 0 {
		l.t.Error("nothing was received under load")
	}
}

// checkBooks compares what was sent with what was received.
func checkBooks(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	want(t, conn, "lost", "select handle, n from public.sent except select handle, n from public.taken")
	want(t, conn, "received, but never sent", "select handle, n from public.taken except select handle, n from public.sent")
	want(t, conn, "received twice", "select handle, n from public.taken group by 1, 2 having count(*) > 1")
	want(t, conn, "out of order", `select handle, n from (
		select handle, n, lag(n, 1, 0) over (partition by handle order by id) as before from public.taken) as t where n <> before + 1`)
	want(t, conn, "left in queues", "select count(*) from sb.queue_messages", "0")
	want(t, conn, "left in the transmission queue", "select count(*) from sb.transmission_queue", "0")
}
