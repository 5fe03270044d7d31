package conformance

import "testing"

// The patterns that Service Broker's documentation and its authors prescribe, as an application would write them here.

// A reader with a savepoint before the receive, which counts failures by conversation and gives up on one that fails
// too often, so that the queue is never switched off. Here the group has to be locked before the savepoint.
func TestSavepointReader(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec(`
create table public.failures (conversation_handle uuid primary key, n integer not null);
create table public.work (body text);
create procedure public.read_one() language plpgsql as $$
declare
  g uuid := sb.get_conversation_group('RightQueue');
  m record;
  failed integer;
begin
  if g is null then
    return;
  end if;
  begin
    for m in select r.* from sb.receive('RightQueue', 1, for_group => g) as r loop
      if m.message_type_id in (1, 2) then
        perform sb.end_conversation(m.conversation_handle);
      else
        insert into public.work values (sb.body_text(m.message_body)::integer::text);
      end if;
    end loop;
  exception when others then
    insert into public.failures as f values (m.conversation_handle, 1)
    on conflict (conversation_handle) do update set n = f.n + 1
    returning n into failed;
    if failed >= 3 then
      perform sb.end_conversation(m.conversation_handle, 1, sqlerrm);
    end if;
  end;
end $$`)
	start(a, "not a number", "1")
	good, _ := start(a, "2")
	// Rules
	for range 8 {
		b.Exec("call public.read_one()")
	}
	want(t, "work", a.Query("select body from public.work order by 1"), "2")
	want(t, "failures", a.Query("select n from public.failures"), "3")
	want(t, "never switched off", a.Query("select is_on, consecutive_rollbacks from sb.queue_statistics where queue_name = 'RightQueue'"), "t|0")
	wantQuery(t, a, "the sender knows", "select sb.error_code(message_body), sb.error_description(message_body) ~ 'integer' from sb.receive('LeftQueue')", "1|t")

	// Locked before the savepoint the group stays locked; locked after it, it is given back with it.
	// Rules
	say(a, good, "3")
	group := b.Value("select conversation_group_id from sb.queue_messages where queue_name = 'RightQueue' and sb.body_text(message_body) = '3'")
	for _, before := range []bool{true, false} {
		b.Begin()
		if before {
			want(t, "locked", b.Query("select sb.get_conversation_group('RightQueue')"), group)
		}
		b.Exec("savepoint s")
		want(t, "received", take(b, "'RightQueue'"), "3")
		b.Exec("rollback to s")
		a.Begin()
		want(t, "who else gets the group", a.Query("select sb.get_conversation_group('RightQueue') is null"), map[bool]string{true: "t", false: "f"}[before])
		a.Rollback()
		if before { // and the reader goes on with it
			want(t, "again", take(b, "'RightQueue'"), "3")
		}
		b.Rollback()
	}

	// What fails only outside of the database is noted and committed, not rolled back for ever.
	// Rules: R-363
	b.Begin()
	want(t, "received", take(b, "'RightQueue'"), "3")
	b.Exec("insert into public.work values ('3 could not be delivered to the outside')")
	b.Commit()
	want(t, "not again", take(b, "'RightQueue'"))
}

// Casts stand after the receive, each part in a block of its own.
func TestSeparateBlocks(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	// Rules: R-413
	a.Exec(`
create procedure public.read_one(inout result text default null) language plpgsql as $$
declare
  m record;
begin
  begin
    select r.* into m from sb.receive('RightQueue', 1) as r;
  exception when sqlstate 'S9617' then
    result := 'stopped';
    return;
  end;
  if m.conversation_handle is null then
    result := 'nothing';
    return;
  end if;
  begin
    result := 'order ' || xpath('/order/text()', sb.body_xml(m.message_body))::text;
  exception when invalid_xml_content then
    perform sb.end_conversation(m.conversation_handle, 2, 'no order');
    result := 'refused';
  end;
end $$`)
	start(a, "<order>7</order>")
	start(a, "<order>8")
	for _, result := range []string{"order {7}", "refused", "nothing"} {
		want(t, "one after another", b.Query("call public.read_one()"), result)
	}
	a.Exec(stopRight)
	want(t, "stopped", b.Query("call public.read_one()"), "stopped")
	want(t, "the sender knows", take(a, "'LeftQueue'"), "Error 2")
}

