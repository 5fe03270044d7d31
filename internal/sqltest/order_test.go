package sqltest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// DialogTimer, then Error, then everything else in sequence, however they arrived.
// Rules
func TestTimerThenErrorThenTheRest(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	for _, most := range []string{"null", "1", "2"} {
		left, right := startTalk(a, "zero", "one", "two")
		a.Exec("select sb.end_conversation($1::uuid, 12, 'no')", left)
		a.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", right)
		passTime(a, "2 hours")
		wantRows(t, "peeked", a.Query(`
select message_sequence_number, status, message_type_id in (1, 5)
  from sb.queue_messages where conversation_handle = $1::uuid
 order by message_sequence_number, message_type_id desc`, right), "-1|1|t", "-1|1|t", "0|1|f", "1|1|f", "2|1|f")
		var got []string
		for range 5 {
			got = append(got, take(b, "'RightQueue', "+most)...)
		}
		wantRows(t, "max_messages "+most, got, "DialogTimer", "Error 12", "zero", "one", "two")
		wantValue(t, "state", stateOf(b, right), "ER")
		b.Exec("select sb.end_conversation($1::uuid)", right)
	}

	// Numbers of what is handed out: -1 for DialogTimer and Error.
	left, right := startTalk(a, "zero")
	a.Exec("select sb.end_conversation($1::uuid, 12, 'no')", left)
	a.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", right)
	passTime(a, "2 hours")
	wantRows(t, "numbers", b.Query("select message_sequence_number, status, validation, message_body is null from sb.receive('RightQueue')"),
		"-1|0|E|t", "-1|0|X|f", "0|0|N|f")
}

// A timer comes first also when the group is found by a message of another conversation, and the timer of one
// conversation does not overtake another of higher priority.
func TestTimersAmongConversations(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	group := "33333333-3333-3333-3333-333333333333"
	var handles []string
	for i := range 3 {
		handle := a.Value("select sb.begin_dialog('Left', 'Right', 'Talk', related_conversation_group => $1::uuid)", group)
		say(a, handle, "ask")
		take(b, "'RightQueue'")
		say(b, peerOf(a, handle), fmt.Sprintf("%d.0", i), fmt.Sprintf("%d.1", i))
		a.Exec("select sb.begin_conversation_timer($1::uuid, '1 h')", handle)
		handles = append(handles, handle)
	}
	passTime(a, "2 hours")
	got := a.Query("select conversation_handle, coalesce(sb.body_text(message_body), 'timer') from sb.receive('LeftQueue')")
	var byHandle []string
	for _, handle := range handles {
		for _, row := range got {
			if h, body, _ := strings.Cut(row, "|"); h == handle {
				byHandle = append(byHandle, body)
			}
		}
	}
	wantRows(t, "within each conversation", byHandle, "timer", "0.0", "0.1", "timer", "1.0", "1.1", "timer", "2.0", "2.1")
	if changes := conversationChanges(got); changes != 2 {
		t.Errorf("conversations are mixed: %q", got)
	}
}

// conversationChanges counts how often the conversation changes from row to row: number of conversations minus one
// when each comes in one piece.
func conversationChanges(rows []string) int {
	changes := 0
	for i := 1; i < len(rows); i++ {
		if rows[i][:36] != rows[i-1][:36] {
			changes++
		}
	}
	return changes
}

// EndDialog keeps its place: behind everything sent before it, and the last.
// Rules: R-180
func TestEndDialogInItsPlace(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a, "zero", "one")
	a.Exec("select sb.end_conversation($1::uuid)", left)
	wantValue(t, "the end is there, unread", stateOf(b, right), "DI")
	b.ExecError("S8429", "select sb.send($1::uuid, 'Note', 'x')", right)
	var got []string
	for range 3 {
		got = append(got, b.Query("select message_sequence_number, message_type_id, coalesce(sb.body_text(message_body), '') from sb.receive('RightQueue', 1)")...)
	}
	wantRows(t, "one by one", got, "0|65536|zero", "1|65536|one", "2|2|")
	wantValue(t, "still", stateOf(b, right), "DI")
	wantRows(t, "nothing more", take(b, "'RightQueue'"))
}

// A whole conversation, then the next; by priority, then by age of the oldest message; max_messages cuts afterwards.
// Rules
func TestWholeConversationsOneAfterAnother(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	const group = "44444444-4444-4444-4444-444444444444"
	a.Exec("select sb.create_contract('Urgent', sent_by_any => '{Note}'); select sb.create_contract('Idle', sent_by_any => '{Note}')")
	a.Exec("select sb.alter_service('Left', add_contracts => '{Urgent,Idle}'), sb.alter_service('Right', add_contracts => '{Urgent,Idle}')")
	a.Exec("select sb.create_broker_priority('high', 'Urgent', 'Left', priority_level => 8::smallint), sb.create_broker_priority('low', 'Idle', priority_level => 2::smallint)")
	begin := func(contract string) string {
		handle := a.Value("select sb.begin_dialog('Left', 'Right', $1, related_conversation_group => $2::uuid)", contract, group)
		say(a, handle, "ask")
		take(b, "'RightQueue'")
		return peerOf(a, handle)
	}
	idle, plain, plain2, urgent := begin("Idle"), begin("Talk"), begin("Talk"), begin("Urgent")
	speak := func() {
		// Interleaved on arrival.
		for i := range 3 {
			for _, handle := range []string{idle, plain, plain2, urgent} {
				say(b, handle, map[string]string{idle: "idle", plain: "plain", plain2: "plain2", urgent: "urgent"}[handle]+fmt.Sprint(i))
			}
		}
	}
	want := []string{"urgent0", "urgent1", "urgent2", "plain0", "plain1", "plain2", "plain20", "plain21", "plain22", "idle0", "idle1", "idle2"}
	speak()
	a.Begin()
	wantRows(t, "priorities shown", a.Query("select distinct priority from sb.queue_messages where queue_name = 'LeftQueue' order by 1"), "2", "5", "8")
	wantRows(t, "all at once", take(a, "'LeftQueue'"), want...)
	a.Rollback()
	for most := range want {
		a.Begin()
		wantRows(t, fmt.Sprint("max_messages ", most+1), take(a, fmt.Sprintf("'LeftQueue', %d", most+1)), want[:most+1]...)
		a.Rollback()
		a.Exec("select sb.alter_queue('LeftQueue', enabled => true)") // forgets the rollback
	}
	wantRows(t, "by group", take(a, "'LeftQueue', for_group => '"+group+"'"), want...)

	// By handle only that conversation.
	a.Exec("select sb.alter_queue('LeftQueue', enabled => true)")
	speak()
	wantRows(t, "by handle", take(a, "'LeftQueue', 2, for_conversation => '"+peerOf(a, plain)+"'"), "plain0", "plain1")
	wantRows(t, "the rest", take(a, "'LeftQueue', 4"), "urgent0", "urgent1", "urgent2", "plain20")
}

