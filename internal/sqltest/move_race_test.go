package sqltest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// dialogsBetween begins n dialogs from Service0, has a message sent on each in both directions and takes those messages
// away, so that both sides are there and no queue holds anything. It returns the initiators' handles, each in a group
// of its own.
func (c *chaos) dialogsBetween(n int) []string {
	c.t.Helper()
	w := &worker{c: c, name: "dialogs"}
	defer w.disconnect()
	var handles []string
	ok := w.transact(func(x *work) error {
		for range n {
			handle, err := x.begin(0, "")
			if err != nil {
				return err
			}
			if err := x.send(handle); err != nil {
				return err
			}
			handles = append(handles, handle)
		}
		return nil
	})
	for _, handle := range handles {
		peer := c.peer(handle)
		ok = ok && w.transact(func(x *work) error {
			if _, err := x.receive(1, ", for_conversation => $1::text::uuid", peer); err != nil {
				return err
			}
			return x.send(peer)
		}) && w.transact(func(x *work) error {
			_, err := x.receive(0, ", for_conversation => $1::text::uuid", handle)
			return err
		})
	}
	if !ok {
		c.t.FailNow()
	}
	return handles
}

// move moves one conversation into the group of another.
func (x *work) move(handle, to string) error {
	group, err := x.groupOf(to)
	if err != nil {
		return err
	}
	return x.run("move", "select sb.move_conversation($1::text::uuid, $2::text::uuid)", handle, group)
}

// Receivers look for a group by way of a conversation, and lock the group; when the conversation is moved between the
// look and the lock, they hold the wrong group, and must not take the conversation's messages on the strength of it.
func TestReceiversAgainstMoves(t *testing.T) {
	t.Parallel()
	stressMoves(t, 10*time.Second)
}

func stressMoves(t *testing.T, d time.Duration) {
	c := newChaos(t)
	handles := c.dialogsBetween(8)
	anchors, movable := handles[:2], handles[2:]
	mover := func(w *worker) {
		w.transact(func(x *work) error {
			return x.move(movable[w.rnd.IntN(len(movable))], anchors[w.rnd.IntN(2)])
		})
	}
	reader := func(arguments string) func(w *worker) {
		return func(w *worker) {
			w.transact(func(x *work) error {
				_, err := x.receive(0, arguments)
				return err
			})
		}
	}
	sender := func(w *worker) {
		w.transact(func(x *work) error {
			return x.sendBatch(c.peer(movable[w.rnd.IntN(len(movable))]), 1+w.rnd.IntN(4))
		})
	}
	c.run(d, mover, mover, mover, sender, sender,
		reader(", 1"), reader(", 1"), reader(", 2"), reader(""),
		func(w *worker) {
			w.transact(func(x *work) error {
				_, err := x.receive(0, ", 1, for_conversation => $1::text::uuid, timeout => '5 ms'", movable[w.rnd.IntN(len(movable))])
				return err
			})
		})
	c.finish()
}

// Everything that locks the group of a conversation, in crossing directions between the same few groups, one verb in
// each transaction: whoever waited for a group that the conversation has left must not go on holding it.
func TestGroupVerbsAgainstMoves(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	handles := c.dialogsBetween(8)
	anchors, movable := handles[:3], handles[3:]
	one := func(w *worker, handles []string) string { return handles[w.rnd.IntN(len(handles))] }
	mover := func(w *worker) {
		w.transact(func(x *work) error { return x.move(one(w, movable), one(w, anchors)) })
	}
	locker := func(w *worker) {
		w.transact(func(x *work) error {
			handle := one(w, movable)
			switch w.rnd.IntN(5) {
			case 0:
				return x.run("timer", "select sb.begin_conversation_timer($1::text::uuid, '1 hour')", handle)
			case 1:
				return x.run("cancel", "select sb.cancel_conversation_timer($1::text::uuid)", handle)
			case 2:
				_, err := x.begin(0, ", related_conversation => $1::text::uuid", handle)
				if err == nil {
					err = errGiveUp
				}
				return err
			case 3:
				_, err := x.receive(0, ", for_conversation => $1::text::uuid", handle)
				return err
			default:
				err := x.run("end", "select sb.end_conversation($1::text::uuid)", handle)
				if err == nil {
					err = errGiveUp
				}
				return err
			}
		})
	}
	holder := func(w *worker) {
		w.transact(func(x *work) error {
			_, err := x.receive(0, ", for_conversation => $1::text::uuid", one(w, anchors))
			return err
		})
	}
	sender := func(w *worker) {
		w.transact(func(x *work) error { return x.send(c.peer(one(w, handles))) })
	}
	c.run(10*time.Second, mover, mover, mover, locker, locker, locker, locker, holder, holder, sender)
	c.finish()
}