// A dialog is used for many messages and by and by replaced by a new one, when a timer says so.
func TestRecycledDialog(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	a.Exec(`
select sb.create_message_type('EndOfStream');
select sb.create_contract('Stream', '{Note,EndOfStream}');
select sb.alter_service('Right', add_contracts => '{Stream}'), sb.alter_queue('LeftQueue', retention => true);
create table public.handles (to_service text primary key, handle uuid not null);
create function public.send_note(body text) returns uuid language plpgsql as $$
declare
  h uuid;
begin
  -- The table first, then the dialog, here and in the reader.
  select t.handle into h from public.handles as t where t.to_service = 'Right' for update;
  if not found then
    h := sb.begin_dialog('Left', 'Right', 'Stream');
    perform sb.begin_conversation_timer(h, '1 hour');
    insert into public.handles values ('Right', h);
  end if;
  perform sb.send(h, 'Note', body);
  return h;
end $$;
create function public.read_left() returns setof text language plpgsql as $$
declare
  m record;
begin
  for m in select r.* from sb.receive('LeftQueue') as r loop
    case m.message_type_id
      when 5 then
        delete from public.handles as t where t.handle = m.conversation_handle;
        perform sb.send(m.conversation_handle, 'EndOfStream');
        return next 'recycled';
      when 1, 2 then
        delete from public.handles as t where t.handle = m.conversation_handle;
        perform sb.end_conversation(m.conversation_handle);
        return next 'ended';
    end case;
  end loop;
end $$;
create function public.read_right() returns setof text language plpgsql as $$
declare
  m record;
begin
  for m in select r.* from sb.receive('RightQueue') as r loop
    case
      when m.message_type_name = 'EndOfStream' or m.message_type_id in (1, 2) then
        perform sb.end_conversation(m.conversation_handle);
      else
        return next sb.body_text(m.message_body);
    end case;
  end loop;
end $$`)
	// Rules
	first := a.Value("select public.send_note('one')")
	want(t, "one dialog", a.Query("select public.send_note('two')"), first)
	wantQuery(t, a, "copies of what was sent", "select sb.body_text(message_body) from sb.queue_messages where status = 3 order by queuing_order", "one", "two")
	a.Exec("update sb_internal.due set due_at = now()")
	want(t, "timer", a.Query("select * from public.read_left()"), "recycled")
	second := a.Value("select public.send_note('three')")
	if second == first {
		t.Error("not recycled")
	}
	var got []string
	for range 3 {
		got = append(got, b.Query("select * from public.read_right()")...)
	}
	want(t, "all notes, in order", got, "one", "two", "three")
	want(t, "the old dialog has ended", append(a.Query("select * from public.read_left()"), stateOf(a, first), stateOf(a, second)), "ended", "", "CO")
	wantQuery(t, a, "its copies are gone", "select sb.body_text(message_body) from sb.queue_messages where status = 3", "three")
	// The target is refused for good: the loss is what was sent on this dialog, and the next note goes on a new one.
	a.Exec("select sb.end_conversation(conversation_handle, 9, 'no more') from sb.conversation_endpoints where not is_initiator")
	want(t, "error", a.Query("select * from public.read_left()"), "ended")
	a.Exec("select public.send_note('four')")
	want(t, "on a new dialog", b.Query("select * from public.read_right()"), "four")
}

