package sqltest

import (
	"testing"
)

// What a call costs must not depend on how much lies in the queue, on how many dead rows an old snapshot keeps, or on
// what the queue looked like when the session made its plans. Each test builds the situation in which a simpler
// implementation was measured to collapse, by 5 to 500 times, and allows 2 or 3 times.

// A dialog that is used again and again, while somebody holds an old snapshot: the counter of the sending side has
// as many dead versions as messages were sent.
func TestFlatSendOnReusedDialogUnderSnapshot(t *testing.T) {
	t.Parallel()
	f := newFlat(t)
	handle := f.dialogs("Work", 1)[0]
	f.holdSnapshot()
	took := f.sends(20000, handle)
	wantFlat(t, "send", took.first(), took.last(), 2)
}

// Received messages stay as dead rows at the front of the index.
func TestFlatReceiveUnderSnapshot(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		isStuck bool
	}{
		{"free", false},
		// A hint that could only move past the oldest message would stay for ever where a reader is stuck.
		{"behind a stuck group", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFlat(t)
			if test.isStuck {
				stuck := f.dialogs("Work", 1)
				f.fill(stuck, 1000)
				f.lockGroups(stuck...)
			}
			handles := f.dialogs("Work", 50)
			f.fill(handles, 100)
			f.holdSnapshot()
			seconds := f.turnover(20, 2, "Work", handles)
			var early, late micros
			for i := range 3 {
				early = append(early, seconds[i]...)
				late = append(late, seconds[len(seconds)-1-i]...)
			}
			wantFlat(t, "receive", early, late, 2)
		})
	}
}

// One message that can be had, behind more than 100,000 of groups that are locked.
func TestFlatReceiveBehindLockedGroups(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name       string
		dialogs    int
		perDialog  int
		isOneGroup bool
	}{
		{"one dialog", 1, 100000, false},
		{"one group of 1000 dialogs", 1000, 100, true},
		{"1000 groups", 1000, 100, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFlat(t)
			locked := f.dialogs
			if test.isOneGroup {
				locked = f.dialogsInOneGroup
			}
			handles := locked("Work", test.dialogs)
			f.fill(handles, test.perDialog)
			f.lockGroups(handles...)
			free := f.dialogs("Work", 1)[0]

			wantBelow(t, "first poll", f.another("newcomer").polls(1, "Work", 1, free, false), 50)
			wantBelow(t, "poll from the front", f.polls(50, "Work", 1, free, true), 15)
			wantBelow(t, "poll", f.polls(50, "Work", 1, free, false), 15)
			wantBelow(t, "poll for many", f.polls(50, "Work", 0, free, true), 15)
		})
	}
}

// Messages consumed under a snapshot are dead rows at the front of their own conversation, too, and of its group.
func TestFlatFirstMessageOfReusedDialogUnderSnapshot(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		atMost int
	}{{"one", 1}, {"ten", 10}, {"all", 0}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := newFlat(t)
			handle := f.dialogs("Work", 1)[0]
			f.holdSnapshot()
			before := f.polls(200, "Work", test.atMost, handle, false)
			for range 4 {
				f.fill([]string{handle}, 5000)
				f.receives(50, "Work", 100)
			}
			f.drain("Work")
			f.sends(1, handle)
			wantFlat(t, "receive", before, f.polls(200, "Work", test.atMost, handle, false), 3)
		})
	}
}