// The group with the highest priority that is free comes first, and get_conversation_group chooses like receive.
// Rules
func TestPrioritiesBetweenGroups(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec("select sb.create_contract('Urgent', sent_by_any => '{Note}')")
	a.Exec("select sb.alter_service('Right', add_contracts => '{Urgent}')")
	startTalk(a, "old and plain")
	a.Exec("select sb.create_broker_priority('high', 'Urgent', priority_level => 9::smallint)")
	startTalk(a, "plain")
	urgent := a.Value("select sb.begin_dialog('Left', 'Right', 'Urgent')")
	say(a, urgent, "urgent")
	lowered := a.Value("select sb.begin_dialog('Left', 'Right', 'Urgent')")
	say(a, lowered, "before the change")
	a.Exec("select sb.alter_broker_priority('high', priority_level => 1::smallint)")
	after := a.Value("select sb.begin_dialog('Left', 'Right', 'Urgent')")
	say(a, after, "after the change")
	a.Begin()
	wantValue(t, "group", a.Value("select sb.get_conversation_group('RightQueue')"), groupOf(a, peerOf(a, urgent)))
	b.Begin()
	wantRows(t, "beside it", take(b, "'RightQueue', 1"), "before the change")
	a.Commit()
	b.Commit()
	var got []string
	for range 5 {
		got = append(got, take(a, "'RightQueue', 1")...)
	}
	wantRows(t, "by priority, then age; the level is fixed at the beginning (R-100)", got, "urgent", "old and plain", "plain", "after the change")
}

// One receive, one group; a group has all its services' conversations, and nothing of another group.
// Rules: R-175
func TestOneGroupAtATime(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	for i := range 10 {
		startTalk(a, fmt.Sprint(i, "a"), fmt.Sprint(i, "b"))
	}
	seen := map[string]bool{}
	for range 10 {
		rows := b.Query("select conversation_group_id, sb.body_text(message_body) from sb.receive('RightQueue')")
		if len(rows) != 2 || conversationChanges(rows) != 0 || seen[rows[0][:36]] {
			t.Errorf("received %q", rows)
		}
		seen[rows[0][:36]] = true
	}
	wantRows(t, "nothing left", take(b, "'RightQueue'"))
}

// About the oldest first, whatever the sizes of the groups are.
// Rules: R-064
func TestOldestGroupFirst(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	var lefts []string
	for range 5 {
		lefts = append(lefts, beginTalk(a))
	}
	for i := range 15 {
		say(a, lefts[(i*2)%5], fmt.Sprint(i))
	}
	got := b.Query("select sb.body_text(message_body) from sb.receive('RightQueue', 1)")
	for range 14 {
		got = append(got, b.Query("select sb.body_text(message_body) from sb.receive('RightQueue', 1)")...)
	}
	want := make([]string, 15)
	for i := range want {
		want[i] = fmt.Sprint(i)
	}
	if !slices.Equal(got, want) {
		t.Errorf("single reader: got %q", got)
	}
}

// The order within a conversation holds across its many receives, past the points where the receive cursor moves.
func TestLongConversation(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	left, right := startTalk(a)
	a.Exec(`
do $$
begin
  for i in 0..499 loop
    perform sb.send('` + left + `', 'Note', i::text);
  end loop;
end $$`)
	next := 0
	check := func(rows []string) {
		t.Helper()
		for _, row := range rows {
			if want := fmt.Sprintf("%d|%d", next, next); row != want {
				t.Fatalf("got %q, want %q", row, want)
			}
			next++
		}
	}
	const columns = "select message_sequence_number, sb.body_text(message_body) from sb.receive("
	for round := range 20 {
		if round%5 == 4 {
			b.Begin()
			b.Query(columns + "'RightQueue', 70)")
			b.Rollback()
		}
		switch round % 3 {
		case 0:
			check(b.Query(columns + "'RightQueue', 1)"))
		case 1:
			check(b.Query(columns+"'RightQueue', 63, for_conversation => $1::uuid)", right))
		case 2:
			check(b.Query(columns + "'RightQueue', 11)"))
		}
	}
	// An Error jumps ahead of the cursor, the rest follows.
	a.Exec("select sb.end_conversation($1::uuid, 3, 'x')", left)
	wantRows(t, "Error", take(b, "'RightQueue', 1"), "Error 3")
	check(b.Query(columns + "'RightQueue')"))
	if next != 500 {
		t.Errorf("received %d", next)
	}
}