// Publishing the other way round: subscribers begin the dialogs, and the publisher sends on all of them at once.
func TestReversedDialog(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	// Rules: R-411
	const subscribers = 3
	for range subscribers {
		start(a, "subscribe")
	}
	b.Exec("create table public.subscribers (handle uuid primary key)")
	for range subscribers {
		b.Exec("insert into public.subscribers select conversation_handle from sb.receive('RightQueue')")
	}
	b.Exec("select sb.multicast(array(select handle from public.subscribers), 'Note', 'news')")
	for range subscribers {
		want(t, "published", take(a, "'LeftQueue'"), "news")
	}
	want(t, "nothing more", take(a, "'LeftQueue'"))
	// One that leaves is taken off the list when its EndDialog is read.
	a.Exec("select sb.end_conversation((select conversation_handle from sb.conversation_endpoints where is_initiator limit 1))")
	b.Exec("delete from public.subscribers where handle in (select conversation_handle from sb.receive('RightQueue') where message_type_id = 2)")
	b.Exec("select sb.multicast(array(select handle from public.subscribers), 'Note', 'more news')")
	want(t, "published to the rest", append(take(a, "'LeftQueue'"), take(a, "'LeftQueue'")...), "more news", "more news")
}

// With retention, what was done in a conversation can be undone from the newest step on when it fails.
func TestCompensation(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	// Rules
	a.Exec("select sb.alter_queue('LeftQueue', retention => true); create table public.undone (id bigserial, what text); create table public.audit (what text)")
	left, right := start(a, "reserve seat", "reserve hotel")
	say(b, right, "seat 12")
	want(t, "answer", take(a, "'LeftQueue'"), "seat 12")
	b.Exec("select sb.end_conversation($1::uuid, 3, 'no hotel')", right)
	a.Begin()
	want(t, "error", take(a, "'LeftQueue'"), "Error 3")
	a.Exec(`
insert into public.audit select sb.body_text(m.message_body) from sb.queue_messages as m where m.conversation_handle = $1::uuid and m.status = 3;`, left)
	a.Exec(`
insert into public.undone (what)
select sb.body_text(m.message_body)
  from sb.queue_messages as m
 where m.conversation_handle = $1::uuid and m.status in (0, 3) and m.message_type_name = 'Note'
 order by m.queuing_order desc`, left)
	end(a, left)
	a.Commit()
	wantQuery(t, a, "newest first", "select what from public.undone order by id", "seat 12", "reserve hotel", "reserve seat")
	wantQuery(t, a, "nothing is retained", "select * from sb.queue_messages")
	wantQuery(t, a, "what was copied before stays", "select count(*) from public.audit", "2")
}

// An application is taken out: senders first, then what is left of its conversations, its services, then the rest.
func TestUninstall(t *testing.T) {
	t.Parallel()
	_, a, b := newTalk(t)
	// Rules: R-416
	a.Exec("select sb.create_route('to right', 'LOCAL', 'Right')")
	for range 3 {
		start(a, "x")
	}
	before := a.Value("select count(*) from sb.service_contracts") + a.Value("select count(*) from sb.service_message_types")
	a.Exec("select sb.alter_queue('LeftQueue', enabled => false)")
	for {
		handle := b.Query("select conversation_handle from sb.receive('RightQueue', 1)")
		if len(handle) == 0 {
			break
		}
		b.Exec("select sb.end_conversation($1::uuid, 1, 'closed for good')", handle[0])
	}
	a.Exec("select sb.alter_queue('LeftQueue', enabled => true)")
	want(t, "the others hear of it", take(a, "'LeftQueue'"), "Error 1")
	a.Exec("select sb.drop_route('to right')")
	a.ExecError("S3716", "select sb.drop_queue('RightQueue')")
	a.ExecError("S3716", "select sb.drop_contract('Talk')")
	a.ExecError("S3716", "select sb.drop_message_type('Note')")
	for _, drop := range []string{"service('Right')", "service('Left')", "contract('Talk')", "message_type('Note')", "queue('RightQueue')", "queue('LeftQueue')"} {
		a.Exec("select sb.drop_" + drop)
	}
	wantQuery(t, a, "what is left", `
select (select count(*) from sb.conversation_endpoints), (select count(*) from sb.queue_messages), (select count(*) from sb.transmission_queue),
       (select count(*) from sb.services where service_id >= 65536), (select count(*) from sb.service_queues where not is_ms_shipped)`, "0|0|0|0|0")
	if after := a.Value("select count(*) from sb.service_contracts") + a.Value("select count(*) from sb.service_message_types"); after == before {
		t.Error("contract and type are still there")
	}
}