// A verb waits for the group of a conversation. MOVE takes the conversation to another group and commits, and that group
// is busy too: while the verb waits for it, the group it waited for first must be free again.
func TestStaleGroupLockIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, verb := range []struct{ name, sql string }{
		{"end", "select sb.end_conversation($1::uuid)"},
		{"end with error", "select sb.end_conversation($1::uuid, 1, 'no')"},
		{"cleanup", "select sb.end_conversation($1::uuid, cleanup => true)"},
		{"timer", "select sb.begin_conversation_timer($1::uuid, '1 hour')"},
		{"cancel timer", "select sb.cancel_conversation_timer($1::uuid)"},
		{"related dialog", "select sb.begin_dialog('Service0', 'Service1', 'Talk', related_conversation => $1::uuid)"},
		{"receive", "select sb.receive('Queue0', for_conversation => $1::uuid)"},
		{"move", "select sb.move_conversation($1::uuid, $2::uuid)"},
	} {
		t.Run(verb.name, func(t *testing.T) {
			t.Parallel()
			c := newChaos(t)
			s := c.owner("setup")
			mover, waiter, holder, prober := c.owner("mover"), c.owner("waiter"), c.owner("holder"), c.owner("prober")
			begin := "select sb.begin_dialog('Service0', 'Service1', 'Talk')"
			for attempt := 1; ; attempt++ {
				moving, first, second := s.Value(begin), s.Value(begin), s.Value(begin)
				s.Exec("select sb.move_conversation($1::uuid, $2::uuid)", moving, first)
				mover.Begin()
				mover.Exec("select sb.move_conversation($1::uuid, $2::uuid)", moving, second)
				holder.Begin()
				held := holder.GoExec("select sb.receive('Queue0', for_group => $1::uuid)", second)
				pgtest.WaitBlocked(t, holder, mover)
				waiter.Begin()
				args := []any{moving}
				if strings.Contains(verb.sql, "$2") {
					args = append(args, s.Value(begin))
				}
				waited := waiter.GoExec(verb.sql, args...)
				pgtest.WaitBlocked(t, waiter, mover)
				mover.Commit()
				// Whoever of the two comes first has the second group.
				var err error
				isHolders := false
				select {
				case err = <-waited:
				case err = <-held:
					isHolders = true
				}
				if err != nil {
					t.Fatal(err)
				}
				if isHolders {
					pgtest.WaitBlocked(t, waiter, holder)
					// Nobody holds the first group: it can be had without waiting.
					prober.Begin()
					prober.Exec("select sb.receive('Queue0', for_group => $1::uuid, timeout => '0')", first)
					got := prober.Query("select from sb.conversation_group where conversation_group_id = $1::uuid for no key update skip locked", first)
					if len(got) != 1 {
						t.Error("the first group is still locked")
					}
					prober.Rollback()
					holder.Commit()
					err = wait(t, waited)
				} else {
					waiter.Rollback()
					err = wait(t, held)
					holder.Commit()
				}
				if err != nil {
					t.Fatal(err)
				}
				if isHolders {
					waiter.Commit()
					return
				}
				if attempt == 50 {
					t.Fatal("the holder never came first")
				}
			}
		})
	}
}

// The same without waiting: the verb has read which group the conversation is in, and gets to the lock only after a move
// has committed. It then has the lock of the wrong group, and must let go of it before it waits for the right one, which
// somebody holds who waits for the wrong one.
func TestStaleGroupLockGotAtOnce(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	s, mover, waiter, rival := c.owner("setup"), c.owner("mover"), c.owner("waiter"), c.owner("rival")
	begin := "select sb.begin_dialog('Service0', 'Service1', 'Talk')"
	for range 20 {
		// Moves lock groups in id order: the rival has to have the one that the conversation goes to first.
		high, low, moving := s.Value(begin), s.Value(begin), s.Value(begin)
		if high < low {
			high, low = low, high
		}
		move := "select sb.move_conversation($1::uuid, $2::uuid)"
		s.Exec(move, moving, high)
		other := s.Value(begin)
		s.Exec(move, other, low)

		// The table lock stops both in front of their first group lock.
		mover.Begin()
		mover.Exec("lock table sb.conversation_group in exclusive mode")
		ended := waiter.GoExec("select sb.end_conversation($1::uuid)", moving)
		pgtest.WaitBlocked(t, waiter, mover)
		moved := rival.GoExec(move, other, high)
		pgtest.WaitBlocked(t, rival, mover)
		mover.Exec(move, moving, low)
		mover.Commit()
		if err := errors.Join(wait(t, ended), wait(t, moved)); err != nil {
			t.Fatal(err)
		}
	}
}

// Two moves that exchange two conversations between the same two groups lock these in the same order.
func TestCrossingMoves(t *testing.T) {
	t.Parallel()
	c := newChaos(t)
	h := c.dialogsBetween(4)
	c.run(6*time.Second,
		func(w *worker) { w.transact(func(x *work) error { return x.move(h[2], h[w.rnd.IntN(2)]) }) },
		func(w *worker) { w.transact(func(x *work) error { return x.move(h[3], h[w.rnd.IntN(2)]) }) },
		func(w *worker) { w.transact(func(x *work) error { return x.move(h[2], h[0]) }) },
		func(w *worker) { w.transact(func(x *work) error { return x.move(h[2], h[1]) }) },
		func(w *worker) { w.transact(func(x *work) error { return x.move(h[3], h[0]) }) },
		func(w *worker) { w.transact(func(x *work) error { return x.move(h[3], h[1]) }) })
	c.finish()
}
