package scenario

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
	"github.com/pgsbroker/sbroker/sbroker/sbrokertest"
)

// atOnce runs all of them beside each other.
func atOnce(fns ...func() error) error {
	results := make(chan error)
	for _, fn := range fns {
		go func() { results <- fn() }()
	}
	var err error
	for range fns {
		err = errors.Join(err, <-results)
	}
	return err
}

// A timer that is refreshed at the moment at which it fires: each time exactly one of the two, and afterwards the
// refreshed one is set.
func TestCaseB16(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	pool := db.Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	ctx := t.Context()
	h := pair.BeginDialog(t)
	const rounds = 60
	fired := 0
	for range rounds {
		if err := pair.Broker.BeginTimer(ctx, h, time.Millisecond); err != nil {
			t.Fatal(err)
		}
		before := 0
		err := atOnce(
			func() error { return pair.Broker.BeginTimer(ctx, h, time.Hour) },
			func() error {
				messages, err := pair.Broker.Receive(ctx, pair.Initiator.Queue, sbroker.ReceiveOptions{})
				before = len(messages)
				return err
			})
		if err != nil {
			t.Fatal(err)
		}
		after := len(sbrokertest.Drain(t, pair.Broker, pair.Initiator.Queue))
		if before > 1 || after > 0 {
			t.Fatalf("%d messages at the moment of the refresh, %d after it", before, after)
		}
		fired += before
		set := pgtest.Strings(t, pool, "select dialog_timer > clock_timestamp() + interval '30 min' from sb.conversation_endpoints")
		if len(set) != 1 || set[0] != "t" {
			t.Fatalf("the refreshed timer is not set: %q", set)
		}
	}
	t.Logf("fired in %d of %d rounds", fired, rounds)
}

// Bodies of every size that buffers and pages care about, and of every byte, through the client and each of its ways to
// pass arguments.
func TestCaseB28(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	config, err := pgx.ParseConfig(db.URL())
	if err != nil {
		t.Fatal(err)
	}
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		config.DefaultQueryExecMode = mode
		conn, err := pgx.ConnectConfig(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		pair := sbrokertest.NewPair(t, conn, "")
		var sent [][]byte
		for _, size := range []int{0, 1, 255, 256, 257, 4096, 8192, 1 << 20} {
			body := make([]byte, size)
			_, _ = rand.Read(body) // never fails
			sent = append(sent, body)
		}
		every := make([]byte, 256)
		for i := range every {
			every[i] = byte(i)
		}
		sent = append(sent, every, []byte{0}, []byte("\xff\xfe<\x00a\x00/\x00>\x00"), []byte(`\x41`), []byte("{}"), []byte("'; select 1 --"))
		h := pair.BeginDialog(t)
		for _, body := range sent {
			if err := pair.Broker.Send(t.Context(), h, sbroker.DefaultMessageType, body); err != nil {
				t.Fatalf("%v: %d bytes: %v", mode, len(body), err)
			}
		}
		if err := pair.Broker.SendBatch(t.Context(), h, sbroker.DefaultMessageType, sent); err != nil {
			t.Fatalf("%v: batch: %v", mode, err)
		}
		got := sbrokertest.Drain(t, pair.Broker, pair.Target.Queue)
		if len(got) != 2*len(sent) {
			t.Fatalf("%v: %d messages, want %d", mode, len(got), 2*len(sent))
		}
		for i, m := range got {
			if want := sent[i%len(sent)]; !bytes.Equal(m.Body, want) {
				t.Errorf("%v: message %d of %d bytes is not what was sent", mode, i, len(want))
			}
		}
	}
}

// stream is the application of B-34 and B-35: senders look up the dialog of a table and send on it, a recycler ends the
// stream on it now and then and puts another in its place, a target ends a dialog at the end of its stream.
type stream struct {
	pool *pgxpool.Pool

	sent, processed, recycled, deadlocks atomic.Int64
}

const endOfStream = "end of stream"

func newStream(t *testing.T) *stream {
	s := &stream{pool: pgtest.New(t).Pool(t)}
	_, err := s.pool.Exec(t.Context(), `
select sb.create_queue('Left'), sb.create_queue('Right');
select sb.create_service('Left', 'Left', '{DEFAULT}'), sb.create_service('Right', 'Right', '{DEFAULT}');
create table handles (key integer primary key, handle uuid);
insert into handles values (1, sb.begin_dialog('Left', 'Right'))`)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tx runs fn in a transaction; a deadlock is counted, and is no error, since whoever works here tries again.
func (s *stream) tx(ctx context.Context, fn func(tx pgx.Tx) error) (done bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, fn)
	if pgtest.SQLState(err) == "40P01" {
		s.deadlocks.Add(1)
		return false, nil
	}
	return err == nil, err
}

func (s *stream) send(ctx context.Context) error {
	done, err := s.tx(ctx, func(tx pgx.Tx) error {
		var h string
		if err := tx.QueryRow(ctx, "select handle from handles where key = 1 for update").Scan(&h); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, "select sb.send($1::uuid, 'DEFAULT', 'x'::text)", h)
		return err
	})
	if done {
		s.sent.Add(1)
	}
	return err
}

// recycle takes the timer of the dialog in use, and then the row, or the row first.
func (s *stream) recycle(ctx context.Context, rowFirst bool) error {
	_, err := s.tx(ctx, func(tx pgx.Tx) error {
		if rowFirst {
			if _, err := tx.Exec(ctx, "select from handles where key = 1 for update"); err != nil {
				return err
			}
		}
		var h string
		err := tx.QueryRow(ctx, "select conversation_handle from sb.receive('Left', 1) where message_type_id = 5").Scan(&h)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, "update handles set handle = sb.begin_dialog('Left', 'Right') where key = 1")
		if err == nil {
			_, err = tx.Exec(ctx, "select sb.begin_conversation_timer(handle, '2 ms') from handles")
		}
		if err == nil {
			_, err = tx.Exec(ctx, "select sb.send($1::uuid, 'DEFAULT', $2::text)", h, endOfStream)
		}
		if err == nil {
			s.recycled.Add(1)
		}
		return err
	})
	return err
}

// process receives a group and ends its dialog when the stream has ended.
func (s *stream) process(ctx context.Context) (found bool, err error) {
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, "select conversation_handle::text, sb.body_text(message_body) from sb.receive('Right')")
		if err != nil {
			return err
		}
		var h, body string
		n := int64(0)
		_, err = pgx.ForEachRow(rows, []any{&h, &body}, func() error {
			found = true
			if body != endOfStream {
				n++
			}
			return nil
		})
		if err == nil && body == endOfStream {
			_, err = tx.Exec(ctx, "select sb.end_conversation($1::uuid)", h)
		}
		if err == nil {
			s.processed.Add(n)
		}
		return err
	})
	return found, err
}

// run lets eight senders, two recyclers and a target work, and then the target finish.
func (s *stream) run(t *testing.T, rowFirst bool) {
	if _, err := s.pool.Exec(t.Context(), "select sb.begin_conversation_timer(handle, '2 ms') from handles"); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var workers []func() error
	until := time.Now().Add(2 * time.Second)
	loop := func(fn func() error) {
		workers = append(workers, func() error {
			for time.Now().Before(until) {
				if err := fn(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range 8 {
		loop(func() error { return s.send(ctx) })
	}
	for range 2 {
		loop(func() error { return s.recycle(ctx, rowFirst) })
	}
	loop(func() error { _, err := s.process(ctx); return err })
	if err := atOnce(workers...); err != nil {
		t.Fatal(err)
	}
	for {
		found, err := s.process(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			break
		}
	}
	t.Logf("%d sent, %d times recycled, %d deadlocks", s.sent.Load(), s.recycled.Load(), s.deadlocks.Load())
	if s.sent.Load() == 0 || s.recycled.Load() == 0 {
		t.Error("nothing happened")
	}
	// None is lost: none arrives behind the end of its stream, since who looks up locks the row.
	if sent, processed := s.sent.Load(), s.processed.Load(); sent != processed {
		t.Errorf("%d sent, %d processed", sent, processed)
	}
}

// Senders go by the row and the program by its timer first: should they meet, a deadlock is the server's to find; nothing
// hangs, nothing is lost. With the row first in both there is none. That senders lock the row is also what B-35 asks for.
func TestCaseB34(t *testing.T) {
	t.Parallel()
	for _, rowFirst := range []bool{false, true} {
		t.Run(fmt.Sprint("row first ", rowFirst), func(t *testing.T) {
			t.Parallel()
			s := newStream(t)
			s.run(t, rowFirst)
			if n := s.deadlocks.Load(); rowFirst && n > 0 {
				t.Errorf("%d deadlocks", n)
			}
		})
	}
}
