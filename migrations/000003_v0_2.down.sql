set local lock_timeout = '10s';

-- As in the up file.
do $$
begin
  for attempt in 1..20 loop
    begin
      -- Shorter than deadlock_timeout: whoever is in our way gets on first, and those behind us wait no longer than this.
      perform pg_catalog.set_config('lock_timeout', least(attempt * 100, 900) || 'ms', true);
      lock table sb_internal.queue, sb_internal.endpoint, sb_internal.send_counter, sb_internal.service, sb_internal.service_status, sb_internal.service_contract, sb_internal.route, sb_internal.message, sb_internal.retained_message in access exclusive mode;
      exit;
    exception
      when lock_not_available then
        if attempt = 20 then
          raise exception using errcode = 'lock_not_available', message = 'the tables of conversations and messages are in use all the time',
            hint = 'try again when no long transaction works with queues: pg_stat_activity shows them';
        end if;
    end;
    perform pg_catalog.pg_sleep(pg_catalog.random() * 0.2);
  end loop;
  perform pg_catalog.set_config('lock_timeout', '10s', true);
end
$$;
alter table sb_internal.message replica identity default;
alter table sb_internal.retained_message replica identity default;

alter table sb_internal.endpoint add constraint endpoint_service_id_fkey
  foreign key (service_id) references sb_internal.service (service_id);
comment on constraint endpoint_service_id_fkey on sb_internal.endpoint is
  'The one foreign key of the messaging tables: keeps drop_service from racing the first SEND to it.';
alter table sb_internal.endpoint add constraint endpoint_state_check check (state in ('CO', 'DI', 'DO', 'ER'));
comment on column sb_internal.endpoint.has_counter is
  'The side has its row in send_counter: an initiator from the start, a target from its first SEND. Writing it makes a repeatable read transaction that cannot see the row fail (40001) instead of counting from zero again.';
update sb_internal.endpoint as e
   set has_counter = true
 where not e.has_counter
   and e.is_initiator;
insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
select e.conversation_handle, -1
  from sb_internal.endpoint as e
 where e.is_initiator
   and e.state <> 'DO'
   and not exists (
     select 1
       from sb_internal.send_counter as c
      where c.conversation_handle = e.conversation_handle);
update sb_internal.endpoint as e
   set has_counter = true
 where not e.has_counter
   and exists (
     select 1
       from sb_internal.send_counter as c
      where c.conversation_handle = e.conversation_handle);

-- sqlgen:generated from sql/ by sqlgen snapshot: edits between here and sqlgen:done are lost
alter function sb_internal._create_endpoint(conversation_handle uuid, peer_handle uuid, conversation_group_id uuid, service_id integer, service_contract_id integer, is_initiator boolean, far_service text, far_broker_instance text, lifetime timestamptz, priority smallint) rename to "_create_endpoint~old";
alter function sb_internal._create_target(e sb_internal.endpoint, own sb_internal.service_status, target sb_internal.service_status, out outcome text, out priority smallint) rename to "_create_target~old";
alter function sb_internal._find_target(far_service text) rename to "_find_target~old";
alter function sb_internal._first_send(conversation_handle uuid, quantity integer) rename to "_first_send~old";
alter function sb_internal._has_message(for_conversation uuid, group_id uuid) rename to "_has_message~old";
alter function sb_internal._hold_service(service_id integer) rename to "_hold_service~old";
alter function sb_internal._leave_group(conversation_handle uuid, conversation_group_id uuid) rename to "_leave_group~old";
alter function sb_internal._lock_conversations(kind text, name text, id integer) rename to "_lock_conversations~old";
alter function sb_internal._may_become(caller name, role name) rename to "_may_become~old";
alter function sb_internal._poison_record(queue_id integer, is_alarm_off boolean) rename to "_poison_record~old";
alter function sb_internal._require_read_committed(what text) rename to "_require_read_committed~old";
alter function sb_internal._share_names(service text, contract text, far_service text) rename to "_share_names~old";
alter function sb_internal._stopped_by(queue_id integer) rename to "_stopped_by~old";
alter function sb_internal._sync_all_privileges() rename to "_sync_all_privileges~old";
alter function sb_internal._take_group(queue_id integer, group_id uuid, priority_levels smallint[], max_messages bigint, is_retained boolean, taken_before bigint) rename to "_take_group~old";
alter function sb_internal._tie_loose_ends() rename to "_tie_loose_ends~old";
alter function sb_internal._activation_plan(caller name, queue_names text[]) rename to "_activation_plan~old";
alter function sb_internal._excuse_reader(caller name, queue_id integer, pid integer) rename to "_excuse_reader~old";
alter function sb_internal._probe_queue(caller name, queue_id integer, out head bigint, out receives bigint, out waited double precision) rename to "_probe_queue~old";
alter function sb.activation_plan(queue_names text[]) rename to "activation_plan~old";
alter function sb.excuse_reader(queue_id integer, pid integer) rename to "excuse_reader~old";
alter function sb.probe_queue(queue_id integer, out head bigint, out receives bigint, out waited double precision) rename to "probe_queue~old";
alter view sb.broker rename to "broker~old";
alter view sb.service_queues rename to "service_queues~old";
alter trigger service_contract_status on sb_internal.service_contract rename to "service_contract_status~old";
alter trigger route_status on sb_internal.route rename to "route_status~old";
-- sqlgen:begin functions/internal/_activation_procedure.sql sha256:9167ff745a0b441a6697d6f373e968a76a30c51464157d83847c9d75f925d75c
create or replace function sb_internal._activation_procedure(name text)
  returns text
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  parts text[];
  found_procedure record;
begin
  begin
    parts := parse_ident(_activation_procedure.name);
  exception
    when invalid_parameter_value then
      parts := '{}';
  end;
  if cardinality(parts) <> 2 then
    perform sb_internal._raise('S9614', array[_activation_procedure.name], 'reason=not a schema.name');
  end if;
  -- Of several overloads the one without arguments is meant.
  select n.oid as schema_oid, n.nspname, p.proname, p.pronargs
    into found_procedure
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
   where (n.nspname = parts[1] or (parts[1] = 'pg_temp' and n.oid = pg_my_temp_schema()))
     and p.proname = parts[2]
     and p.prokind in ('f', 'p')
   order by p.pronargs
   limit 1;
  if not found then
    perform sb_internal._raise('S9614', array[_activation_procedure.name]);
  elsif starts_with(found_procedure.nspname, 'pg_temp_') then
    perform sb_internal._raise('S9742', array[_activation_procedure.name]);
  elsif found_procedure.pronargs > 0 then
    perform sb_internal._raise('S9653', array[_activation_procedure.name]);
  end if;
  return format('%I.%I', found_procedure.nspname, found_procedure.proname);
end
$$;
comment on function sb_internal._activation_procedure(text) is
  'The activation procedure as it is stored, quoted schema.name. Errors: S9614 no such function or procedure, S9653 takes arguments, S9742 temporary (R-042).';
revoke all on function sb_internal._activation_procedure(text) from public;
-- sqlgen:end functions/internal/_activation_procedure.sql
-- sqlgen:begin functions/internal/_after_restore.sql sha256:7ef8b14dcbc1d75a23e613bdff118ddcb666a3a038085481ffb84556e7fd6da9
create or replace function sb_internal._after_restore(caller name)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  q record;
  level smallint;
  highest bigint;
begin
  perform sb_internal._require_admin(_after_restore.caller, 'call after_restore');
  for q in
    select o.queue_id, b.priority_levels
      from sb_internal.queue as o
     cross join sb_internal.broker as b
  loop
    perform sb_internal._queue_sequences(q.queue_id);
    perform sb_internal._poison_reset(q.queue_id);
    perform setval(('sb_internal.queue_' || q.queue_id || '_search')::regclass, 0);
    foreach level in array q.priority_levels loop
      perform setval(('sb_internal.queue_' || q.queue_id || '_hint_' || level)::regclass, 0);
    end loop;
  end loop;
  select greatest(
           (select max(m.queuing_order) from sb_internal.message as m),
           (select max(r.queuing_order) from sb_internal.retained_message as r))
    into highest;
  if highest >= coalesce(pg_sequence_last_value('sb_internal.queuing_order'), 0) then
    perform setval('sb_internal.queuing_order', highest);
  end if;
  perform sb_internal._next_catalog_ids();
end
$$;
comment on function sb_internal._after_restore(name) is
  'sb.after_restore with the callers rights checked.';
revoke all on function sb_internal._after_restore(name) from public;
-- sqlgen:end functions/internal/_after_restore.sql
-- sqlgen:begin functions/internal/_alter_authorization.sql sha256:a6e5bbcdf44ff998016f1d492eb3b3b544fb321fd2045d510c4672885c96a076
create or replace function sb_internal._alter_authorization(
  caller name,
  kind text,
  name text,
  new_owner name
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  what text := replace(lower(_alter_authorization.kind), '_', ' ');
  object record;
begin
  if what is null or what not in ('message type', 'contract', 'queue', 'service', 'route') then
    perform sb_internal._raise('22023', array['kind ' || coalesce(_alter_authorization.kind, '(null)')
      || ' is none of message_type, contract, queue, service, route']);
  end if;
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup(what, _alter_authorization.name);
  perform sb_internal._require_owner(_alter_authorization.caller, object.owner,
    'alter the owner of ' || what || ' ' || _alter_authorization.name);
  perform sb_internal._require_user_object(object.id, what || ' ' || _alter_authorization.name);
  perform sb_internal._require_role(_alter_authorization.new_owner);
  if not pg_has_role(_alter_authorization.caller, _alter_authorization.new_owner, 'member') then
    perform sb_internal._raise('42501', array[_alter_authorization.caller::text,
      'give objects to role ' || _alter_authorization.new_owner],
      format('cure=grant %I to %I', _alter_authorization.new_owner, _alter_authorization.caller));
  end if;

  case what
    when 'message type' then
      update sb_internal.message_type as t
         set owner = _alter_authorization.new_owner
       where t.message_type_id = object.id;
    when 'contract' then
      update sb_internal.contract as c
         set owner = _alter_authorization.new_owner
       where c.service_contract_id = object.id;
    when 'queue' then
      -- What runs as the owner goes on running as the owner, as EXECUTE AS OWNER does.
      update sb_internal.queue as q
         set owner = _alter_authorization.new_owner,
             execute_as = case when q.execute_as = q.owner then _alter_authorization.new_owner else q.execute_as end
       where q.queue_id = object.id;
    when 'service' then
      update sb_internal.service as s
         set owner = _alter_authorization.new_owner
       where s.service_id = object.id;
    when 'route' then
      update sb_internal.route as r
         set owner = _alter_authorization.new_owner
       where r.route_id = object.id;
  end case;
  perform sb_internal._sync_privileges(array[object.owner, _alter_authorization.new_owner]);
end
$$;
comment on function sb_internal._alter_authorization(name, text, text, name) is
  'ALTER AUTHORIZATION behind sb.alter_authorization.';
revoke all on function sb_internal._alter_authorization(name, text, text, name) from public;
-- sqlgen:end functions/internal/_alter_authorization.sql
-- sqlgen:begin functions/internal/_alter_queue.sql sha256:eff23b7999fba7b6153c3a4204bb6f0710d0c3d13764b2294a22bd240e9f0965
create or replace function sb_internal._alter_queue(
  caller name,
  name text,
  enabled boolean,
  retention boolean,
  activation_procedure text,
  max_queue_readers integer,
  activation_enabled boolean,
  execute_as name,
  poison_message_handling boolean,
  drop_activation boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  changes_activation boolean := num_nonnulls(_alter_queue.activation_procedure, _alter_queue.max_queue_readers,
    _alter_queue.activation_enabled, _alter_queue.execute_as) > 0;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('queue', _alter_queue.name);
  perform sb_internal._require_owner(_alter_queue.caller, object.owner, 'alter queue ' || _alter_queue.name);
  perform sb_internal._require_user_object(object.id, 'queue ' || _alter_queue.name);
  if _alter_queue.drop_activation and changes_activation then
    perform sb_internal._raise('22023', array['drop_activation excludes all other activation settings']);
  elsif _alter_queue.drop_activation is not true and not changes_activation
    and num_nonnulls(_alter_queue.enabled, _alter_queue.retention, _alter_queue.poison_message_handling) = 0
  then
    perform sb_internal._raise('22023', array['nothing to change for queue ' || _alter_queue.name]);
  end if;

  -- Switching on again frees a queue whose reader was started but never received (R-317). Before the
  -- queue row, as in a send whose event finds its subscriber gone.
  if _alter_queue.enabled or _alter_queue.activation_enabled then
    update sb_internal.queue_monitor as m
       set state = 'INACTIVE'
     where m.queue_id = object.id
       and m.state <> 'INACTIVE';
  end if;
  if _alter_queue.drop_activation then
    update sb_internal.queue as q
       set activation_procedure = null,
           max_readers = null,
           is_activation_enabled = false,
           execute_as = null
     where q.queue_id = object.id;
  elsif changes_activation then
    if _alter_queue.activation_enabled and _alter_queue.activation_procedure is null
      and (select q.activation_procedure is null from sb_internal.queue as q where q.queue_id = object.id)
    then
      perform sb_internal._raise('S9614', array['(none)'], 'queue=' || _alter_queue.name);
    end if;
    perform sb_internal._set_activation(_alter_queue.caller, object.id, _alter_queue.activation_procedure,
      _alter_queue.max_queue_readers, _alter_queue.activation_enabled, _alter_queue.execute_as);
  end if;
  update sb_internal.queue as q
     set is_enabled = coalesce(_alter_queue.enabled, q.is_enabled),
         is_retention_enabled = coalesce(_alter_queue.retention, q.is_retention_enabled),
         is_poison_message_handling_enabled =
           coalesce(_alter_queue.poison_message_handling, q.is_poison_message_handling_enabled)
   where q.queue_id = object.id;
  if _alter_queue.enabled then
    perform sb_internal._poison_reset(object.id);
    perform sb_internal._deliver_now(object.id, null);
    perform sb_internal._look_again(object.id);
  end if;
  -- Not only for those who announced that they wait: whoever listens has to look again.
  perform pg_notify('sb_queue_' || object.id, '');
  perform sb_internal._announce(
    case _alter_queue.enabled when true then 'queue_enabled' when false then 'queue_disabled' else 'queue_altered' end,
    'queue', _alter_queue.name);
end
$$;
comment on function sb_internal._alter_queue(name, text, boolean, boolean, text, integer, boolean, name, boolean, boolean) is
  'ALTER QUEUE behind sb.alter_queue.';
revoke all on function sb_internal._alter_queue(name, text, boolean, boolean, text, integer, boolean, name, boolean, boolean) from public;
-- sqlgen:end functions/internal/_alter_queue.sql
-- sqlgen:begin functions/internal/_alter_route.sql sha256:f38b9c636d7d9edeb1a2296c198b4494206525a5f5dcdd005de2d6404186cb5c
create or replace function sb_internal._alter_route(
  caller name,
  name text,
  address text,
  service_name text,
  broker_instance text,
  lifetime interval,
  mirror_address text
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  r sb_internal.route;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('route', _alter_route.name);
  perform sb_internal._require_owner(_alter_route.caller, object.owner, 'alter route ' || _alter_route.name);
  if num_nonnulls(_alter_route.address, _alter_route.service_name, _alter_route.broker_instance,
    _alter_route.lifetime, _alter_route.mirror_address) = 0
  then
    perform sb_internal._raise('22023', array['nothing to change for route ' || _alter_route.name]);
  end if;
  update sb_internal.route as o
     set address = coalesce(_alter_route.address, o.address),
         remote_service_name = coalesce(_alter_route.service_name, o.remote_service_name),
         broker_instance = coalesce(_alter_route.broker_instance, o.broker_instance),
         lifetime = coalesce(sb_internal._route_expiry(_alter_route.lifetime), o.lifetime),
         mirror_address = coalesce(_alter_route.mirror_address, o.mirror_address)
   where o.route_id = object.id
  returning o.* into r;
  perform sb_internal._check_route(r);
  perform sb_internal._route_changed('route_altered', r);
end
$$;
comment on function sb_internal._alter_route(name, text, text, text, text, interval, text) is
  'ALTER ROUTE behind sb.alter_route.';
revoke all on function sb_internal._alter_route(name, text, text, text, text, interval, text) from public;
-- sqlgen:end functions/internal/_alter_route.sql
-- sqlgen:begin functions/internal/_begin.sql sha256:6e6f3a3416baea04b190722b563eca541ebbbf0fee7bfbeca4e1721832f82bf1
create or replace function sb_internal._begin(
  service_id integer,
  service_contract_id integer,
  far_service text,
  far_broker_instance text,
  conversation_group_id uuid,
  lifetime timestamptz
)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  handle uuid := gen_random_uuid();
begin
  -- The lock that the endpoint's foreign key takes anyway: against a service being dropped it is a
  -- plain "not found" this way. After the group lock, as the key would.
  perform 1
     from sb_internal.service as s
    where s.service_id = _begin.service_id
      for key share;
  if not found then
    perform sb_internal._raise('S8423', array[_begin.service_id::text]);
  end if;
  -- A fresh dialog's group takes the handle's value: one uuid less to make, one page less to touch.
  if _begin.conversation_group_id is null then
    insert into sb.conversation_group (conversation_group_id, service_id)
    values (handle, _begin.service_id);
  end if;
  perform sb_internal._create_endpoint(handle, gen_random_uuid(), coalesce(_begin.conversation_group_id, handle),
    _begin.service_id, _begin.service_contract_id, true, _begin.far_service, _begin.far_broker_instance,
    _begin.lifetime, cardinality(b.priority_levels) > 1)
     from sb_internal.broker as b
    where b.singleton;
  return handle;
end
$$;
comment on function sb_internal._begin(integer, integer, text, text, uuid, timestamptz) is
  'Creates the initiator side of a dialog, state SO; rights and arguments are checked by the caller. conversation_group_id: a group that the caller has locked, or null for a new one.';
revoke all on function sb_internal._begin(integer, integer, text, text, uuid, timestamptz) from public;
-- sqlgen:end functions/internal/_begin.sql
-- sqlgen:begin functions/internal/_begin_conversation_timer.sql sha256:9953e975b6ffd60c1fc1fdefc4a1803e83674b0add6b089892fec78b6843551b
create or replace function sb_internal._begin_conversation_timer(
  caller name,
  conversation_handle uuid,
  timeout interval
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint;
  fires_at timestamptz;
  queue integer;
begin
  if _begin_conversation_timer.timeout is null or _begin_conversation_timer.timeout <= interval '0' then
    perform sb_internal._raise('22023', array['timeout must be greater than zero']);
  end if;
  if extract(epoch from _begin_conversation_timer.timeout) > 2147483647 then
    perform sb_internal._raise('22023', array['timeout may be at most 2147483647 seconds']);
  end if;
  e := sb_internal._hold_conversation(_begin_conversation_timer.conversation_handle);
  perform sb_internal._may_use_conversation(_begin_conversation_timer.caller, e, 'set a timer on');
  if e.state = 'DO' then
    perform sb_internal._raise('S8458', array[e.conversation_handle::text, e.state]);
  end if;
  fires_at := sb_internal._now() + _begin_conversation_timer.timeout;
  if fires_at > e.lifetime then
    perform sb_internal._raise('S8410', array[e.conversation_handle::text]);
  end if;
  select s.queue_id
    into queue
    from sb_internal.service as s
   where s.service_id = e.service_id;
  insert into sb_internal.due as d (conversation_handle, is_lifetime, conversation_group_id, queue_id, priority, due_at)
  values (e.conversation_handle, false, e.conversation_group_id, queue, e.priority,
    fires_at)
  on conflict on constraint due_pkey do update
     set due_at = excluded.due_at;
  -- Whoever sleeps until the earliest due time has to hear of an earlier one.
  perform sb_internal._wake(queue);
end
$$;
comment on function sb_internal._begin_conversation_timer(name, uuid, interval) is
  'BEGIN CONVERSATION TIMER behind sb.begin_conversation_timer.';
revoke all on function sb_internal._begin_conversation_timer(name, uuid, interval) from public;
-- sqlgen:end functions/internal/_begin_conversation_timer.sql
-- sqlgen:begin functions/internal/_begin_dialog.sql sha256:fae7617dd3a31fb15bfd83e6b1fcf86567ec0461075ee480dbfc505d03caf25d
-- Plans are made once a session, perhaps while the tables are empty, and not again at every call: see _receive.
create or replace function sb_internal._begin_dialog(
  caller name,
  from_service text,
  to_service text,
  on_contract text,
  broker_instance text,
  related_conversation uuid,
  related_conversation_group uuid,
  lifetime interval
)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
declare
  c record;
  conversation_group uuid;
  expires timestamptz;
  instance text := _begin_dialog.broker_instance;
begin
  if _begin_dialog.to_service is null or _begin_dialog.to_service = ''
    or char_length(_begin_dialog.to_service) > 256
  then
    perform sb_internal._require_name(_begin_dialog.to_service, 'service', 256);
  end if;
  if char_length(instance) > 128 then
    perform sb_internal._raise('S8413');
  end if;
  if _begin_dialog.related_conversation is not null and _begin_dialog.related_conversation_group is not null then
    perform sb_internal._raise('22023',
      array['related_conversation and related_conversation_group exclude each other']);
  end if;
  if _begin_dialog.lifetime is not null then
    if _begin_dialog.lifetime <= interval '0'
      or extract(epoch from _begin_dialog.lifetime) > 2147483647
    then
      perform sb_internal._raise('S8411', array[_begin_dialog.lifetime::text]);
    end if;
    expires := sb_internal._now() + _begin_dialog.lifetime;
  end if;

  -- drop_contract ends the conversations it sees under a lock that excludes this one: so none begins on
  -- a contract that was there when we looked and is gone when the endpoint is written.
  lock table sb_internal.endpoint in row exclusive mode;
  select s.service_id, q.name as queue_name, q.owner, q.receivers,
         k.service_contract_id, k.owner as contract_owner, k.referencers
    into c
    from (select _begin_dialog.from_service as name) as a
    left join sb_internal.service as s on s.name = a.name
    left join sb_internal.queue as q on q.queue_id = s.queue_id
    left join sb_internal.contract as k on k.name = _begin_dialog.on_contract;
  if c.service_id is null then
    perform sb_internal._require_name(_begin_dialog.from_service, 'service', 128);
    perform sb_internal._raise('S8423', array[_begin_dialog.from_service]);
  end if;
  if _begin_dialog.caller <> c.owner and not (_begin_dialog.caller = any (c.receivers))
    and not sb_internal._may(_begin_dialog.caller, c.owner, c.receivers)
  then
    perform sb_internal._raise('42501', array[_begin_dialog.caller::text, 'receive from queue ' || c.queue_name
      || ' and so not begin dialogs from service ' || _begin_dialog.from_service]);
  end if;
  if c.service_contract_id is null then
    perform sb_internal._require_name(_begin_dialog.on_contract, 'contract', 128);
    perform sb_internal._raise('S8425', array[_begin_dialog.on_contract]);
  end if;
  -- The system's own contracts, DEFAULT among them, are for everybody.
  if c.service_contract_id >= 65536
    and _begin_dialog.caller <> c.contract_owner and not (_begin_dialog.caller = any (c.referencers))
    and not sb_internal._may(_begin_dialog.caller, c.contract_owner, c.referencers)
  then
    perform sb_internal._raise('42501', array[_begin_dialog.caller::text,
      'use contract ' || _begin_dialog.on_contract]);
  end if;
  if lower(instance) = 'current database' then
    select b.broker_instance::text into instance from sb_internal.broker as b where b.singleton;
  end if;

  if _begin_dialog.related_conversation is not null then
    conversation_group := sb_internal._lock_group_of(_begin_dialog.related_conversation);
    if conversation_group is null then
      perform sb_internal._raise('S8426', array[_begin_dialog.related_conversation::text]);
    end if;
    if not exists (
      select 1
        from sb_internal.endpoint as e
       where e.conversation_handle = _begin_dialog.related_conversation
         and e.service_id = c.service_id)
    then
      perform sb_internal._raise('S9610', array[_begin_dialog.from_service, conversation_group::text]);
    end if;
  elsif _begin_dialog.related_conversation_group is not null then
    conversation_group := _begin_dialog.related_conversation_group;
    perform sb_internal._join_group(conversation_group, c.service_id, _begin_dialog.from_service);
  end if;

  return sb_internal._begin(c.service_id, c.service_contract_id, _begin_dialog.to_service, instance,
    conversation_group, expires);
end
$$;
comment on function sb_internal._begin_dialog(name, text, text, text, text, uuid, uuid, interval) is
  'BEGIN DIALOG behind sb.begin_dialog.';
revoke all on function sb_internal._begin_dialog(name, text, text, text, text, uuid, uuid, interval) from public;
-- sqlgen:end functions/internal/_begin_dialog.sql
-- sqlgen:begin functions/internal/_cell.sql sha256:198c04ab2cd84b9c7b77cc93158a357bae4efa4e7d9a9d5aadc505861072c539
-- Sequences are the only thing in PostgreSQL that outlives a rollback: poison counting and search hints
-- live in them.
create or replace function sb_internal._cell(queue_id integer, cell text)
  returns bigint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return pg_sequence_last_value(('sb_internal.queue_' || _cell.queue_id || '_' || _cell.cell)::regclass);
end
$$;
comment on function sb_internal._cell(integer, text) is
  'Reads one of a queues non-transactional cells (sequences, found by name so that a dump restores them); null when never written.';
revoke all on function sb_internal._cell(integer, text) from public;
-- sqlgen:end functions/internal/_cell.sql
-- sqlgen:begin functions/internal/_claim.sql sha256:72b105586b15a13907320871e28bc92623d9cf7301f9c449b73af9b1c793c8f9
create or replace function sb_internal._claim(conversation_handle uuid)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  claimed uuid;
begin
  select g.conversation_group_id
    into claimed
    from sb.conversation_group as g
   where g.conversation_group_id = (
           select e.conversation_group_id
             from sb_internal.endpoint as e
            where e.conversation_handle = _claim.conversation_handle
              and e.state <> 'DO')
     and not exists (
           select 1
             from sb_internal.group_backoff as b
            where b.conversation_group_id = g.conversation_group_id
              and b.not_before > clock_timestamp())
     for no key update skip locked;
  if found
    and not exists (
      select 1
        from sb_internal.endpoint as e
       where e.conversation_handle = _claim.conversation_handle
         and e.conversation_group_id = claimed
         and (exists (
               select 1
                 from sb_internal.message as m
                where m.conversation_handle = _claim.conversation_handle
                  and m.message_sequence_number >= coalesce((
                    select c.message_sequence_number
                      from sb_internal.receive_cursor as c
                     where c.conversation_handle = _claim.conversation_handle
                     order by c.conversation_handle desc, c.message_sequence_number desc
                     limit 1), -1))
             or exists (
               select 1
                 from sb_internal.message as m
                where m.conversation_handle = _claim.conversation_handle
                  and m.message_type_id in (1, 2))
             or exists (
               select 1
                 from sb_internal.due as d
                where d.conversation_handle = _claim.conversation_handle
                  and d.due_at <= clock_timestamp())))
  then
    -- Between the search and our lock a rival took the last message, or the conversation was moved to a
    -- group that is not ours. Rolling the subtransaction back is the only way to let go of a row lock.
    perform sb_internal._raise('SB003');
  end if;
  return claimed;
exception
  when sqlstate 'SB003' then
    return null;
end
$$;
comment on function sb_internal._claim(uuid) is
  'Tries to lock, without waiting, the group of a conversation that seemed to have something to receive, and looks again under the lock; returns the group, or null when it is busy, in back-off, empty or gone (orphans).';
revoke all on function sb_internal._claim(uuid) from public;
-- sqlgen:end functions/internal/_claim.sql
-- sqlgen:begin functions/internal/_create_endpoint.sql sha256:30d012ccd91f0e3adf1bc4ae2a0676cbda4ec46155875ea759c4d75197b1a9e3
create or replace function sb_internal._create_endpoint(
  conversation_handle uuid,
  peer_handle uuid,
  conversation_group_id uuid,
  service_id integer,
  service_contract_id integer,
  is_initiator boolean,
  far_service text,
  far_broker_instance text,
  lifetime timestamptz,
  has_priorities boolean
)
  returns smallint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  own_priority smallint := 5::smallint;
begin
  if _create_endpoint.has_priorities then
    own_priority := sb_internal._priority(_create_endpoint.service_contract_id, _create_endpoint.service_id,
      _create_endpoint.far_service);
  end if;
  insert into sb_internal.endpoint (conversation_handle, peer_handle, conversation_group_id, lifetime,
    service_id, service_contract_id, priority, is_initiator, has_counter, far_service, far_broker_instance)
  values (_create_endpoint.conversation_handle, _create_endpoint.peer_handle,
    _create_endpoint.conversation_group_id, _create_endpoint.lifetime, _create_endpoint.service_id,
    _create_endpoint.service_contract_id, own_priority, _create_endpoint.is_initiator,
    _create_endpoint.is_initiator,
    _create_endpoint.far_service, _create_endpoint.far_broker_instance);
  if _create_endpoint.is_initiator then
    insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
    values (_create_endpoint.conversation_handle, -1);
  end if;
  if _create_endpoint.lifetime is not null then
    -- Holds off alter_service, which moves due rows: the queue read next is the right one.
    lock table sb_internal.message in access share mode;
    insert into sb_internal.due (conversation_handle, is_lifetime, conversation_group_id, queue_id, priority, due_at)
    select _create_endpoint.conversation_handle, true, _create_endpoint.conversation_group_id, s.queue_id,
           own_priority, _create_endpoint.lifetime
      from sb_internal.service as s
     where s.service_id = _create_endpoint.service_id;
  end if;
  return own_priority;
end
$$;
comment on function sb_internal._create_endpoint(uuid, uuid, uuid, integer, integer, boolean, text, text, timestamptz, boolean) is
  'Inserts an endpoint, an initiator''s counter row and, with a lifetime, the due row; fixes the priority (R-100) and returns it. has_priorities: the broker knows more levels than the default.';
revoke all on function sb_internal._create_endpoint(
  uuid, uuid, uuid, integer, integer, boolean, text, text, timestamptz, boolean) from public;
-- sqlgen:end functions/internal/_create_endpoint.sql
-- sqlgen:begin functions/internal/_create_event_notification.sql sha256:24bd09591be98c2129aeaf1b6d8b3a36aed0bd37123b1473e739cea194898ed1
create or replace function sb_internal._create_event_notification(
  caller name,
  name text,
  queue_name text,
  event text,
  to_service text,
  broker_instance text,
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  kind text := upper(_create_event_notification.event);
  instance text := _create_event_notification.broker_instance;
begin
  perform sb_internal._require_admin(_create_event_notification.caller, 'create event notifications');
  perform sb_internal._require_name(_create_event_notification.name, 'event notification', 128);
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('queue', _create_event_notification.queue_name);
  if not sb_internal._require_free_name('event notification', _create_event_notification.name,
    exists (
      select 1
        from sb_internal.event_notification as n
       where n.queue_id = object.id
         and n.name = _create_event_notification.name),
    _create_event_notification.if_not_exists)
  then
    return;
  end if;
  perform sb_internal._require_user_object(object.id, 'queue ' || _create_event_notification.queue_name);
  if kind is null or kind not in ('QUEUE_ACTIVATION', 'BROKER_QUEUE_DISABLED') then
    perform sb_internal._raise('22023', array['event '
      || coalesce(_create_event_notification.event, '(null)') || ' is none of QUEUE_ACTIVATION, BROKER_QUEUE_DISABLED']);
  end if;
  perform sb_internal._require_name(_create_event_notification.to_service, 'service', 256);
  if char_length(instance) > 128 then
    perform sb_internal._raise('S8413');
  elsif lower(instance) = 'current database' then
    select b.broker_instance::text
      into instance
      from sb_internal.broker as b
     where b.singleton;
  end if;

  insert into sb_internal.event_notification (event_notification_id, name, queue_id, event, to_service, broker_instance)
  values (nextval('sb_internal.event_notification_id'), _create_event_notification.name, object.id, kind,
    _create_event_notification.to_service, instance)
      on conflict on constraint event_notification_name_key do nothing;
  if kind = 'QUEUE_ACTIVATION' then
    perform sb_internal._raise('S9718', array[q.name])
       from sb_internal.queue as q
      where q.queue_id = object.id
        and q.is_activation_enabled;
    update sb_internal.queue as q
       set has_activation_event = true
     where q.queue_id = object.id;
    perform sb_internal._look_again(object.id);
  end if;
  -- The activator repeats events while activation stays necessary: it has to know of the new watcher.
  perform sb_internal._announce('event_notification_created', 'queue', _create_event_notification.queue_name);
end
$$;
comment on function sb_internal._create_event_notification(name, text, text, text, text, text, boolean) is
  'CREATE EVENT NOTIFICATION behind sb.create_event_notification.';
revoke all on function sb_internal._create_event_notification(name, text, text, text, text, text, boolean) from public;
-- sqlgen:end functions/internal/_create_event_notification.sql
-- sqlgen:begin functions/internal/_create_route.sql sha256:eb426e8a9ca044793e9e617875f202d4064fee99fc5572e248cef642d793f4bf
create or replace function sb_internal._create_route(
  caller name,
  name text,
  address text,
  service_name text,
  broker_instance text,
  lifetime interval,
  mirror_address text,
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  r sb_internal.route;
begin
  perform sb_internal._require_admin(_create_route.caller, 'create routes');
  perform sb_internal._require_name(_create_route.name, 'route', 128);
  perform sb_internal._lock_catalog();
  if not sb_internal._require_free_name('route', _create_route.name,
    exists (select 1 from sb_internal.route as o where o.name = _create_route.name),
    _create_route.if_not_exists)
  then
    return;
  end if;
  r.name := _create_route.name;
  r.owner := _create_route.caller;
  r.remote_service_name := _create_route.service_name;
  r.broker_instance := _create_route.broker_instance;
  r.lifetime := sb_internal._route_expiry(_create_route.lifetime);
  r.address := _create_route.address;
  r.mirror_address := _create_route.mirror_address;
  perform sb_internal._check_route(r);
  r.route_id := nextval('sb_internal.route_id')::integer;
  insert into sb_internal.route
  select r.*
      on conflict on constraint route_name_key do nothing;
  perform sb_internal._route_changed('route_created', r);
end
$$;
comment on function sb_internal._create_route(name, text, text, text, text, interval, text, boolean) is
  'CREATE ROUTE behind sb.create_route.';
revoke all on function sb_internal._create_route(name, text, text, text, text, interval, text, boolean) from public;
-- sqlgen:end functions/internal/_create_route.sql
-- sqlgen:begin functions/internal/_create_target.sql sha256:607acd0b5c4672c0eac1e0a087450c6008171320912489abe40209834b799f71
create or replace function sb_internal._create_target(
  e sb_internal.endpoint,
  out outcome text,
  out queue_id integer,
  out priority smallint,
  out has_activation_event boolean
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  target record;
begin
  outcome := 'wait';
  if sb_internal._route(e.far_service, e.far_broker_instance) is distinct from 'LOCAL' then
    return;
  end if;
  -- The lock that the endpoint's foreign key takes anyway, taken first: a service being dropped is
  -- then simply missing.
  select s.service_id, s.owner, s.senders, o.owner as own, o.name as own_name, t.queue_id, t.is_accepting,
         t.is_poison_watched, t.has_activation_event,
         exists (
           select 1
             from sb_internal.service_contract as a
            where a.service_id = s.service_id
              and a.service_contract_id = e.service_contract_id) as is_accepted,
         b.broker_instance, cardinality(b.priority_levels) > 1 as has_priorities
    into target
    from sb_internal.service as s
    join sb_internal.service_status as t on t.service_id = s.service_id
    join sb_internal.service as o on o.service_id = e.service_id
   cross join sb_internal.broker as b
   where s.name = e.far_service
     and b.singleton
     for key share of s;
  if not found then
    if e.far_broker_instance is not null then
      outcome := 'error';
      perform sb_internal._error_endpoint(e.conversation_handle, -8490, 'The service "' || e.far_service
        || '" does not exist in broker instance ' || e.far_broker_instance || '.');
    end if;
    return;
  end if;
  if not target.is_accepting or target.is_poison_watched and sb_internal._poison_limit_reached(target.queue_id) then
    return;
  end if;
  if target.own <> target.owner and not sb_internal._may(target.own, target.owner, target.senders) then
    outcome := 'error';
    perform sb_internal._error_endpoint(e.conversation_handle, -8494,
      'The owner of the initiating service has no permission to send to service "' || e.far_service || '".');
    return;
  end if;
  if not target.is_accepted then
    outcome := 'error';
    perform sb_internal._error_endpoint(e.conversation_handle, -8408,
      'The service "' || e.far_service || '" does not accept the contract of the dialog.');
    return;
  end if;

  insert into sb.conversation_group (conversation_group_id, service_id)
  values (e.peer_handle, target.service_id);
  priority := sb_internal._create_endpoint(e.peer_handle, e.conversation_handle, e.peer_handle, target.service_id,
    e.service_contract_id, false, target.own_name, target.broker_instance::text, e.lifetime, target.has_priorities);
  queue_id := target.queue_id;
  has_activation_event := target.has_activation_event;
  outcome := 'created';
end
$$;
comment on function sb_internal._create_target(sb_internal.endpoint) is
  'Creates the target endpoint of a dialog for its first message, in a group of its own with the id of the handle. outcome: created; wait when the message has to stay in the transmission queue (no route, service missing, queue off, broker off); error when the dialog failed for good and its Error is in the queue of the initiator (-8490, -8494, -8408).';
revoke all on function sb_internal._create_target(sb_internal.endpoint) from public;
-- sqlgen:end functions/internal/_create_target.sql
-- sqlgen:begin functions/internal/_deliver.sql sha256:3dfe96e72ed76c3c13eb8133b72254434390cd090e2bf569959cf7c44f882e51
create or replace function sb_internal._deliver(queue_id integer, service_name text)
  returns bigint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  to_service text;
  deliverable text[] := '{}'::text[];
  conversation uuid;
  e sb_internal.endpoint;
  moved bigint := 0::bigint;
begin
  if not (select b.is_broker_enabled from sb_internal.broker as b where b.singleton) then
    return moved;
  end if;
  -- From service to service, so that a backlog for one that takes nothing costs one step.
  loop
    select t.to_service_name
      into to_service
      from sb_internal.transmission as t
     where (to_service is null or t.to_service_name > to_service)
       and (_deliver.service_name is null or t.to_service_name = _deliver.service_name)
     order by t.to_service_name
     limit 1;
    exit when not found;
    if sb_internal._undeliverable(to_service) is null
      and (_deliver.queue_id is null or exists (
        select 1
          from sb_internal.service as s
         where s.name = to_service
           and s.queue_id = _deliver.queue_id))
    then
      deliverable := deliverable || to_service;
    end if;
  end loop;

  for conversation in
    select w.conversation_handle
      from (
        select distinct t.conversation_handle
          from sb_internal.transmission as t
         where t.to_service_name = any (deliverable)) as w
      join sb_internal.endpoint as o on o.conversation_handle = w.conversation_handle
     cross join sb_internal.broker as b
     where b.singleton
     order by case when b.is_honor_broker_priority_on then o.priority end desc, w.conversation_handle
  loop
    -- A conversation somebody sends on or ends is moved on by him, or next time.
    select o.*
      into e
      from sb_internal.endpoint as o
     where o.conversation_handle = conversation
       for no key update skip locked;
    continue when not found;
    perform 1
       from sb_internal.send_counter as c
      where c.conversation_handle = conversation
      order by c.conversation_handle desc, c.message_sequence_number desc
      limit 1
        for no key update skip locked;
    if found or not e.has_counter or e.state = 'DO' then
      moved := moved + sb_internal._deliver_conversation(e);
    end if;
  end loop;
  return moved;
end
$$;
comment on function sb_internal._deliver(integer, text) is
  'Moves on what waits in the transmission queue for a queue and service (null: any) and can be delivered; returns how many messages. Under the option honor_broker_priority conversations of higher priority go first (R-102). Takes endpoint and counter locks with skip locked only.';
revoke all on function sb_internal._deliver(integer, text) from public;
-- sqlgen:end functions/internal/_deliver.sql
-- sqlgen:begin functions/internal/_deliver_conversation.sql sha256:3f73a904f2ba82ab0ca342b0a4604941ce58214f2f54510bb20ba88cb21d14c8
create or replace function sb_internal._deliver_conversation(e sb_internal.endpoint)
  returns bigint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  target record;
  row_waiting record;
  last_sequence bigint := (-2)::bigint;
  outcome text;
  moved bigint := 0::bigint;
begin
  if not (select b.is_broker_enabled from sb_internal.broker as b where b.singleton) then
    return moved;
  end if;
  -- After the peer's end, an Error or the end of the lifetime nothing leaves any more; it stays readable
  -- until the application ends its side (R-250, R-251).
  if e.state <> 'DO'
    and sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle) in ('DI', 'ER')
  then
    return moved;
  end if;
  -- alter_service moves a service's messages under an exclusive lock of this table: once we hold ours,
  -- the queue read below stays the right one.
  lock table sb_internal.message in row exclusive mode;

  -- One by one: all at once the planner would rather fetch and sort, and mostly the first cannot leave.
  loop
    select t.message_sequence_number, t.message_type_id, t.message_body
      into row_waiting
      from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle
       and t.message_sequence_number > last_sequence
     order by t.message_sequence_number
     limit 1;
    exit when not found;
    last_sequence := row_waiting.message_sequence_number;
    select p.conversation_group_id, p.priority, p.state, s.queue_id
      into target
      from sb_internal.endpoint as p
      join sb_internal.service as s on s.service_id = p.service_id
     where p.conversation_handle = e.peer_handle;
    if not found and e.is_initiator and row_waiting.message_sequence_number = 0 then
      select t.outcome
        into outcome
        from sb_internal._create_target(e) as t;
      exit when outcome = 'wait';
      if outcome = 'created' then
        select p.conversation_group_id, p.priority, p.state, s.queue_id
          into target
          from sb_internal.endpoint as p
          join sb_internal.service as s on s.service_id = p.service_id
         where p.conversation_handle = e.peer_handle;
      else
        -- Failed for good: what waits behind stays readable until the application ends its side (R-251).
        exit when e.state <> 'DO';
      end if;
    end if;

    if target.queue_id is null or target.state = 'DO' then
      -- The peer is gone: what it does not want any more is dropped (R-220). Gone without a word is
      -- an Error for a side that still wants to talk.
      if target.queue_id is null and e.state = 'CO' and outcome is null
        and not exists (
          select 1
            from sb_internal.message as m
           where m.conversation_handle = e.conversation_handle
             and m.message_type_id in (1, 2))
      then
        perform sb_internal._error_endpoint(e.conversation_handle, -8462,
          'The remote conversation endpoint has been closed.');
      end if;
    else
      exit when not sb_internal._queue_is_on(target.queue_id);
      insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
        message_type_id, conversation_handle, conversation_group_id, priority, message_body)
      values (nextval('sb_internal.queuing_order'), row_waiting.message_sequence_number, sb_internal._now(),
        target.queue_id, row_waiting.message_type_id, e.peer_handle, target.conversation_group_id,
        target.priority, row_waiting.message_body);
      moved := moved + 1;
    end if;
    delete from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle
       and t.message_sequence_number = row_waiting.message_sequence_number;
  end loop;

  if moved > 0 then
    perform sb_internal._arrived(target.queue_id);
  end if;
  if not exists (
    select 1
      from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle)
  then
    if e.state = 'DO' then
      delete from sb_internal.endpoint as o
       where o.conversation_handle = e.conversation_handle;
    else
      update sb_internal.send_counter as c
         set is_waiting = false
       where c.conversation_handle = e.conversation_handle;
    end if;
  end if;
  return moved;
end
$$;
comment on function sb_internal._deliver_conversation(sb_internal.endpoint) is
  'Moves on, in order, what a conversation has in the transmission queue, as far as it can be delivered now; returns how many messages. The caller holds the counter lock, so that nothing overtakes, and for a side in DO the endpoint lock. A side in DO whose last message has left is removed.';
revoke all on function sb_internal._deliver_conversation(sb_internal.endpoint) from public;
-- sqlgen:end functions/internal/_deliver_conversation.sql
-- sqlgen:begin functions/internal/_deliver_queue.sql sha256:199659cb94d794fae0940cb28576bca44afad3abdf80016f4d26cf99edfc8178
create or replace function sb_internal._deliver_queue(caller name, queue_name text)
  returns bigint
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  named integer;
begin
  perform sb_internal._require_admin(_deliver_queue.caller, 'deliver');
  if _deliver_queue.queue_name is not null then
    select q.queue_id
      into named
      from sb_internal.queue as q
     where q.name = _deliver_queue.queue_name;
    if not found then
      perform sb_internal._raise('S0208', array[_deliver_queue.queue_name]);
    end if;
  end if;
  perform sb_internal._write_poison_limits();
  return sb_internal._deliver(named, null);
end
$$;
comment on function sb_internal._deliver_queue(name, text) is
  'sb.deliver with the callers rights checked.';
revoke all on function sb_internal._deliver_queue(name, text) from public;
-- sqlgen:end functions/internal/_deliver_queue.sql
-- sqlgen:begin functions/internal/_drop_contract.sql sha256:985118e3a5d1be80d2d553fe5773746f4343fda64fcc76a5fd4467dd6526ff15
-- The plans may be from a time of few conversations, or by statistics of such a time: the settings leave
-- nothing but indexes. jit: what the settings make expensive on paper would be compiled, for longer than it
-- runs.
create or replace function sb_internal._drop_contract(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
declare
  object record;
  used_by text;
  handles uuid[];
  conversation uuid;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('contract', _drop_contract.name, _drop_contract.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_contract.caller, object.owner, 'drop contract ' || _drop_contract.name);
  perform sb_internal._require_user_object(object.id, 'contract ' || _drop_contract.name);
  select coalesce(
    (select 'service ' || s.name
       from sb_internal.service_contract as c
       join sb_internal.service as s on s.service_id = c.service_id
      where c.service_contract_id = object.id
      limit 1),
    (select 'broker priority ' || p.name
       from sb_internal.conversation_priority as p
      where p.service_contract_id = object.id
      limit 1))
    into used_by;
  if used_by is not null then
    perform sb_internal._raise('S3716', array['contract ' || _drop_contract.name, used_by]);
  end if;

  -- Of two sides in this database one goes and the other is told; terminating both would tell nobody.
  handles := sb_internal._lock_conversations(null, object.id);
  for conversation in
    select e.conversation_handle
      from sb_internal.endpoint as e
     where e.conversation_handle = any (handles)
       and (e.is_initiator
         or not exists (
           select 1
             from sb_internal.endpoint as p
            where p.conversation_handle = e.peer_handle))
     order by e.conversation_handle
  loop
    perform sb_internal._terminate(conversation, -8487,
      'The contract "' || _drop_contract.name || '" of the conversation was dropped.');
  end loop;
  delete from sb_internal.contract as c
   where c.service_contract_id = object.id;
  perform sb_internal._sync_privileges(object.owner || object.acl);
end
$$;
comment on function sb_internal._drop_contract(name, text, boolean) is
  'DROP CONTRACT behind sb.drop_contract.';
revoke all on function sb_internal._drop_contract(name, text, boolean) from public;
-- sqlgen:end functions/internal/_drop_contract.sql
-- sqlgen:begin functions/internal/_drop_service.sql sha256:e05c114a6af3d093e2bc5d213ec854e37e3bd120392d5f9e8ecf2469e840825e
-- The plans may be from a time of few conversations, or by statistics of such a time: the settings leave
-- nothing but indexes. jit: what the settings make expensive on paper would be compiled, for longer than it
-- runs.
create or replace function sb_internal._drop_service(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
declare
  object record;
  used_by text;
  conversation uuid;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('service', _drop_service.name, _drop_service.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_service.caller, object.owner, 'drop service ' || _drop_service.name);
  perform sb_internal._require_user_object(object.id, 'service ' || _drop_service.name);
  select p.name
    into used_by
    from sb_internal.conversation_priority as p
   where p.local_service_id = object.id
   limit 1;
  if found then
    perform sb_internal._raise('S3716', array['service ' || _drop_service.name, 'broker priority ' || used_by]);
  end if;

  foreach conversation in array sb_internal._lock_conversations(object.id, null) loop
    perform sb_internal._terminate(conversation, -8470,
      'The service "' || _drop_service.name || '" was dropped.');
  end loop;
  delete from sb_internal.service as s
   where s.service_id = object.id;
  perform sb_internal._sync_privileges(object.owner || object.acl);
  perform sb_internal._announce('service_dropped', 'service', _drop_service.name);
end
$$;
comment on function sb_internal._drop_service(name, text, boolean) is
  'DROP SERVICE behind sb.drop_service.';
revoke all on function sb_internal._drop_service(name, text, boolean) from public;
-- sqlgen:end functions/internal/_drop_service.sql
-- sqlgen:begin functions/internal/_drop_state_table.sql sha256:8c9b6683353f9a247ce3d798ed54cb412102f307b884da223ea9229645fa77b9
-- Runs as the caller, hence no set clause and everything qualified.
create or replace function sb_internal._drop_state_table(table_name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
as $$
declare
  target pg_catalog.regclass := pg_catalog.to_regclass(_drop_state_table.table_name);
begin
  if target is null then
    if _drop_state_table.if_exists then
      return;
    end if;
    raise exception using errcode = '42P01',
      message = pg_catalog.format('state table %s does not exist', _drop_state_table.table_name);
  end if;
  if not exists (
    select 1
      from pg_catalog.pg_index as i
      join pg_catalog.pg_attribute as a
        on a.attrelid operator(pg_catalog.=) i.indrelid
       and a.attnum operator(pg_catalog.=) i.indkey[0]
     where i.indrelid operator(pg_catalog.=) target
       and i.indisprimary
       and i.indnkeyatts operator(pg_catalog.=) 1
       and a.attname operator(pg_catalog.=) 'conversation_group_id')
  then
    raise exception using errcode = 'SB002',
      message = pg_catalog.format('table %s is not a state table', target);
  end if;
  execute 'drop table ' operator(pg_catalog.||) target::pg_catalog.text;
end
$$;
comment on function sb_internal._drop_state_table(text, boolean) is
  'sb.drop_state_table, with the rights and the search path of the caller.';
revoke all on function sb_internal._drop_state_table(text, boolean) from public;
-- sqlgen:end functions/internal/_drop_state_table.sql
-- sqlgen:begin functions/internal/_end_conversation.sql sha256:5e1d9b9a5381e8b71d39c97ef8618c28a0448ea9a98063365ea3973d410f43a2
-- Plans are made once a session, perhaps while the tables are empty, and not again at every call: see _receive.
create or replace function sb_internal._end_conversation(
  caller name,
  conversation_handle uuid,
  error_code integer,
  error_description text,
  cleanup boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
declare
  e sb_internal.endpoint;
  state text;
  last_sequence bigint;
  body bytea;
  target record;
begin
  if _end_conversation.cleanup is null then
    perform sb_internal._raise('22023', array['cleanup may not be null']);
  end if;
  if _end_conversation.cleanup
    and (_end_conversation.error_code is not null or _end_conversation.error_description is not null)
  then
    perform sb_internal._raise('22023', array['cleanup and error_code exclude each other']);
  end if;
  if (_end_conversation.error_code is null) <> (_end_conversation.error_description is null) then
    perform sb_internal._raise('S8424');
  end if;
  if _end_conversation.error_code <= 0 then
    perform sb_internal._raise('S8419');
  end if;
  if char_length(_end_conversation.error_description) > 3000 then
    perform sb_internal._raise('22023', array['error_description may have at most 3000 characters']);
  end if;

  e := sb_internal._lock_conversation(_end_conversation.conversation_handle);
  perform sb_internal._may_use_conversation(_end_conversation.caller, e, 'end');
  if _end_conversation.cleanup then
    perform sb_internal._forget(e, false);
    return;
  end if;

  state := sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle);
  if state = 'DO' then
    perform sb_internal._raise('S8427', array[e.conversation_handle::text, state]);
  end if;
  if state <> 'CO' and state <> 'SO' then
    -- The peer has ended, or an error did it: nothing is sent (R-219), what still waits is dropped (R-251).
    perform sb_internal._forget(e, false);
    return;
  end if;

  -- What waits for delivery goes first, so that only what must wait makes this side wait in DO.
  if _end_conversation.error_code is not null then
    body := sb_internal._error_body(sb_internal._system_namespace(), _end_conversation.error_code,
      _end_conversation.error_description);
    delete from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle;
  elsif exists (
    select 1
      from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle)
  then
    perform sb_internal._deliver_conversation(e);
  end if;

  select (select n.message_sequence_number
            from sb_internal.send_counter as n
           where n.conversation_handle = e.conversation_handle
           order by n.conversation_handle desc, n.message_sequence_number desc
           limit 1)
    into last_sequence;

  select p.conversation_group_id, p.priority, p.state, q.queue_id,
         b.is_broker_enabled and sb_internal._queue_is_on(q.queue_id) as is_on,
         exists (
           select 1
             from sb_internal.transmission as t
            where t.conversation_handle = e.conversation_handle) as is_waiting
    into target
    from sb_internal.broker as b
    left join sb_internal.endpoint as p on p.conversation_handle = e.peer_handle
    left join sb_internal.service as s on s.service_id = p.service_id
    left join sb_internal.queue as q on q.queue_id = s.queue_id
   where b.singleton;

  if target.is_waiting or (target.queue_id is not null and target.state <> 'DO' and not target.is_on) then
    insert into sb_internal.transmission (conversation_handle, message_sequence_number, message_type_id,
      enqueue_time, to_service_name, message_body)
    values (e.conversation_handle, case when body is null then coalesce(last_sequence + 1, 0) else -1 end,
      case when body is null then 2 else 1 end, sb_internal._now(), e.far_service, body);
    perform sb_internal._forget(e, true);
    e.state := 'DO';
    perform sb_internal._parked(e, false);
    return;
  end if;

  -- A peer that never came to be, or is gone, is told nothing.
  if target.queue_id is not null and target.state <> 'DO' then
    insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
      message_type_id, conversation_handle, conversation_group_id, priority, message_body)
    values (nextval('sb_internal.queuing_order'),
      case when body is null then coalesce(last_sequence + 1, 0) else -1 end, sb_internal._now(),
      target.queue_id, case when body is null then 2 else 1 end, e.peer_handle,
      target.conversation_group_id, target.priority, body);
    perform sb_internal._arrived(target.queue_id);
  end if;
  perform sb_internal._forget(e, false);
end
$$;
comment on function sb_internal._end_conversation(name, uuid, integer, text, boolean) is
  'END CONVERSATION behind sb.end_conversation, in its three forms.';
revoke all on function sb_internal._end_conversation(name, uuid, integer, text, boolean) from public;
-- sqlgen:end functions/internal/_end_conversation.sql
-- sqlgen:begin functions/internal/_error_body.sql sha256:962ca665cf69ade1a82952232de527c08f64b3876d8cb40070340631c219b156
create or replace function sb_internal._error_body(
  namespace text,
  code integer,
  description text
)
  returns bytea
  language plpgsql
  immutable
  parallel safe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return convert_to(
    format(
      '<?xml version="1.0"?><Error xmlns="%s"><Code>%s</Code><Description>%s</Description></Error>',
      replace(replace(replace(_error_body.namespace, '&', '&amp;'), '<', '&lt;'), '"', '&quot;'),
      _error_body.code,
      -- XML 1.0 cannot hold most control characters, not even as references; U+FFFD is written as a
      -- reference because a database that is not in UTF-8 cannot hold it. A bare CR would be read
      -- as LF.
      replace(
        regexp_replace(
          replace(
            replace(replace(_error_body.description, '&', '&amp;'), '<', '&lt;'), '>', '&gt;'
          ),
          '[\u0001-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]',
          '&#xFFFD;',
          'g'
        ),
        chr(13),
        '&#13;'
      )
    ),
    'UTF8'
  );
end
$$;
comment on function sb_internal._error_body(text, integer, text) is
  'The body of an Error message: XML in UTF-8, Code then Description. Characters that XML cannot hold become U+FFFD.';
revoke all on function sb_internal._error_body(text, integer, text) from public;
-- sqlgen:end functions/internal/_error_body.sql
-- sqlgen:begin functions/internal/_error_broker_conversations.sql sha256:02d9d20b82cc51d60fc2482c0db4ad65f84d73f5a98583fe50fa507037ea7656
-- The plans may be from a time of few conversations, or by statistics of such a time: the settings leave
-- nothing but indexes. jit: what the settings make expensive on paper would be compiled, for longer than it
-- runs.
create or replace function sb_internal._error_broker_conversations(caller name)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
begin
  perform sb_internal._require_admin(_error_broker_conversations.caller, 'end all conversations with an error');
  perform sb_internal._lock_catalog();
  perform sb_internal._stop_messaging();
  perform sb_internal._error_endpoint(e.conversation_handle, -9719,
    'The database broker has ended all conversations by operator request.')
     from sb_internal.endpoint as e
    where e.state <> 'DO';
  update sb_internal.broker as b
     set is_broker_enabled = true
   where b.singleton;
  perform sb_internal._deliver(null, null);
  perform sb_internal._announce('broker_conversations_errored', 'database', current_database());
end
$$;
comment on function sb_internal._error_broker_conversations(name) is
  'ERROR_BROKER_CONVERSATIONS behind sb.error_broker_conversations. Sides that have ended already (DO) are left to finish.';
revoke all on function sb_internal._error_broker_conversations(name) from public;
-- sqlgen:end functions/internal/_error_broker_conversations.sql
-- sqlgen:begin functions/internal/_event_body.sql sha256:24d92d3f9fe18c243bc5db77721e3ed7d8c40d308fc6445c48e45e5385712018
create or replace function sb_internal._event_body(event text, queue_name text)
  returns bytea
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  body text := '<EVENT_INSTANCE>';
  element record;
begin
  for element in
    select x.name, x.value
      from (values
        (1, 'EventType', _event_body.event),
        (2, 'PostTime', to_char(sb_internal._now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS')),
        (3, 'SPID', pg_backend_pid()::text),
        (4, 'ServerName', coalesce(nullif(current_setting('cluster_name'), ''), host(inet_server_addr()), 'localhost')),
        (5, 'LoginName', session_user::text),
        (6, 'UserName', session_user::text),
        (7, 'DatabaseName', current_database()::text),
        (8, 'SchemaName', 'sb'),
        (9, 'ObjectName', _event_body.queue_name),
        (10, 'ObjectType', 'QUEUE')
      ) as x (position, name, value)
     order by x.position
  loop
    -- Control characters, which names may hold, have no form in XML.
    body := body || format('<%1$s>%2$s</%1$s>', element.name,
      replace(replace(replace(
        regexp_replace(element.value, '[\u0001-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]', '?', 'g'),
        '&', '&amp;'), '<', '&lt;'), '>', '&gt;'));
  end loop;
  return convert_to(body || '</EVENT_INSTANCE>', 'UTF8');
end
$$;
comment on function sb_internal._event_body(text, text) is
  'The EVENT_INSTANCE document of R-114, for both events; PostTime is UTC, both names are the session''s login.';
revoke all on function sb_internal._event_body(text, text) from public;
-- sqlgen:end functions/internal/_event_body.sql
-- sqlgen:begin functions/internal/_first_send.sql sha256:61f0ab63bcd922a8b7358b98e867d56bbb389e16acc2999a1ebbfa0d3db0fc1a
create or replace function sb_internal._first_send(conversation_handle uuid)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- A SEND that waited for the counter row may hold it by now, although it has found another version of it
  -- than it looked for. END locks the endpoint before the counter: so must we, or leave it alone.
  if exists (
    select 1
      from sb_internal.send_counter as c
     where c.conversation_handle = _first_send.conversation_handle)
  then
    return false;
  end if;
  perform 1
     from sb_internal.endpoint as e
    where e.conversation_handle = _first_send.conversation_handle
      for no key update;
  if not found then
    perform sb_internal._raise('S8426', array[_first_send.conversation_handle::text]);
  end if;
  if not exists (
    select 1
      from sb_internal.send_counter as c
     where c.conversation_handle = _first_send.conversation_handle)
  then
    update sb_internal.endpoint as e
       set has_counter = true
     where e.conversation_handle = _first_send.conversation_handle;
    insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
    values (_first_send.conversation_handle, -1);
  end if;
  return false;
end
$$;
comment on function sb_internal._first_send(uuid) is
  'Gives a conversation its counter row before its first SEND. Locks the endpoint, unless the row is there; a rival that has made it meanwhile is fine. Writing the endpoint makes a repeatable read transaction that cannot see the rival''s row fail (40001) instead of counting from zero again. Returns false: count now. Error S8426.';
revoke all on function sb_internal._first_send(uuid) from public;
-- sqlgen:end functions/internal/_first_send.sql
-- sqlgen:begin functions/internal/_forget.sql sha256:1e621060744cc885cf98190cf080e0c3fdefd3f309f5476fcf1d8ef54771ebc5
create or replace function sb_internal._forget(e sb_internal.endpoint, keep_transmission boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  delete from sb_internal.message as m
   where m.conversation_handle = e.conversation_handle;
  delete from sb_internal.retained_message as r
   where r.conversation_handle = e.conversation_handle;
  delete from sb_internal.due as d
   where d.conversation_handle = e.conversation_handle;
  delete from sb_internal.receive_cursor as c
   where c.conversation_handle = e.conversation_handle;
  delete from sb_internal.send_counter as c
   where c.conversation_handle = e.conversation_handle;
  if _forget.keep_transmission then
    update sb_internal.endpoint as o
       set state = 'DO'
     where o.conversation_handle = e.conversation_handle;
  else
    delete from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle;
    delete from sb_internal.endpoint as o
     where o.conversation_handle = e.conversation_handle;
  end if;
  if e.state <> 'DO' then
    perform sb_internal._leave_group(e.conversation_group_id);
  end if;
end
$$;
comment on function sb_internal._forget(sb_internal.endpoint, boolean) is
  'Removes one side of a conversation and everything it owns; with keep_transmission its endpoint stays in DO until its last message has left. The caller holds the locks of _lock_conversation.';
revoke all on function sb_internal._forget(sb_internal.endpoint, boolean) from public;
-- sqlgen:end functions/internal/_forget.sql
-- sqlgen:begin functions/internal/_get_conversation_group.sql sha256:87d0f8dd2a1b9a3e9e64ad5ef9656ec55ae5b40a5882e48d7871ad1673cde6d4
create or replace function sb_internal._get_conversation_group(
  caller name,
  queue_name text,
  timeout interval
)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
declare
  q record;
  deadline timestamptz;
  nap double precision := 0.005::double precision;
  held uuid;
begin
  select o.queue_id
    into q
    from sb_internal.queue as o
   where o.name = _get_conversation_group.queue_name;
  if not found then
    perform sb_internal._require_name(_get_conversation_group.queue_name, 'queue', 128);
    perform sb_internal._raise('S0208', array[_get_conversation_group.queue_name]);
  end if;
  deadline := case
    when _get_conversation_group.timeout < interval '0'
      or _get_conversation_group.timeout > interval '1000 years'
    then 'infinity'
    when _get_conversation_group.timeout > interval '0' then sb_internal._now() + _get_conversation_group.timeout
  end;
  loop
    select o.queue_id, o.name, o.owner, o.receivers, o.is_enabled, o.is_poison_message_handling_enabled,
           o.has_activation_event, b.priority_levels
      into q
      from sb_internal.queue as o
     cross join sb_internal.broker as b
     where o.queue_id = q.queue_id
       and b.singleton;
    if not found then
      perform sb_internal._raise('S0208', array[_get_conversation_group.queue_name]);
    end if;
    if not sb_internal._may(_get_conversation_group.caller, q.owner, q.receivers) then
      perform sb_internal._raise('42501', array[_get_conversation_group.caller::text, 'receive from queue ' || q.name]);
    end if;
    if not q.is_enabled then
      perform sb_internal._raise('S9617', array[q.name]);
    end if;
    if q.is_poison_message_handling_enabled and sb_internal._poison_limit_reached(q.queue_id) then
      perform sb_internal._poison_disable(q.queue_id);
      return null;
    end if;
    select g.conversation_group_id
      into held
      from sb_internal._next_group(q.queue_id, q.priority_levels) as g;
    exit when held is not null or deadline is null or sb_internal._now() >= deadline;
    perform pg_sleep(case when deadline = 'infinity' then nap
      else greatest(0, least(nap, extract(epoch from deadline - sb_internal._now()))) end);
    nap := least(nap * 1.5, 0.25);
  end loop;
  if q.has_activation_event then
    perform sb_internal._monitor_receive(q.queue_id, held is not null);
  end if;
  return held;
end
$$;
comment on function sb_internal._get_conversation_group(name, text, interval) is
  'GET CONVERSATION GROUP behind sb.get_conversation_group.';
revoke all on function sb_internal._get_conversation_group(name, text, interval) from public;
-- sqlgen:end functions/internal/_get_conversation_group.sql
-- sqlgen:begin functions/internal/_get_state.sql sha256:b6532526e27643617647d1f96d487d866f23e6982761922323df904058eaf268
create or replace function sb_internal._get_state(caller name, conversation_group_id uuid)
  returns jsonb
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._may_use_group(_get_state.caller, _get_state.conversation_group_id);
  return (
    select s.state
      from sb_internal.state as s
     where s.conversation_group_id = _get_state.conversation_group_id);
end
$$;
comment on function sb_internal._get_state(name, uuid) is
  'sb.get_state with the callers rights checked.';
revoke all on function sb_internal._get_state(name, uuid) from public;
-- sqlgen:end functions/internal/_get_state.sql
-- sqlgen:begin functions/internal/_is_valid_body.sql sha256:de138a030d30b07b4d5618a9fc637a7dc0496ffee4236d03c48da485c9d29b74
create or replace function sb_internal._is_valid_body(
  message_type_id integer,
  validation text,
  body bytea,
  is_text boolean
)
  returns boolean
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return case _is_valid_body.validation
    when 'NONE' then true
    when 'EMPTY' then _is_valid_body.body is null
    when 'WELL_FORMED_JSON' then
      _is_valid_body.body is null or sb_internal._json_is_well_formed(_is_valid_body.body)
    when 'VALID_JSON' then
      _is_valid_body.body is null
      or sb_internal._json_is_well_formed(_is_valid_body.body)
      and coalesce((
        select sb_internal._json_schema_is_valid(t.schema,
                 sb_internal._json_value(_is_valid_body.body))
          from sb_internal.message_type as t
         where t.message_type_id = _is_valid_body.message_type_id
           and t.schema is not null), true)
    else
      _is_valid_body.body is null
      or sb_internal._xml_is_well_formed(_is_valid_body.body, _is_valid_body.is_text)
  end;
exception
  -- A body that is JSON but not jsonb (\u0000, a number out of range) cannot match a schema.
  when data_exception or program_limit_exceeded then
    return false;
end
$$;
comment on function sb_internal._is_valid_body(integer, text, bytea, boolean) is
  'Checks a body against the validation of its message type, except for a users validator function, which runs with the rights of whoever sends.';
revoke all on function sb_internal._is_valid_body(integer, text, bytea, boolean) from public;
-- sqlgen:end functions/internal/_is_valid_body.sql
-- sqlgen:begin functions/internal/_json_decode.sql sha256:2018df973a1d4ea20f9aed2366179e92a07149bc6a19a2d17598ca71e2f7dc71
create or replace function sb_internal._json_decode(body bytea)
  returns text
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return convert_from(
    case
      when substr(_json_decode.body, 1, 3) = '\xefbbbf'::bytea then substr(_json_decode.body, 4)
      else _json_decode.body
    end,
    'UTF8'
  );
exception
  when character_not_in_repertoire or untranslatable_character then
    return null;
end
$$;
comment on function sb_internal._json_decode(bytea) is
  'The characters of a JSON body, which is UTF-8, without a byte order mark. NULL when it is not UTF-8 or holds a NUL.';
revoke all on function sb_internal._json_decode(bytea) from public;
-- sqlgen:end functions/internal/_json_decode.sql
-- sqlgen:begin functions/internal/_json_is_well_formed.sql sha256:ffd85c37c92138605519dde59614f97086c92c0e5f67a98cec3750c099ab5380
-- One exception block on every version: pg_input_is_valid (PostgreSQL 16) would spare neither the
-- one for bytes that are not UTF-8 nor the one for nesting beyond the stack, and the block costs
-- 0.4 µs.
create or replace function sb_internal._json_is_well_formed(body bytea)
  returns boolean
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- The cast is the check; is not null only makes it an expression that plpgsql evaluates without a
  -- query.
  return convert_from(
    case
      when substr(_json_is_well_formed.body, 1, 3) = '\xefbbbf'::bytea
        then substr(_json_is_well_formed.body, 4)
      else _json_is_well_formed.body
    end,
    'UTF8'
  )::json is not null;
exception
  when character_not_in_repertoire or untranslatable_character or invalid_text_representation
    or statement_too_complex then
    return false;
end
$$;
comment on function sb_internal._json_is_well_formed(bytea) is
  'Whether a body is one JSON value in UTF-8, with or without a byte order mark, as type json accepts it: \u0000, lone surrogates and numbers of any size are syntax, though jsonb cannot hold them (_json_value). Nesting beyond max_stack_depth is not well formed. Raises nothing.';
revoke all on function sb_internal._json_is_well_formed(bytea) from public;
-- sqlgen:end functions/internal/_json_is_well_formed.sql
-- sqlgen:begin functions/internal/_json_schema_check.sql sha256:17e59ed2bf2ce634832fe27223ca21e08d41ef2e39001456d398b8dc357a6555
-- Each keyword of each subschema is one row; the walk goes down one level past the limit to see
-- that there is more.
create or replace function sb_internal._json_schema_check(schema jsonb)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  -- _json_matches recurses once a level.
  _max_depth constant integer := 64;
  _types constant jsonb :=
    '["null", "boolean", "object", "array", "number", "integer", "string"]'::jsonb;
  _at record;
  _kind text;
  _wrong text;
begin
  for _at in
    with recursive node(path, depth, schema) as (
      select
        '#',
        1,
        _json_schema_check.schema
      union all
      select
        n.path || '/' || c.step,
        n.depth + 1,
        c.schema
      from node as n
      cross join lateral (
        select k.keyword as step, n.schema -> k.keyword as schema
        from unnest(array['additionalProperties', 'items', 'not']) as k(keyword)
        where n.schema ? k.keyword
        union all
        select k.keyword || '/' || (e.position - 1), e.value
        from unnest(array['anyOf', 'allOf', 'oneOf']) as k(keyword)
        cross join lateral jsonb_array_elements(
          case jsonb_typeof(n.schema -> k.keyword) when 'array' then n.schema -> k.keyword end
        ) with ordinality as e(value, position)
        union all
        select 'properties/' || replace(replace(p.key, '~', '~0'), '/', '~1'), p.value
        from jsonb_each(
          case jsonb_typeof(n.schema -> 'properties')
            when 'object' then n.schema -> 'properties'
          end
        ) as p(key, value)
      ) as c
      where jsonb_typeof(n.schema) = 'object' and n.depth <= _max_depth
    )
    select
      n.path,
      n.depth,
      jsonb_typeof(n.schema) as schema_kind,
      k.keyword,
      k.value
    from node as n
    left join lateral jsonb_each(
      case jsonb_typeof(n.schema) when 'object' then n.schema end
    ) as k(keyword, value) on true
  loop
    _wrong := null;
    _kind := jsonb_typeof(_at.value);
    if _at.depth > _max_depth then
      perform sb_internal._raise('22023', array[format(
        'schema is nested deeper than %s levels', _max_depth
      )]);
    elsif _at.schema_kind is null or _at.schema_kind not in ('object', 'boolean') then
      perform sb_internal._raise('22023', array[format(
        'schema at %s must be an object or a boolean', _at.path
      )]);
    elsif _at.keyword is null then
      continue;
    end if;

    case _at.keyword
      when 'additionalProperties', 'items', 'not', 'enum', 'const' then
        -- The first three hold subschemas, which are rows of their own; const takes any value.
        if _at.keyword = 'enum' and _kind <> 'array' then
          _wrong := 'an array';
        end if;
      when 'type' then
        -- <@ finds a single name in an array too.
        if _kind not in ('string', 'array') or _at.value = '[]' or not _at.value <@ _types then
          _wrong := 'a type name or a list of them';
        end if;
      when 'required' then
        if _kind <> 'array'
          or jsonb_path_exists(_at.value, 'strict $[*] ? (@.type() != "string")') then
          _wrong := 'an array of strings';
        end if;
      when 'properties' then
        if _kind <> 'object' then
          _wrong := 'an object';
        end if;
      when 'anyOf', 'allOf', 'oneOf' then
        if _kind <> 'array' or _at.value = '[]' then
          _wrong := 'a list of schemas';
        end if;
      when 'minimum', 'maximum' then
        if _kind <> 'number' then
          _wrong := 'a number';
        end if;
      when 'minLength', 'maxLength', 'minItems', 'maxItems' then
        _wrong := 'a whole number, not negative';
        if _kind = 'number' then
          if _at.value::numeric >= 0 and _at.value::numeric % 1 = 0 then
            _wrong := null;
          end if;
        end if;
      when 'pattern' then
        begin
          -- In JSON Schema \b is a word boundary, in PostgreSQL a backspace: refused, not silently
          -- different.
          _wrong := 'a regular expression without \b and \B';
          if _kind = 'string' then
            if (_at.value #>> '{}') !~ '^(?:[^\\]|\\[^bB])*\\[bB]'
              and ('' ~ (_at.value #>> '{}') collate "C") is not null then
              _wrong := null;
            end if;
          end if;
        exception
          when invalid_regular_expression then
            _wrong := 'a regular expression of PostgreSQL';
        end;
      else
        perform sb_internal._raise('22023', array[format(
          'schema keyword %s/%s is not supported', _at.path, _at.keyword
        )]);
    end case;
    if _wrong is not null then
      perform sb_internal._raise('22023', array[format(
        'schema keyword %s/%s must be %s', _at.path, _at.keyword, _wrong
      )]);
    end if;
  end loop;
end
$$;
comment on function sb_internal._json_schema_check(jsonb) is
  'Refuses (22023, naming the place) a JSON schema that _json_matches would not apply in full: a keyword outside the subset, be it an annotation such as title, a keyword of the wrong type, a pattern that is no regular expression here, more than 64 levels.';
revoke all on function sb_internal._json_schema_check(jsonb) from public;
-- sqlgen:end functions/internal/_json_schema_check.sql
-- sqlgen:begin functions/internal/_json_value.sql sha256:e55b86b8a23310e09e7a0dc7cfed76a84bf7d6bafe1554445729b4dedd33f388
create or replace function sb_internal._json_value(body bytea)
  returns jsonb
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return convert_from(
    case
      when substr(_json_value.body, 1, 3) = '\xefbbbf'::bytea then substr(_json_value.body, 4)
      else _json_value.body
    end,
    'UTF8'
  )::jsonb;
exception
  -- Beyond syntax: \u0000 and lone surrogates, numbers and values too large, nesting too deep.
  when character_not_in_repertoire or untranslatable_character or invalid_text_representation
    or numeric_value_out_of_range or program_limit_exceeded or statement_too_complex then
    return null;
end
$$;
comment on function sb_internal._json_value(bytea) is
  'A JSON body as the jsonb that a validator gets; SQL NULL when it is not well formed or jsonb cannot hold it (\u0000, a lone surrogate, a number beyond numeric), which VALID_JSON counts as not valid. Raises nothing.';
revoke all on function sb_internal._json_value(bytea) from public;
-- sqlgen:end functions/internal/_json_value.sql
-- sqlgen:begin functions/internal/_leave_group.sql sha256:bc06d065894a03f4df3deb81ffe0c6de6b680b45eff90f51a4eee109982fc519
create or replace function sb_internal._leave_group(conversation_group_id uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select 1
      from sb_internal.endpoint as e
     where e.conversation_group_id = _leave_group.conversation_group_id
       and e.state <> 'DO')
  then
    delete from sb_internal.state as s
     where s.conversation_group_id = _leave_group.conversation_group_id;
    delete from sb_internal.group_backoff as b
     where b.conversation_group_id = _leave_group.conversation_group_id;
    delete from sb.conversation_group as g
     where g.conversation_group_id = _leave_group.conversation_group_id;
  end if;
end
$$;
comment on function sb_internal._leave_group(uuid) is
  'Removes a group, with its state, when no conversation is left in it (R-246). The caller holds the group lock.';
revoke all on function sb_internal._leave_group(uuid) from public;
-- sqlgen:end functions/internal/_leave_group.sql
-- sqlgen:begin functions/internal/_lock_conversation.sql sha256:1ccab75990a146d72a9653f994da8816e07f34c2055067ba3b5a0dcb3f5b809e
-- A move needs both rows, so once the group is ours and was the right one, the group cannot change.
create or replace function sb_internal._lock_conversation(conversation_handle uuid)
  returns sb_internal.endpoint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  locked sb_internal.endpoint;
begin
  if _lock_conversation.conversation_handle is null then
    perform sb_internal._raise('S8418');
  end if;
  perform sb_internal._lock_group_of(_lock_conversation.conversation_handle);
  select e.*
    into locked
    from sb_internal.endpoint as e
   where e.conversation_handle = _lock_conversation.conversation_handle
     for no key update;
  if locked.has_counter then
    perform sb_internal._lock_counter(_lock_conversation.conversation_handle);
  end if;
  if locked.conversation_handle is null then
    perform sb_internal._raise('S8426', array[_lock_conversation.conversation_handle::text]);
  end if;
  return locked;
end
$$;
comment on function sb_internal._lock_conversation(uuid) is
  'The lock order of one side: group row, endpoint row, counter row (the one SEND locks). Returns the endpoint as it is under the locks. A side in DO has left its group: only the endpoint is locked. Errors: S8418 null handle, S8426 unknown handle.';
revoke all on function sb_internal._lock_conversation(uuid) from public;
-- sqlgen:end functions/internal/_lock_conversation.sql
-- sqlgen:begin functions/internal/_lock_conversations.sql sha256:bd328538339731fccd39dce51daf5a9d9a9413df33477607c34c47ec34d004b7
-- Transactions lock conversations in whatever order their work wants. One that takes many of them, and
-- waits for the next while holding some, sooner or later meets a transaction that waits for it: then one of
-- the two is the victim. So it waits only far shorter than deadlock_timeout, and else gives all back and
-- begins anew; who waited for it goes on meanwhile. But so many may be at work that somebody is always in
-- the way: after a while it stands firm, and who has locks in another order has to retry.
-- Row by row, not in a join: how many conversations there are is what statistics know least.
create or replace function sb_internal._lock_conversations(service_id integer, service_contract_id integer)
  returns uuid[]
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  own_timeout text := current_setting('lock_timeout');
  insist_at timestamptz := clock_timestamp() + interval '5 seconds';
  is_polite boolean;
  id uuid;
  handles uuid[];
begin
  loop
    is_polite := clock_timestamp() < insist_at;
    perform set_config('lock_timeout', case when is_polite then '50ms' else own_timeout end, true);
    begin
      for pass in 1..2 loop
        for id in
          select distinct e.conversation_group_id
            from sb_internal.endpoint as e
           where e.service_id = _lock_conversations.service_id
              or e.service_contract_id = _lock_conversations.service_contract_id
           order by e.conversation_group_id
        loop
          perform 1
             from sb.conversation_group as g
            where g.conversation_group_id = id
              for update;
        end loop;
        perform 1
           from sb_internal.endpoint as e
          where e.service_id = _lock_conversations.service_id
             or e.service_contract_id = _lock_conversations.service_contract_id
          order by e.conversation_handle
            for update;
        for id in
          select e.conversation_handle
            from sb_internal.endpoint as e
           where e.service_id = _lock_conversations.service_id
              or e.service_contract_id = _lock_conversations.service_contract_id
           order by e.conversation_handle
        loop
          perform 1
             from sb_internal.send_counter as c
            where c.conversation_handle = id
              for update;
        end loop;
        -- Keeps new ones from coming, each of which needs a key share lock of its service (foreign key)
        -- and an insert. Late, since it stops work that has nothing to do with the conversations locked so
        -- far; the second pass takes those that came before it.
        if _lock_conversations.service_id is not null then
          perform 1
             from sb_internal.service as s
            where s.service_id = _lock_conversations.service_id
              for update;
        else
          lock table sb_internal.endpoint in share row exclusive mode;
        end if;
      end loop;
      perform set_config('lock_timeout', own_timeout, true);
      select array_agg(e.conversation_handle order by e.conversation_handle)
        into handles
        from sb_internal.endpoint as e
       where e.service_id = _lock_conversations.service_id
          or e.service_contract_id = _lock_conversations.service_contract_id;
      return coalesce(handles, '{}');
    exception
      when lock_not_available then
        if not is_polite then
          raise;
        end if;
      when deadlock_detected then
        -- Giving back what was taken here is no help against one who waits for a lock that the transaction
        -- had before.
        if clock_timestamp() >= insist_at + interval '5 seconds' then
          raise;
        end if;
    end;
    perform pg_sleep(random() * 0.1);
  end loop;
end
$$;
comment on function sb_internal._lock_conversations(integer, integer) is
  'Locks every endpoint, with its group and counter, of a service or of a contract (the other argument null), keeps new ones from coming, and returns the handles. Part of a deadlock only after 5 s without success, and the victim of one only after 10 s.';
revoke all on function sb_internal._lock_conversations(integer, integer) from public;
-- sqlgen:end functions/internal/_lock_conversations.sql
-- sqlgen:begin functions/internal/_lock_counters.sql sha256:cd2e99133b999a1937cabfb6591b7c19b3cd1ac0a1c2ae9d721b4a3add878716
-- A reader answers the conversations of its group in the order of their messages, not of their handles. So
-- who wants several for one SEND does as _lock_conversations: waits only far shorter than deadlock_timeout,
-- and else gives all back and begins anew. That is no help against one who waits for a lock that the
-- transaction had before: so after a while it stands firm, and one of the two is the victim.
create or replace function sb_internal._lock_counters(conversation_handles uuid[])
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  own_timeout text := current_setting('lock_timeout');
  insist_at timestamptz := clock_timestamp() + interval '3 seconds';
  is_polite boolean;
begin
  loop
    is_polite := clock_timestamp() < insist_at;
    perform set_config('lock_timeout', case when is_polite then '50ms' else own_timeout end, true);
    begin
      -- A target that has sent nothing yet has no counter: _first_send locks its endpoint.
      perform 1
         from sb_internal.endpoint as e
        where e.conversation_handle = any (_lock_counters.conversation_handles)
          and not e.has_counter
        order by e.conversation_handle
          for no key update;
      perform 1
         from sb_internal.send_counter as c
        where c.conversation_handle = any (_lock_counters.conversation_handles)
        order by c.conversation_handle
          for no key update;
      perform set_config('lock_timeout', own_timeout, true);
      return;
    exception
      when lock_not_available then
        if not is_polite then
          raise;
        end if;
    end;
    perform pg_sleep(random() * 0.05);
  end loop;
end
$$;
comment on function sb_internal._lock_counters(uuid[]) is
  'Takes the locks of SEND on several conversations. Part of a deadlock only after 3 s without success.';
revoke all on function sb_internal._lock_counters(uuid[]) from public;
-- sqlgen:end functions/internal/_lock_counters.sql
-- sqlgen:begin functions/internal/_lock_group_of.sql sha256:7724946cf0355e300a9b10428725291d83bd4bbdf52add966b5dd6c169108b83
create or replace function sb_internal._lock_group_of(conversation_handle uuid)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  seen uuid;
begin
  loop
    select e.conversation_group_id
      into seen
      from sb_internal.endpoint as e
     where e.conversation_handle = _lock_group_of.conversation_handle
       and e.state <> 'DO';
    if not found then
      return null;
    end if;

    -- The conversation may be moved between the look and the lock, whether or not we wait. The lock of the
    -- group it left must not be kept: we would hold it, in the wrong order, while we wait for the next
    -- one. Rolling the subtransaction back frees it.
    begin
      perform 1
         from sb.conversation_group as g
        where g.conversation_group_id = seen
          for no key update;
      perform 1
         from sb_internal.endpoint as e
        where e.conversation_handle = _lock_group_of.conversation_handle
          and e.conversation_group_id = seen
          and e.state <> 'DO';
      if not found then
        perform sb_internal._raise('SB003');
      end if;
      return seen;
    exception
      when sqlstate 'SB003' then
        null;
    end;
  end loop;
end
$$;
comment on function sb_internal._lock_group_of(uuid) is
  'Locks the group of a conversation, for no key update to the end of the transaction, waiting for it; returns the group, or null when the conversation does not exist or has ended (DO). Holds no lock of a group that the conversation left meanwhile.';
revoke all on function sb_internal._lock_group_of(uuid) from public;
-- sqlgen:end functions/internal/_lock_group_of.sql
-- sqlgen:begin functions/internal/_lock_named_group.sql sha256:40f6fde431ecec34870432096cd92d6b62e6c4b079e482fdd0bd6d779f6fab21
create or replace function sb_internal._lock_named_group(
  queue_id integer,
  for_conversation uuid,
  for_group uuid,
  timeout interval,
  deadline timestamptz
)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  named uuid := _lock_named_group.for_group;
  nap double precision := 0.005::double precision;
begin
  loop
    if _lock_named_group.for_conversation is not null then
      select e.conversation_group_id
        into named
        from sb_internal.endpoint as e
        join sb_internal.service as s on s.service_id = e.service_id
       where e.conversation_handle = _lock_named_group.for_conversation
         and e.state <> 'DO'
         and s.queue_id = _lock_named_group.queue_id;
      if not found then
        perform sb_internal._raise('S8426', array[_lock_named_group.for_conversation::text]);
      end if;
    elsif not exists (
      select 1
        from sb.conversation_group as g
        join sb_internal.service as s on s.service_id = g.service_id
       where g.conversation_group_id = named
         and s.queue_id = _lock_named_group.queue_id)
    then
      perform sb_internal._raise('S8436', array[named::text]);
    end if;

    -- As in _lock_group_of: a lock that turns out to be of the wrong group, or too late, is not kept.
    begin
      if _lock_named_group.timeout is null or _lock_named_group.deadline = 'infinity' then
        -- No limit: wait as everybody waits, in the lock queue.
        perform 1
           from sb.conversation_group as g
          where g.conversation_group_id = named
            for no key update;
      else
        perform 1
           from sb.conversation_group as g
          where g.conversation_group_id = named
            for no key update skip locked;
      end if;
      if found then
        perform 1
           from sb.conversation_group as g
           join sb_internal.service as s on s.service_id = g.service_id
           join sb_internal.queue as q on q.queue_id = s.queue_id
          where g.conversation_group_id = named
            and q.queue_id = _lock_named_group.queue_id
            and q.is_enabled
            and (_lock_named_group.for_conversation is null
              or exists (
                select 1
                  from sb_internal.endpoint as e
                 where e.conversation_handle = _lock_named_group.for_conversation
                   and e.conversation_group_id = named
                   and e.state <> 'DO'));
        if not found then
          perform sb_internal._raise('SB003');
        end if;
        return named;
      end if;
    exception
      when sqlstate 'SB003' then
        null;
    end;

    if _lock_named_group.timeout is not null and _lock_named_group.deadline is distinct from 'infinity' then
      exit when coalesce(sb_internal._now() >= _lock_named_group.deadline, true);
      perform pg_sleep(greatest(0, least(nap, extract(epoch from _lock_named_group.deadline - sb_internal._now()))));
      nap := least(nap * 1.5, 0.25);
    end if;
    -- After any wait all is looked at again: the conversation may have ended or moved, the queue be off.
    perform sb_internal._raise('S9617', array[q.name])
       from sb_internal.queue as q
      where q.queue_id = _lock_named_group.queue_id
        and not q.is_enabled;
  end loop;
  return null;
end
$$;
comment on function sb_internal._lock_named_group(integer, uuid, uuid, interval, timestamptz) is
  'Locks the group of receives for_conversation or for_group: waits without limit when no timeout is given, else up to the deadline, then null. Errors: S8426, S8436 also for those of another queue.';
revoke all on function sb_internal._lock_named_group(integer, uuid, uuid, interval, timestamptz) from public;
-- sqlgen:end functions/internal/_lock_named_group.sql
-- sqlgen:begin functions/internal/_maintain.sql sha256:4d03768936a604e9dc7a7f6d5ec261ab8a6bb32efd941fb59c2eafd39c083c97
create or replace function sb_internal._maintain(caller name)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_maintain.caller, 'maintain');
  perform sb_internal._delete_orphans();
  delete from sb_internal.group_backoff as b
   where b.not_before < sb_internal._now() - interval '1 hour';
  delete from sb_internal.activated_task as t
   where not exists (
     select 1
       from pg_stat_get_activity(t.pid) as a);
  perform sb_internal._write_poison_limits();
  perform sb_internal._deliver(null, null);
  -- QUEUE_ACTIVATION again: one that was left to the holder of the monitor's row and not sent by him, and,
  -- since the program it started may have died, once a minute while there is something to receive (X-16).
  update sb_internal.queue_monitor as m
     set state = 'INACTIVE'
   where m.queue_id = any (array(
     select o.queue_id
       from sb_internal.queue_monitor as o
       join sb_internal.queue as q on q.queue_id = o.queue_id
      where q.has_activation_event
        and o.state <> 'INACTIVE'
        and o.last_activated_time < sb_internal._now() - interval '1 minute'
        for no key update of o skip locked));
  perform sb_internal._monitor_arrival(q.queue_id)
     from sb_internal.queue as q
    where q.has_activation_event
      and (exists (
        select 1
          from sb_internal.message as m
         where m.queue_id = q.queue_id)
      or exists (
        select 1
          from sb_internal.due as d
         where d.queue_id = q.queue_id
           and d.due_at <= sb_internal._now()));
  perform sb_internal._prune_roles();
  perform sb_internal._drop_stale_sequences();
end
$$;
comment on function sb_internal._maintain(name) is
  'sb.maintain with the callers rights checked.';
revoke all on function sb_internal._maintain(name) from public;
-- sqlgen:end functions/internal/_maintain.sql
-- sqlgen:begin functions/internal/_may_use_conversation.sql sha256:6e106186f868297c1778aa6a973c0dcbec3f0a83ac401218f7509a658cf13530
create or replace function sb_internal._may_use_conversation(
  caller name,
  e sb_internal.endpoint,
  verb text
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not exists (
    select 1
      from sb_internal.service as s
      join sb_internal.queue as q on q.queue_id = s.queue_id
     where s.service_id = e.service_id
       and (q.owner = _may_use_conversation.caller
         or _may_use_conversation.caller = any (q.receivers)
         or sb_internal._may(_may_use_conversation.caller, q.owner, q.receivers)))
  then
    perform sb_internal._raise('42501', array[_may_use_conversation.caller::text,
      _may_use_conversation.verb || ' this conversation'],
      'conversation_handle=' || e.conversation_handle);
  end if;
end
$$;
comment on function sb_internal._may_use_conversation(name, sb_internal.endpoint, text) is
  'Error 42501 unless the caller may receive from the queue of the conversations service, which is the right to use its conversations.';
revoke all on function sb_internal._may_use_conversation(name, sb_internal.endpoint, text) from public;
-- sqlgen:end functions/internal/_may_use_conversation.sql
-- sqlgen:begin functions/internal/_move_conversation.sql sha256:75358fb9e66cf654c4ff26a5f64790362f154f089e3d578675816b9bc3660f2b
create or replace function sb_internal._move_conversation(
  caller name,
  conversation_handle uuid,
  conversation_group_id uuid
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint;
begin
  if _move_conversation.conversation_handle is null then
    perform sb_internal._raise('S8418');
  end if;
  if _move_conversation.conversation_group_id is null then
    perform sb_internal._raise('S8420');
  end if;

  -- Both groups in id order. The first look says which; when the conversation was moved while we
  -- waited, the locks are given back and it is looked at again.
  loop
    select o.*
      into e
      from sb_internal.endpoint as o
     where o.conversation_handle = _move_conversation.conversation_handle;
    if not found then
      perform sb_internal._raise('S8426', array[_move_conversation.conversation_handle::text]);
    end if;
    perform sb_internal._may_use_conversation(_move_conversation.caller, e, 'move');
    if e.state = 'DO' then
      perform sb_internal._raise('S8438', array[e.conversation_handle::text, e.state]);
    end if;
    begin
      perform 1
         from sb.conversation_group as g
        where g.conversation_group_id in (e.conversation_group_id, _move_conversation.conversation_group_id)
        order by g.conversation_group_id
          for no key update;
      perform 1
         from sb_internal.endpoint as o
        where o.conversation_handle = e.conversation_handle
          and o.conversation_group_id = e.conversation_group_id
          and o.state <> 'DO';
      if not found then
        perform sb_internal._raise('SB003');
      end if;
      exit;
    exception
      when sqlstate 'SB003' then
        null;
    end;
  end loop;

  if e.conversation_group_id = _move_conversation.conversation_group_id then
    return;
  end if;
  perform 1
     from sb.conversation_group as g
    where g.conversation_group_id = _move_conversation.conversation_group_id;
  if not found then
    perform sb_internal._raise('S8436', array[_move_conversation.conversation_group_id::text]);
  end if;
  perform 1
     from sb.conversation_group as g
    where g.conversation_group_id = _move_conversation.conversation_group_id
      and g.service_id = e.service_id;
  if not found then
    perform sb_internal._raise('S8439', array[_move_conversation.conversation_group_id::text,
      e.conversation_handle::text]);
  end if;

  update sb_internal.endpoint as o
     set conversation_group_id = _move_conversation.conversation_group_id
   where o.conversation_handle = e.conversation_handle;
  perform sb_internal._lock_counter(e.conversation_handle);
  -- Messages before due rows, as alter_service.
  update sb_internal.message as m
     set conversation_group_id = _move_conversation.conversation_group_id
   where m.conversation_handle = e.conversation_handle;
  update sb_internal.due as d
     set conversation_group_id = _move_conversation.conversation_group_id
   where d.conversation_handle = e.conversation_handle;
  update sb_internal.retained_message as r
     set conversation_group_id = _move_conversation.conversation_group_id
   where r.conversation_handle = e.conversation_handle;
  perform sb_internal._leave_group(e.conversation_group_id);
end
$$;
comment on function sb_internal._move_conversation(name, uuid, uuid) is
  'MOVE CONVERSATION behind sb.move_conversation.';
revoke all on function sb_internal._move_conversation(name, uuid, uuid) from public;
-- sqlgen:end functions/internal/_move_conversation.sql
-- sqlgen:begin functions/internal/_move_service.sql sha256:f51e76e2fe74233fe7f012fd4ffd9708d253dfb556622dced3685e062b681e0a
create or replace function sb_internal._move_service(service_id integer, from_queue_id integer, to_queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  moving uuid[];
begin
  -- A SEND that has read the old queue may not have inserted yet: all it holds on the message table is
  -- the lock of that read. Only this mode waits for it too, and the statements below then see its rows.
  if not sb_internal._lock_table('sb_internal.message', '10 s') then
    perform sb_internal._raise('S3716', array['service ' || s.name, 'transactions that have touched messages'],
      'retry=when no receive waits and no handler runs')
       from sb_internal.service as s
      where s.service_id = _move_service.service_id;
  end if;
  perform sb_internal._raise('S9617', array[q.name])
     from sb_internal.queue as q
    where q.queue_id in (_move_service.from_queue_id, _move_service.to_queue_id)
      and not sb_internal._queue_is_on(q.queue_id);

  update sb_internal.service as s
     set queue_id = _move_service.to_queue_id
   where s.service_id = _move_service.service_id;
  select array_agg(e.conversation_handle)
    into moving
    from sb_internal.endpoint as e
   where e.service_id = _move_service.service_id;

  -- Orders are never reused in another queue: new ones, in the old order.
  with moved as (
    delete from sb_internal.message as m
     where m.queue_id = _move_service.from_queue_id
       and m.conversation_handle = any (moving)
    returning m.*
  )
  insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
    message_type_id, conversation_handle, conversation_group_id, priority, message_body)
  select nextval('sb_internal.queuing_order'), o.message_sequence_number, o.message_enqueue_time,
         _move_service.to_queue_id, o.message_type_id, o.conversation_handle, o.conversation_group_id,
         o.priority, o.message_body
    from (
      select m.*
        from moved as m
       order by m.queuing_order
    ) as o;
  update sb_internal.retained_message as r
     set queue_id = _move_service.to_queue_id
   where r.conversation_handle = any (moving);
  update sb_internal.due as d
     set queue_id = _move_service.to_queue_id
   where d.conversation_handle = any (moving);

  perform pg_notify('sb_queue_' || _move_service.from_queue_id, '');
  perform sb_internal._look_again(_move_service.to_queue_id);
end
$$;
comment on function sb_internal._move_service(integer, integer, integer) is
  'Moves a service with its messages, retained messages and due rows to another queue. Error S9617 while either queue is off. Waits for every transaction that has touched messages, waiting receives included, at most 10 s and never in the way of others for more than a fifth of a second; then S3716.';
revoke all on function sb_internal._move_service(integer, integer, integer) from public;
-- sqlgen:end functions/internal/_move_service.sql
-- sqlgen:begin functions/internal/_new_broker.sql sha256:f2b4ef4f502afb5dd99d3af9b62310c418ddc72d2d3bae666fc823bcb4c0a840
create or replace function sb_internal._new_broker(caller name)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_new_broker.caller, 'make a new broker');
  perform sb_internal._lock_catalog();
  perform sb_internal._stop_messaging();
  -- Deleted, not truncated: older snapshots keep what they see, and state tables of users, which
  -- reference the groups, are cleaned by their own foreign keys.
  delete from sb_internal.message;
  delete from sb_internal.retained_message;
  delete from sb_internal.transmission;
  delete from sb_internal.due;
  delete from sb_internal.receive_cursor;
  delete from sb_internal.send_counter;
  delete from sb_internal.group_backoff;
  delete from sb_internal.state;
  delete from sb_internal.endpoint;
  delete from sb.conversation_group;
  update sb_internal.event_notification as n
     set conversation_handle = null
   where n.conversation_handle is not null;
  update sb_internal.queue_monitor as m
     set state = 'INACTIVE'
   where m.state <> 'INACTIVE';
  update sb_internal.broker as b
     set broker_instance = gen_random_uuid(),
         is_broker_enabled = true
   where b.singleton;
  perform sb_internal._announce('new_broker', 'database', current_database());
end
$$;
comment on function sb_internal._new_broker(name) is
  'NEW_BROKER behind sb.new_broker. Event notifications stay and begin new dialogs.';
revoke all on function sb_internal._new_broker(name) from public;
-- sqlgen:end functions/internal/_new_broker.sql
-- sqlgen:begin functions/internal/_next_group.sql sha256:eaee01ea0b29517caf3ffda3c3825ad2d2a7694e9da1b7d760ca27584cf91568
create or replace function sb_internal._next_group(
  queue_id integer,
  priority_levels smallint[],
  out conversation_group_id uuid,
  out conversation_handle uuid
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  started double precision := date_part('epoch', clock_timestamp());
  next_full double precision := coalesce(sb_internal._cell(_next_group.queue_id, 'search'), 0)
    / double precision '1000';
  -- More than a minute ahead is not ours: a clock was set back, or a dump restored.
  is_full boolean := started >= next_full or next_full > started + 60;
  level smallint;
  read_before bigint := pg_stat_get_xact_blocks_fetched('sb_internal.message'::regclass);
  pause double precision := 0.1::double precision;
begin
  for pass in 1..2 loop
    foreach level in array _next_group.priority_levels loop
      select l.conversation_group_id, l.conversation_handle
        into _next_group.conversation_group_id, _next_group.conversation_handle
        from sb_internal._next_group_of_level(_next_group.queue_id, level, is_full) as l;
      exit when _next_group.conversation_group_id is not null;
    end loop;

    if is_full and coalesce(sb_internal._cell(_next_group.queue_id, 'poison_alarm'), 0) = 0 then
      -- Full searches bring back what a rollback left behind the hint, and look at the clock. On a bad day
      -- (an old snapshot keeps tens of thousands of dead rows) one takes long, and they are paid for out of
      -- a budget of 5 %. The day is judged by the pages read: time alone would blame a busy machine.
      if pg_stat_get_xact_blocks_fetched('sb_internal.message'::regclass) - read_before > 2000 then
        pause := least(10, greatest(pause, 20 * (date_part('epoch', clock_timestamp()) - started)));
      end if;
      perform setval(('sb_internal.queue_' || _next_group.queue_id || '_search')::regclass,
        ((started + pause) * 1000)::bigint);
      -- Raised meanwhile: the time must stay in the past (see _poison_record).
      if sb_internal._cell(_next_group.queue_id, 'poison_alarm') = 1 then
        perform setval(('sb_internal.queue_' || _next_group.queue_id || '_search')::regclass, 0);
      end if;
    end if;
    exit when _next_group.conversation_group_id is not null or is_full;

    -- Nothing from the hint on. "Empty" must be true, so look everywhere, unless that is the bad day.
    exit when next_full > started + 0.1;
    is_full := true;
  end loop;
end
$$;
comment on function sb_internal._next_group(integer, smallint[]) is
  'Finds a group with something to receive that nobody else holds, and locks it: the highest priority first, then about the oldest message. Never waits. Also returns the conversation through which it was found. Its cost does not depend on the backlog.';
revoke all on function sb_internal._next_group(integer, smallint[]) from public;
-- sqlgen:end functions/internal/_next_group.sql
-- sqlgen:begin functions/internal/_next_group_of_level.sql sha256:64dbb4d6932f6e0d92ff590a08f25d271a8ce4681c94e0213c4b4503d31d6cad
-- The hint is where the last group that could be locked was found. It is never trusted: it says where
-- to begin, not what to take, so it may be wrong in any way.
create or replace function sb_internal._next_group_of_level(
  queue_id integer,
  level smallint,
  is_full boolean,
  out conversation_group_id uuid,
  out conversation_handle uuid
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  hint bigint := coalesce(sb_internal._cell(_next_group_of_level.queue_id, 'hint_' || _next_group_of_level.level), 0);
  found_at bigint;
  candidate record;
  looked integer := 0;
  tried uuid[] := '{}'::uuid[];
  oldest_due timestamptz;
  stepped uuid;
  wrapped boolean := false;
  first_step uuid;
begin
  if _next_group_of_level.is_full then
    -- One row, whatever the plan: min() may be planned to read all, and a volatile clock in the where clause
    -- would be asked for each.
    select d.due_at
      into oldest_due
      from sb_internal.due as d
     where d.queue_id = _next_group_of_level.queue_id
       and d.priority = _next_group_of_level.level
     order by d.due_at
     limit 1;
    if oldest_due > clock_timestamp() then
      oldest_due := null;
    end if;
  end if;

  for candidate in
    select m.conversation_handle, m.conversation_group_id, m.queuing_order, m.message_enqueue_time
      from sb_internal.message as m
     where m.queue_id = _next_group_of_level.queue_id
       and m.priority = _next_group_of_level.level
       and m.queuing_order >= case when _next_group_of_level.is_full then 0 else hint end
     order by m.queuing_order
     limit 300
  loop
    looked := looked + 1;
    -- A timer that fell due before the message arrived goes first, else the message.
    if oldest_due <= candidate.message_enqueue_time then
      select d.conversation_group_id, d.conversation_handle
        into _next_group_of_level.conversation_group_id, _next_group_of_level.conversation_handle
        from sb_internal._claim_due(_next_group_of_level.queue_id, _next_group_of_level.level) as d;
      if conversation_group_id is not null then
        return;
      end if;
      oldest_due := null;
    end if;
    continue when candidate.conversation_group_id = any (tried);
    -- What the conversation would give first is a timer that fell due after the message arrived: its turn is
    -- at that time. Else a timer armed again and again would let the old message behind it hold the front.
    continue when exists (
      select 1
        from sb_internal.due as d
       where d.conversation_handle = candidate.conversation_handle
         and d.due_at > candidate.message_enqueue_time
         and d.due_at <= clock_timestamp());
    conversation_group_id := sb_internal._claim(candidate.conversation_handle);
    if conversation_group_id is not null then
      conversation_handle := candidate.conversation_handle;
      found_at := candidate.queuing_order;
      exit;
    end if;
    tried := tried || candidate.conversation_group_id;
  end loop;

  if conversation_group_id is null and oldest_due is not null then
    select d.conversation_group_id, d.conversation_handle
      into _next_group_of_level.conversation_group_id, _next_group_of_level.conversation_handle
      from sb_internal._claim_due(_next_group_of_level.queue_id, _next_group_of_level.level) as d;
  end if;

  if conversation_group_id is null and looked = 300 then
    -- The front belongs to busy groups. Step from group to group, one probe each, from a random point
    -- on and once around; stepping by conversation would walk a busy group's thousands.
    stepped := gen_random_uuid();
    first_step := stepped;
    loop
      select m.conversation_handle, m.conversation_group_id, m.queuing_order
        into candidate
        from sb_internal.message as m
       where m.queue_id = _next_group_of_level.queue_id
         and m.priority = _next_group_of_level.level
         and m.conversation_group_id > stepped
       order by m.conversation_group_id, m.queuing_order
       limit 1;
      if not found or wrapped and candidate.conversation_group_id > first_step then
        exit when wrapped;
        wrapped := true;
        stepped := '00000000-0000-0000-0000-000000000000';
        continue;
      end if;
      stepped := candidate.conversation_group_id;
      continue when stepped = any (tried);
      conversation_group_id := sb_internal._claim(candidate.conversation_handle);
      if conversation_group_id is not null then
        conversation_handle := candidate.conversation_handle;
        found_at := candidate.queuing_order;
        exit;
      end if;
    end loop;
  end if;

  if found_at is not null then
    perform sb_internal._advance_hint(_next_group_of_level.queue_id, _next_group_of_level.level, found_at);
  end if;
end
$$;
comment on function sb_internal._next_group_of_level(integer, smallint, boolean) is
  'One priority level of _next_group: a window from the start hint (a full search: from the front), then due timers and lifetimes, then from group to group.';
revoke all on function sb_internal._next_group_of_level(integer, smallint, boolean) from public;
-- sqlgen:end functions/internal/_next_group_of_level.sql
-- sqlgen:begin functions/internal/_open_state_table.sql sha256:ec0122b57c4c138754ee7ccbb4554125a149526835bb1b220aed133bb51dadf2
create or replace function sb_internal._open_state_table(caller name, drop_on_end boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _open_state_table.drop_on_end then
    -- One at a time: rights on the one column come and go inside this transaction only.
    perform pg_advisory_xact_lock(8422, 0);
    execute format('grant references (conversation_group_id) on sb.conversation_group to %I', _open_state_table.caller);
  end if;
end
$$;
comment on function sb_internal._open_state_table(name, boolean) is
  'First step of create_state_table: lends the caller REFERENCES on the group id. Waits for another create_state_table.';
revoke all on function sb_internal._open_state_table(name, boolean) from public;
-- sqlgen:end functions/internal/_open_state_table.sql
-- sqlgen:begin functions/internal/_poison_count.sql sha256:e4b44e24213dc0ffa470b2d4db874266bc6d95d4e745a0b9dde71fe0a1e3d62b
-- A rolled-back transaction leaves no row, but its id in a sequence: the last 16 receiving transactions
-- of a queue form a ring. One slot is not enough: with several readers the newest is mostly still running.
create or replace function sb_internal._poison_count(queue_id integer, with_running boolean default false)
  returns integer
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  position bigint := sb_internal._cell(_poison_count.queue_id, 'poison_position');
  horizon bigint;
  entry bigint;
  receiver bigint;
  counted bigint[] := '{}'::bigint[];
  rollbacks integer := 0;
  status text;
begin
  if position is null then
    return 0;
  end if;
  for age in 0..15 loop
    entry := sb_internal._cell(_poison_count.queue_id, 'poison_' || ((position - age) & 15));
    exit when entry is null or entry = 0;

    -- The entry has the low half of a transaction id, and what it means is the id nearest to the horizon. Those
    -- still running may lie beyond it. So may an id from another cluster, asking for whose status raises.
    horizon := coalesce(horizon, pg_snapshot_xmax(pg_current_snapshot())::text::bigint);
    receiver := horizon + ((entry - horizon + 2147483648) & 4294967295) - 2147483648;
    exit when receiver < 3;
    begin
      status := pg_xact_status(receiver::text::xid8);
    exception
      when invalid_parameter_value then
        perform sb_internal._poison_reset(_poison_count.queue_id);
        return 0;
    end;

    exit when status = 'committed';
    continue when receiver = any (counted)
      or status is distinct from 'aborted' and not (status = 'in progress' and _poison_count.with_running);

    if counted = '{}' and sb_internal._cell(_poison_count.queue_id, 'stamp') is distinct from sb_internal._stamp() then
      -- The ids were not written here but restored from a dump.
      perform sb_internal._poison_reset(_poison_count.queue_id);
      return 0;
    end if;
    counted := counted || receiver;
    -- A ring full of rollbacks says how many came before its oldest entry.
    rollbacks := cardinality(counted) + case when age = 15 then (entry >> 32)::integer else 0 end;
  end loop;
  return rollbacks;
end
$$;
comment on function sb_internal._poison_count(integer, boolean) is
  'How many transactions in a row received from the queue and rolled back, newest first up to the last committed one (R-350); those still running are passed over, or counted as if they were to fail. Survives the rollbacks it counts.';
revoke all on function sb_internal._poison_count(integer, boolean) from public;
-- sqlgen:end functions/internal/_poison_count.sql
-- sqlgen:begin functions/internal/_poison_disable.sql sha256:44d2644aaef0aad62b2cbc069b6d16337d09125de200a13a4eb73c3d5e9d8a31
create or replace function sb_internal._poison_disable(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  queue_name text;
begin
  -- Whoever commits first makes it lasting; a rival that is about to is not waited for.
  perform 1
     from sb_internal.queue as q
    where q.queue_id = _poison_disable.queue_id
      and q.is_enabled
      for no key update skip locked;
  if not found then
    return;
  end if;
  update sb_internal.queue as q
     set is_enabled = false
   where q.queue_id = _poison_disable.queue_id
  returning q.name into queue_name;
  perform sb_internal._send_event(_poison_disable.queue_id, 'BROKER_QUEUE_DISABLED');
  perform pg_notify('sb_events',
    json_build_object('event', 'queue_disabled', 'queue', queue_name, 'cause', 'poison')::text);
  perform pg_notify('sb_queue_' || _poison_disable.queue_id, '');
end
$$;
comment on function sb_internal._poison_disable(integer) is
  'Writes down that the poison limit switched the queue off and sends BROKER_QUEUE_DISABLED, in this transaction.';
revoke all on function sb_internal._poison_disable(integer) from public;
-- sqlgen:end functions/internal/_poison_disable.sql
-- sqlgen:begin functions/internal/_poison_record.sql sha256:7d4e8ae9dda92515d08c4f70192b2bf314a574202129c71ced435105d5dd38da
create or replace function sb_internal._poison_record(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  cell constant text := 'sb_internal.queue_' || _poison_record.queue_id || '_poison_';
  own constant bigint := pg_current_xact_id()::text::bigint;
  position bigint := pg_sequence_last_value((cell || 'position')::regclass);
  alarm boolean := coalesce(pg_sequence_last_value((cell || 'alarm')::regclass), 0) = 1;
  previous bigint := 0::bigint;
  rollbacks integer := 0;
  is_usual boolean;
  is_close boolean;
begin
  if position is not null then
    previous := coalesce(pg_sequence_last_value((cell || (position & 15))::regclass), 0) & 4294967295;
    if previous = own & 4294967295 then
      return;
    end if;
    previous := (own & ~4294967295) | previous;
    if previous > own then
      previous := previous - 4294967296;
    end if;
  end if;
  -- Mostly the one before has committed and nothing is the matter.
  is_usual := not alarm and previous >= 3 and coalesce(pg_xact_status(previous::text::xid8) = 'committed', false);
  if not is_usual then
    rollbacks := sb_internal._poison_count(_poison_record.queue_id);
  end if;
  position := nextval((cell || 'position')::regclass);
  perform setval((cell || (position & 15))::regclass, (rollbacks::bigint << 32) | (own & 4294967295));
  if is_usual then
    return;
  end if;

  -- This one counts, too, if it rolls back. It is written down first: of several at the same time, the last
  -- one sees the others.
  select sb_internal._poison_count(_poison_record.queue_id, true) >= b.poison_message_threshold
    into is_close
    from sb_internal.broker as b
   where b.singleton;
  alarm := coalesce(pg_sequence_last_value((cell || 'alarm')::regclass), 0) = 1;
  if alarm <> is_close then
    perform setval((cell || 'alarm')::regclass, is_close::integer);
    -- From now on no receive may take the short way, which does not look at the alarm.
    perform setval(('sb_internal.queue_' || _poison_record.queue_id || '_search')::regclass, 0);
  end if;
end
$$;
comment on function sb_internal._poison_record(integer) is
  'Notes that this transaction received from the queue, with the count of rollbacks before it, and raises or lowers the alarm: raised, one more rollback may reach the limit.';
revoke all on function sb_internal._poison_record(integer) from public;
-- sqlgen:end functions/internal/_poison_record.sql
-- sqlgen:begin functions/internal/_poison_reset.sql sha256:5b9b8c42e1a00d2c027a5f570692535ede57970fa605be76aee78e841564103d
create or replace function sb_internal._poison_reset(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  for slot in 0..15 loop
    perform setval(('sb_internal.queue_' || _poison_reset.queue_id || '_poison_' || slot)::regclass, 0);
  end loop;
  perform setval(('sb_internal.queue_' || _poison_reset.queue_id || '_poison_alarm')::regclass, 0);
  perform setval(('sb_internal.queue_' || _poison_reset.queue_id || '_stamp')::regclass, sb_internal._stamp());
end
$$;
comment on function sb_internal._poison_reset(integer) is
  'Forgets the rollbacks counted for a queue. Takes effect at once and survives a rollback.';
revoke all on function sb_internal._poison_reset(integer) from public;
-- sqlgen:end functions/internal/_poison_reset.sql
-- sqlgen:begin functions/internal/_put_broker_priority.sql sha256:136d5ebe998345ecd8c00542911a2d318fd1b2998d97f9ba30ce42f91bc4a33f
create or replace function sb_internal._put_broker_priority(
  priority_id integer,
  name text,
  contract_name text,
  local_service_name text,
  remote_service_name text,
  priority_level integer
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  p sb_internal.conversation_priority;
  twin text;
begin
  select o.*
    into p
    from sb_internal.conversation_priority as o
   where o.priority_id = _put_broker_priority.priority_id;
  if _put_broker_priority.contract_name is not null then
    select c.id
      into p.service_contract_id
      from sb_internal._lookup('contract', _put_broker_priority.contract_name) as c;
  end if;
  if _put_broker_priority.local_service_name is not null then
    select s.id
      into p.local_service_id
      from sb_internal._lookup('service', _put_broker_priority.local_service_name) as s;
  end if;
  if _put_broker_priority.remote_service_name is not null then
    perform sb_internal._require_name(_put_broker_priority.remote_service_name, 'remote service', 256);
    p.remote_service_name := _put_broker_priority.remote_service_name;
  end if;
  if _put_broker_priority.priority_level not between 1 and 10 then
    perform sb_internal._raise('22023', array['priority_level must be between 1 and 10']);
  end if;
  p.priority := coalesce(_put_broker_priority.priority_level::smallint, p.priority, 5::smallint);

  -- The unique constraint takes two ANY for different.
  select o.name
    into twin
    from sb_internal.conversation_priority as o
   where o.service_contract_id is not distinct from p.service_contract_id
     and o.local_service_id is not distinct from p.local_service_id
     and o.remote_service_name is not distinct from p.remote_service_name
     and o.priority_id <> _put_broker_priority.priority_id;
  if found then
    perform sb_internal._raise('42710', array['a broker priority for the same contract and services:', twin]);
  end if;
  insert into sb_internal.conversation_priority as o
    (priority_id, name, service_contract_id, local_service_id, remote_service_name, priority)
  values (_put_broker_priority.priority_id, _put_broker_priority.name, p.service_contract_id, p.local_service_id,
    p.remote_service_name, p.priority)
      on conflict on constraint conversation_priority_pkey do update
     set service_contract_id = excluded.service_contract_id,
         local_service_id = excluded.local_service_id,
         remote_service_name = excluded.remote_service_name,
         priority = excluded.priority;
  perform sb_internal._add_priority_level(p.priority);
end
$$;
comment on function sb_internal._put_broker_priority(integer, text, text, text, text, integer) is
  'Creates or changes a broker priority; null leaves a criterion as it is, ANY for a new one. Errors: 42602, 42704, S8423, 22023, 42710 when another has the same criteria.';
revoke all on function sb_internal._put_broker_priority(integer, text, text, text, text, integer) from public;
-- sqlgen:end functions/internal/_put_broker_priority.sql
-- sqlgen:begin functions/internal/_raise.sql sha256:c9ee34b5bb708ed9b9734fb38374f09df5df45e87bbad2e365b51072af5b641a
-- Code generated by sqlgen from sql/errors.csv. DO NOT EDIT.
-- Every coded error is raised here, so that the registry alone decides what callers see.
create or replace function sb_internal._raise(
  code text,
  args text[] default '{}',
  details text default null
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _message text;
  _hint text;
  _detail text := _raise.details;
begin
  case _raise.code
    when 'S0208' then
      _message := 'queue %s does not exist';
      _hint := 'names are case-sensitive; select name from sb.service_queues';
      _detail := concat_ws(' ', _detail, 'sql_server_number=208');
    when 'S3716' then
      _message := '%s is in use by %s';
      _hint := 'drop or alter what uses it first';
      _detail := concat_ws(' ', _detail, 'sql_server_number=3716');
    when 'S8403' then
      _message := 'message type %s is listed twice in the contract';
      _hint := 'list each message type once; use sent_by_any for both directions';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8403');
    when 'S8404' then
      _message := 'contract %s is listed twice in the service';
      _hint := 'list each contract once';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8404');
    when 'S8406' then
      _message := 'lifetime may not be null here';
      _hint := 'leave the argument out for no limit';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8406');
    when 'S8408' then
      _message := 'service %s does not accept contract %s';
      _hint := 'sb.alter_service(name, add_contracts => …) at the target';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8408');
    when 'S8410' then
      _message := 'the timer of conversation %s would end after the conversation''s lifetime';
      _hint := 'use a shorter timeout';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8410');
    when 'S8411' then
      _message := 'lifetime %s is out of range';
      _hint := 'use an interval greater than zero and of at most 2147483647 seconds';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8411');
    when 'S8412' then
      _message := 'service name %s is not valid';
      _hint := 'use 1 to 128 characters, 256 for a remote service';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8412');
    when 'S8413' then
      _message := 'the broker instance is longer than 128 characters';
      _hint := 'use the broker_instance shown in sb.broker';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8413');
    when 'S8414' then
      _message := 'conversation group %s is not valid here';
      _hint := 'use a group of the same service';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8414');
    when 'S8417' then
      _message := 'the contract may not be null';
      _hint := 'leave the argument out for the DEFAULT contract';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8417');
    when 'S8418' then
      _message := 'the conversation handle may not be null';
      _hint := 'pass the handle returned by sb.begin_dialog or sb.receive';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8418');
    when 'S8419' then
      _message := 'the error code must be a positive integer and comes with a description';
      _hint := 'pass both error_code (> 0) and error_description';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8419');
    when 'S8420' then
      _message := 'the conversation group may not be null';
      _hint := 'pass the id of an existing group';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8420');
    when 'S8421' then
      _message := 'the service name may not be null';
      _hint := 'pass the name of the service';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8421');
    when 'S8422' then
      _message := 'the error description may not be null';
      _hint := 'pass both error_code and error_description';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8422');
    when 'S8423' then
      _message := 'service %s does not exist';
      _hint := 'names are case-sensitive; select name from sb.services';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8423');
    when 'S8424' then
      _message := 'error_code and error_description belong together';
      _hint := 'pass both or neither';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8424');
    when 'S8425' then
      _message := 'contract %s does not exist';
      _hint := 'names are case-sensitive; select name from sb.service_contracts';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8425');
    when 'S8426' then
      _message := 'conversation handle %s does not exist';
      _hint := 'it may have ended; select from sb.conversation_endpoints';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8426');
    when 'S8427' then
      _message := 'conversation %s in state %s cannot be ended';
      _hint := 'it ended already and waits only for its last message to leave';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8427');
    when 'S8428' then
      _message := 'message type %s does not exist';
      _hint := 'names are case-sensitive; select name from sb.service_message_types';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8428');
    when 'S8429' then
      _message := 'conversation %s in state %s cannot send';
      _hint := 'receive what is left and end the conversation; begin a new dialog to send again';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8429');
    when 'S8430' then
      _message := 'message type %s takes no body';
      _hint := 'send it without a body';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8430');
    when 'S8431' then
      _message := 'message type %s is not part of contract %s';
      _hint := 'select from sb.service_contract_message_usages';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8431');
    when 'S8432' then
      _message := 'message type %s may be sent by the target only';
      _hint := 'the initiator of this conversation cannot send it';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8432');
    when 'S8433' then
      _message := 'the message body may not be null';
      _hint := 'call sb.send without the body argument to send a message without a body';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8433');
    when 'S8434' then
      _message := 'message type %s may be sent by the initiator only';
      _hint := 'the target of this conversation cannot send it';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8434');
    when 'S8436' then
      _message := 'conversation group %s does not exist';
      _hint := 'it goes when its last conversation ends';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8436');
    when 'S8438' then
      _message := 'conversation %s in state %s cannot be moved';
      _hint := 'it ended already';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8438');
    when 'S8439' then
      _message := 'conversation group %s cannot take conversation %s';
      _hint := 'both must belong to the same service';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8439');
    when 'S8442' then
      _message := 'the broker is not installed completely';
      _hint := 'run sbactivator migrate up';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8442');
    when 'S8458' then
      _message := 'conversation %s in state %s takes no timer';
      _hint := 'it ended already';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8458');
    when 'S8459' then
      _message := 'a message body of %s bytes is too large';
      _hint := 'the limit is 268435456 bytes; send a reference instead';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8459');
    when 'S8462' then
      _message := 'the remote conversation endpoint has been closed';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8462');
    when 'S8468' then
      _message := 'the service of conversation %s was altered or dropped during the wait';
      _hint := 'look the conversation up again';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8468');
    when 'S8489' then
      _message := 'the dialog has exceeded its lifetime';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8489');
    when 'S8490' then
      _message := 'service %s does not exist in broker instance %s';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8490');
    when 'S8492' then
      _message := 'contract %s has no message type that the initiator may send';
      _hint := 'name one in sent_by_initiator or sent_by_any';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8492');
    when 'S8493' then
      _message := 'nothing to change for service %s';
      _hint := 'pass queue_name, add_contracts or drop_contracts';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8493');
    when 'S8494' then
      _message := 'the owner of service %s may not send to service %s';
      _hint := 'sb.grant_send(service, role) at the target';
      _detail := concat_ws(' ', _detail, 'sql_server_number=8494');
    when 'S9601' then
      _message := 'conversation %s cannot be related to conversation %s';
      _hint := 'both must be of the same service';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9601');
    when 'S9610' then
      _message := 'service %s is not the service of conversation group %s';
      _hint := 'begin the dialog from the service that the group belongs to';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9610');
    when 'S9613' then
      _message := 'activation role %s does not exist';
      _hint := 'create the role or pass another execute_as';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9613');
    when 'S9614' then
      _message := 'activation procedure %s does not exist';
      _hint := 'pass schema.name of a function or procedure without arguments';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9614');
    when 'S9615' then
      _message := 'the message body is not valid for message type %s';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9615');
    when 'S9617' then
      _message := 'queue %s is disabled';
      _hint := 'select sb.alter_queue(name, enabled => true)';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9617');
    when 'S9618' then
      _message := 'queue %s is disabled and retains sent messages';
      _hint := 'enable the queue or switch its retention off';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9618');
    when 'S9653' then
      _message := 'activation procedure %s takes arguments';
      _hint := 'pass a function or procedure without arguments';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9653');
    when 'S9659' then
      _message := 'route clause %s may not be empty';
      _hint := 'leave the argument out';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9659');
    when 'S9660' then
      _message := 'route clause %s is too long';
      _hint := 'use at most 256 characters, 128 for a broker instance';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9660');
    when 'S9661' then
      _message := 'a mirror address needs a service name and a broker instance';
      _hint := 'pass both';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9661');
    when 'S9662' then
      _message := 'a broker instance needs a service name';
      _hint := 'pass service_name too';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9662');
    when 'S9663' then
      _message := '%s is a system object';
      _hint := 'system objects cannot be altered or dropped';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9663');
    when 'S9717' then
      _message := 'queue %s has a QUEUE_ACTIVATION event notification';
      _hint := 'drop the notification before activating the queue';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9717');
    when 'S9718' then
      _message := 'queue %s has activation enabled';
      _hint := 'switch activation off before creating the notification';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9718');
    when 'S9719' then
      _message := 'the database broker ended all conversations by operator request';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9719');
    when 'S9742' then
      _message := 'activation procedure %s is temporary';
      _hint := 'use a permanent function or procedure';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9742');
    when 'S9743' then
      _message := 'mirror address %s is not a network address';
      _hint := 'use remote://<server>';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9743');
    when 'S9744' then
      _message := 'route address %s is not valid';
      _hint := 'use LOCAL or remote://<server>';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9744');
    when 'S9746' then
      _message := 'route lifetime %s is out of range';
      _hint := 'use an interval greater than zero';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9746');
    when 'S9747' then
      _message := 'the mirror address equals the address';
      _hint := 'use another server';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9747');
    when 'S9772' then
      _message := 'the broker of this database cannot be enabled: %s';
      _hint := 'call sb.new_broker()';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9772');
    when 'SB001' then
      _message := 'conversation handle %s is listed twice';
      _hint := 'list each handle once';
    when 'SB002' then
      _message := 'state table %s cannot be created: %s';
      _hint := 'pass the table name and its further columns only';
    when 'SB003' then
      _message := 'a group lock is given back (internal)';
    when '22023' then
      _message := '%s';
      _hint := 'see the function''s comment: \df+ or obj_description';
    when '42501' then
      _message := 'role %s may not %s';
      _hint := 'ask the owner of the object or an admin of sb for the right';
    when '42602' then
      _message := '%s name %s is not valid';
      _hint := 'use 1 to 128 characters, 256 for a remote service';
    when '42704' then
      _message := '%s %s does not exist';
      _hint := 'names are case-sensitive';
    when '42710' then
      _message := '%s %s already exists';
      _hint := 'pass if_not_exists => true to accept that';
    when '40001' then
      _message := 'could not work on rows changed since the transaction began';
      _hint := 'roll back and retry the transaction; sb is made for read committed';
    else
      raise exception using
        errcode = 'XX000',
        message = format('error code %s is not in the registry', coalesce(_raise.code, 'null')),
        detail = format('args=%s details=%s', _raise.args, _raise.details),
        hint = 'this is a defect of sb; please report it';
  end case;
  -- A caller that passes too few arguments must not hide its own error behind one of format().
  _message := format(_message, variadic _raise.args || array['?', '?', '?', '?']);
  -- raise refuses null options, and an empty one would print an empty line.
  if _detail is null and _hint is null then
    raise exception using errcode = _raise.code, message = _message;
  elsif _hint is null then
    raise exception using errcode = _raise.code, message = _message, detail = _detail;
  elsif _detail is null then
    raise exception using errcode = _raise.code, message = _message, hint = _hint;
  else
    raise exception using errcode = _raise.code, message = _message, detail = _detail, hint = _hint;
  end if;
end
$$;
comment on function sb_internal._raise(text, text[], text) is
  'Raises the registered error code, its message filled in with args; details are key=value pairs. Never returns.';
revoke all on function sb_internal._raise(text, text[], text) from public;
-- sqlgen:end functions/internal/_raise.sql
-- sqlgen:begin functions/internal/_receive.sql sha256:037e9362fcdb85a5cf99da8e8248e9aa57dd30f76f0d8276da75209b4e6c356c
-- Plans are made once a session, perhaps while the queue is empty: every statement here and in what it
-- calls probes an index, and the settings keep the planner from anything else. jit: what the settings
-- make expensive on paper would be compiled, for longer than it runs.
create or replace function sb_internal._receive(
  caller name,
  queue_name text,
  max_messages integer,
  for_conversation uuid,
  for_group uuid,
  timeout interval
)
  returns table (status smallint, priority smallint, queuing_order bigint, conversation_group_id uuid,
    conversation_handle uuid, message_sequence_number bigint, service_name text, service_id integer,
    service_contract_name text, service_contract_id integer, message_type_name text, message_type_id integer,
    validation text, message_body bytea, message_enqueue_time timestamptz)
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
declare
  q record;
  e record;
  is_common boolean;
  hint bigint;
  found_at bigint;
  lowest bigint;
  remaining bigint := coalesce(_receive.max_messages, 9223372036854775807);
  deadline timestamptz;
  nap double precision := 0.005::double precision;
  held uuid;
  conversation uuid;
  returned bigint := 0::bigint;
  retries integer := 0;
begin
  if _receive.for_conversation is not null and _receive.for_group is not null then
    perform sb_internal._raise('22023', array['for_conversation and for_group exclude each other']);
  end if;
  if remaining <= 0 then
    perform sb_internal._raise('22023', array['max_messages must be greater than zero']);
  end if;
  select o.queue_id, o.name, o.owner, o.receivers, o.is_enabled, o.is_retention_enabled,
         o.is_poison_message_handling_enabled, o.has_activation_event, b.priority_levels, b.system_names
    into q
    from sb_internal.queue as o
   cross join sb_internal.broker as b
   where o.name = _receive.queue_name
     and b.singleton;
  if not found then
    perform sb_internal._require_name(_receive.queue_name, 'queue', 128);
    perform sb_internal._raise('S0208', array[_receive.queue_name]);
  end if;
  deadline := case
    when _receive.timeout is null then null
    when _receive.timeout < interval '0' or _receive.timeout > interval '1000 years' then 'infinity'
    when _receive.timeout > interval '0' then clock_timestamp() + _receive.timeout
  end;

  loop
    if _receive.caller <> q.owner and not (_receive.caller = any (q.receivers))
      and not sb_internal._may(_receive.caller, q.owner, q.receivers)
    then
      perform sb_internal._raise('42501', array[_receive.caller::text, 'receive from queue ' || q.name]);
    end if;
    if not q.is_enabled then
      perform sb_internal._raise('S9617', array[q.name]);
    end if;
    -- While the poison alarm is raised the time of the next full search stays in the past (see
    -- _poison_record), so that the common case asks one question instead of two.
    -- A time far ahead is a clock that was set back, or a restored one.
    is_common := pg_sequence_last_value(('sb_internal.queue_' || q.queue_id || '_search')::regclass)
      - date_part('epoch', clock_timestamp()) * 1000 between 0 and 60000;
    if is_common is not true and q.is_poison_message_handling_enabled
      and sb_internal._poison_limit_reached(q.queue_id)
    then
      perform sb_internal._poison_disable(q.queue_id);
      return;
    end if;

    held := null;
    if _receive.for_conversation is not null or _receive.for_group is not null then
      held := sb_internal._lock_named_group(q.queue_id, _receive.for_conversation, _receive.for_group,
        _receive.timeout, deadline);
      conversation := _receive.for_conversation;
    else
      if is_common and remaining = 1 and cardinality(q.priority_levels) = 1 and not q.is_retention_enabled then
        -- The common case in one go: one message wanted, and the one at the start hint can be had, or, since
        -- all readers begin there, one a few places on. It says what _claim and _take say; everything
        -- unusual is left to them.
        hint := coalesce(pg_sequence_last_value(
          ('sb_internal.queue_' || q.queue_id || '_hint_' || q.priority_levels[1])::regclass), 0);
        for attempt in 0..2 loop
          select m.conversation_handle, m.conversation_group_id, m.message_sequence_number, m.queuing_order,
                 true as is_unusual
            into e
            from sb_internal.message as m
           where m.queue_id = q.queue_id
             and m.priority = q.priority_levels[1]
             and m.queuing_order >= hint
           order by m.queuing_order
           limit 1
          offset case attempt when 0 then 0 else 1 + ((pg_backend_pid() + 5 * attempt) & 15) end;
          exit when not found;
          begin
            conversation := e.conversation_handle;
            found_at := e.queuing_order;
            lowest := -1;
            if e.message_sequence_number >= 64 then
              lowest := coalesce((
                select c.message_sequence_number
                  from sb_internal.receive_cursor as c
                 where c.conversation_handle = conversation
                 order by c.conversation_handle desc, c.message_sequence_number desc
                 limit 1), -1);
            end if;
            select g.conversation_group_id
              into held
              from sb.conversation_group as g
             where g.conversation_group_id = e.conversation_group_id
               and not exists (
                 select 1
                   from sb_internal.group_backoff as b
                  where b.conversation_group_id = e.conversation_group_id
                    and b.not_before > clock_timestamp())
               for no key update skip locked;
            if found then
              select o.priority, o.lifetime, s.service_id, s.name as service_name, o.service_contract_id,
                     k.name as contract_name, t.message_type_id, t.name as type_name,
                     case t.validation when 'NONE' then 'N' when 'EMPTY' then 'E' when 'WELL_FORMED_XML' then 'X'
                       when 'VALID_XML' then 'X' else 'J' end as validation,
                     m.ctid, m.queuing_order, m.message_sequence_number, m.message_body, m.message_enqueue_time,
                     exists (
                       select 1
                         from sb_internal.due as d
                        where d.conversation_handle = conversation
                          and d.due_at <= clock_timestamp()) as is_due,
                     exists (
                       select 1
                         from sb_internal.message as n
                        where n.conversation_handle = conversation
                          and n.message_type_id in (1, 2)) as is_unusual
                into e
                from sb_internal.endpoint as o
                join sb_internal.service as s on s.service_id = o.service_id
                left join sb_internal.contract as k on k.service_contract_id = o.service_contract_id
               cross join lateral (
                 select n.ctid, n.queuing_order, n.message_sequence_number, n.message_type_id, n.message_body,
                        n.message_enqueue_time
                   from sb_internal.message as n
                  where n.conversation_handle = o.conversation_handle
                    and n.message_sequence_number >= lowest
                  order by n.message_sequence_number
                  limit 1) as m
                join sb_internal.message_type as t on t.message_type_id = m.message_type_id
               where o.conversation_handle = conversation
                 and o.conversation_group_id = held
                 and o.state <> 'DO';
              if not found or e.is_due then
                -- Nothing there, or a timer, whose turn _next_group knows.
                perform sb_internal._raise('SB003');
              end if;
            end if;
          exception
            when sqlstate 'SB003' then
              held := null;
          end;
          exit when held is not null;
        end loop;
        if held is not null and not e.is_unusual and q.system_names = 'documented' then
          delete from sb_internal.message as n
           where n.ctid = e.ctid;
          if e.message_sequence_number - greatest(lowest, 0) >= 64 then
            perform sb_internal._advance_cursor(conversation, lowest, e.message_sequence_number + 1);
          end if;
          if q.is_poison_message_handling_enabled then
            perform sb_internal._poison_record(q.queue_id);
          end if;
          if found_at > hint + 128 then
            perform sb_internal._advance_hint(q.queue_id, q.priority_levels[1], found_at);
          end if;
          if q.has_activation_event then
            perform sb_internal._monitor_receive(q.queue_id, true);
          end if;
          status := 0;
          priority := e.priority;
          queuing_order := e.queuing_order;
          conversation_group_id := held;
          conversation_handle := conversation;
          message_sequence_number := e.message_sequence_number;
          service_name := e.service_name;
          service_id := e.service_id;
          service_contract_name := e.contract_name;
          service_contract_id := e.service_contract_id;
          message_type_name := e.type_name;
          message_type_id := e.message_type_id;
          validation := e.validation;
          message_body := e.message_body;
          message_enqueue_time := e.message_enqueue_time;
          return next;
          return;
        end if;
      end if;
      if held is null then
        select g.conversation_group_id, g.conversation_handle
          into held, conversation
          from sb_internal._next_group(q.queue_id, q.priority_levels) as g;
      end if;
    end if;

    if held is not null then
      if conversation is not null and (cardinality(q.priority_levels) = 1 or _receive.for_conversation is not null) then
        return query
          select t.*
            from sb_internal._take(conversation, remaining, q.is_retention_enabled) as t;
        get diagnostics returned = row_count;
        remaining := remaining - returned;
      end if;
      if remaining > 0 and _receive.for_conversation is null then
        return query
          select t.*
            from sb_internal._take_group(q.queue_id, held, q.priority_levels, remaining, q.is_retention_enabled) as t;
        get diagnostics remaining = row_count;
        returned := returned + remaining;
      end if;
      if returned > 0 then
        if q.is_poison_message_handling_enabled then
          perform sb_internal._poison_record(q.queue_id);
        end if;
        if q.has_activation_event then
          perform sb_internal._monitor_receive(q.queue_id, true);
        end if;
        return;
      end if;
      remaining := coalesce(_receive.max_messages, 9223372036854775807);
      -- What was due had become void (the lifetime of a conversation that has ended): look further.
      retries := retries + 1;
      continue when retries <= 16 and _receive.for_conversation is null and _receive.for_group is null;
    end if;

    exit when deadline is null or clock_timestamp() >= deadline;
    -- A client that can LISTEN does not come here. The nap grows: no busy loop, no long delay.
    perform pg_sleep(case when deadline = 'infinity' then nap
      else greatest(0, least(nap, extract(epoch from deadline - clock_timestamp()))) end);
    nap := least(nap * 1.5, 0.25);

    -- By id: a queue dropped and made again under the same name is another queue.
    select o.queue_id, o.name, o.owner, o.receivers, o.is_enabled, o.is_retention_enabled,
           o.is_poison_message_handling_enabled, o.has_activation_event, b.priority_levels, b.system_names
      into q
      from sb_internal.queue as o
     cross join sb_internal.broker as b
     where o.queue_id = q.queue_id
       and b.singleton;
    if not found then
      perform sb_internal._raise('S0208', array[_receive.queue_name]);
    end if;
  end loop;
  if q.has_activation_event then
    perform sb_internal._monitor_receive(q.queue_id, false);
  end if;
end
$$;
comment on function sb_internal._receive(name, text, integer, uuid, uuid, interval) is
  'RECEIVE behind sb.receive.';
revoke all on function sb_internal._receive(name, text, integer, uuid, uuid, interval) from public;
-- sqlgen:end functions/internal/_receive.sql
-- sqlgen:begin functions/internal/_refresh_service_status.sql sha256:3ca19c7d133d1212bfb638abe0c5cea8fdbfa65ce39f984b1f75e25757c216b5
create or replace function sb_internal._refresh_service_status()
  returns trigger
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  insert into sb_internal.service_status (service_id, queue_id, is_accepting, is_queue_enabled, is_retention_enabled,
    is_poison_watched, has_activation_event, queue_owner, receivers)
  select s.service_id, q.queue_id, b.is_broker_enabled and q.is_enabled, q.is_enabled, q.is_retention_enabled,
         q.is_poison_message_handling_enabled, q.has_activation_event, q.owner, q.receivers
    from sb_internal.service as s
    join sb_internal.queue as q on q.queue_id = s.queue_id
   cross join sb_internal.broker as b
   where case tg_table_name
           when 'queue' then q.queue_id = (to_jsonb(new) ->> 'queue_id')::integer
           when 'service' then s.service_id = (to_jsonb(new) ->> 'service_id')::integer
           else true
         end
   order by s.service_id
  on conflict on constraint service_status_pkey do update
     set queue_id = excluded.queue_id, is_accepting = excluded.is_accepting,
         is_queue_enabled = excluded.is_queue_enabled, is_retention_enabled = excluded.is_retention_enabled,
         is_poison_watched = excluded.is_poison_watched, has_activation_event = excluded.has_activation_event,
         queue_owner = excluded.queue_owner, receivers = excluded.receivers;
  return null;
end
$$;
comment on function sb_internal._refresh_service_status() is
  'Trigger of broker, queue and service: rewrites the status rows concerned. Those who update the three tables hold the catalog lock or the queues row lock, so it waits for nobody.';
revoke all on function sb_internal._refresh_service_status() from public;
-- sqlgen:end functions/internal/_refresh_service_status.sql
-- sqlgen:begin functions/internal/_require_run_as.sql sha256:892dc6a74c37bb92ac526365f77246c58cf732a726cd8e0371082cca7bb49612
create or replace function sb_internal._require_run_as(caller name, role name)
  returns void
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regrole(quote_ident(_require_run_as.role)) is null then
    perform sb_internal._raise('S9613', array[_require_run_as.role::text]);
  end if;
  if not pg_has_role(_require_run_as.caller, _require_run_as.role, 'member') then
    perform sb_internal._raise('42501', array[_require_run_as.caller::text,
      'let an activation procedure run as role ' || _require_run_as.role],
      format('cure=grant %I to %I', _require_run_as.role, _require_run_as.caller));
  end if;
end
$$;
comment on function sb_internal._require_run_as(name, name) is
  'Who chooses what runs as a role must be a member of that role, else an admin could act as anybody. Errors: S9613 no such role, 42501.';
revoke all on function sb_internal._require_run_as(name, name) from public;
-- sqlgen:end functions/internal/_require_run_as.sql
-- sqlgen:begin functions/internal/_retain_sent.sql sha256:69fca0bcaeb1f601bc7d92e168c63f95c0f10b8decba60d58d577e6b68846764
create or replace function sb_internal._retain_sent(
  e sb_internal.endpoint,
  message_type_id integer,
  first_sequence bigint,
  bodies bytea[]
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  insert into sb_internal.retained_message (queuing_order, message_sequence_number, message_enqueue_time,
    queue_id, message_type_id, conversation_handle, conversation_group_id, priority, message_body, status)
  select nextval('sb_internal.queuing_order'), _retain_sent.first_sequence + b.ordinality - 1,
         sb_internal._now(), s.queue_id, _retain_sent.message_type_id, e.conversation_handle,
         e.conversation_group_id, e.priority, nullif(b.body, ''), 3
    from unnest(_retain_sent.bodies) with ordinality as b (body, ordinality)
   cross join sb_internal.service as s
   where s.service_id = e.service_id;
end
$$;
comment on function sb_internal._retain_sent(sb_internal.endpoint, integer, bigint, bytea[]) is
  'Keeps copies (status 3) of sent messages in the senders own queue (R-053).';
revoke all on function sb_internal._retain_sent(sb_internal.endpoint, integer, bigint, bytea[]) from public;
-- sqlgen:end functions/internal/_retain_sent.sql
-- sqlgen:begin functions/internal/_route.sql sha256:dbccf1aa8d3fb416d622b216598a47cfe82359205418e8a1de2bccb01c0be31b
create or replace function sb_internal._route(service_name text, broker_instance text)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  own text := (select b.broker_instance::text from sb_internal.broker as b where b.singleton);
begin
  return (
    select r.address
      from sb_internal.route as r
     where (r.remote_service_name is null or r.remote_service_name = _route.service_name)
       and (r.broker_instance is null or _route.broker_instance is null
         or r.broker_instance = _route.broker_instance)
       and (r.lifetime is null or r.lifetime > sb_internal._now())
       -- A wildcard route to LOCAL leads to this broker only.
       and (r.address <> 'LOCAL' or coalesce(r.broker_instance, _route.broker_instance, own) = own)
     order by (r.remote_service_name is not null and r.broker_instance is not null
                and _route.broker_instance is not null) desc,
              (r.remote_service_name is not null and r.broker_instance is null) desc,
              (r.remote_service_name is not null) desc,
              (r.mirror_address is not null) desc,
              (r.address = 'LOCAL') desc, r.route_id
     limit 1);
end
$$;
comment on function sb_internal._route(text, text) is
  'Address of the route that a dialog to the service takes (R-299 to R-302), null when there is none. Expired routes do not count.';
revoke all on function sb_internal._route(text, text) from public;
-- sqlgen:end functions/internal/_route.sql
-- sqlgen:begin functions/internal/_run_validator.sql sha256:73e050942a1bcd958ad23a55e9f3bc8c47cf96ff0914430cca8cdea31603e673
-- User code: runs as the sender, under the sender's search_path, hence no set clause and everything
-- qualified down to the operators (see "whose code runs" in the security notes).
create or replace function sb_internal._run_validator(
  validator text,
  validation text,
  bodies bytea[]
)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
as $$
declare
  body pg_catalog.bytea;
  verdict boolean;
begin
  foreach body in array _run_validator.bodies loop
    continue when pg_catalog.octet_length(body) operator(pg_catalog.=) 0;
    begin
      if _run_validator.validation operator(pg_catalog.=) 'VALID_XML' then
        execute 'select ' operator(pg_catalog.||) _run_validator.validator operator(pg_catalog.||) '($1)'
           into verdict
          using xmlparse(content pg_catalog.convert_from(body, 'UTF8'));
      else
        execute 'select ' operator(pg_catalog.||) _run_validator.validator operator(pg_catalog.||) '($1)'
           into verdict
          using pg_catalog.convert_from(body, 'UTF8')::pg_catalog.jsonb;
      end if;
    exception
      -- A validator that raises says no; a cancel or a lack of rights is not its verdict.
      when query_canceled or insufficient_privilege or undefined_function then
        raise;
      when others then
        return false;
    end;
    if verdict is not true then
      return false;
    end if;
  end loop;
  return true;
end
$$;
comment on function sb_internal._run_validator(text, text, bytea[]) is
  'Runs a validator function on each body, with the rights and the search path of whoever sends; raising or null is no.';
revoke all on function sb_internal._run_validator(text, text, bytea[]) from public;
-- sqlgen:end functions/internal/_run_validator.sql
-- sqlgen:begin functions/internal/_send.sql sha256:e8f387f2767a7a4b76e5cccffb5e3726dd5f2d9f50abb74099ef990b045bb2e9
-- Plans are made once a session, perhaps while the tables are empty, and not again at every call: see _receive.
create or replace function sb_internal._send(
  caller name,
  conversation_handle uuid,
  message_type text,
  bodies bytea[],
  is_text boolean,
  is_validated boolean default false
)
  returns sb_internal.unsettled
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set plan_cache_mode = force_generic_plan
  set jit = off
as $$
declare
  e sb_internal.endpoint;
  c record;
  target record;
  single bytea;
  quantity integer := 1;
  last_sequence bigint;
  is_waiting boolean;
  is_direct boolean;
  unsettled sb_internal.unsettled;
begin
  if _send.conversation_handle is null then
    perform sb_internal._raise('S8418');
  end if;

  if bodies is not null then
    quantity := cardinality(bodies);
    single := bodies[1];
    if quantity <> 1 or single is null then
      -- Also one body in an array that does not begin at 1.
      bodies := sb_internal._clean_bodies(bodies);
      single := bodies[1];
    else
      if octet_length(single) > 268435456 then
        perform sb_internal._raise('S8459', array[octet_length(single)::text]);
      elsif octet_length(single) = 0 then
        -- No body, zero length: all the same to the receiver (R-156).
        single := null;
      end if;
    end if;
  end if;

  -- The counter row is the conversation's lock for SEND, so that locking costs nothing of its own. A
  -- statement of its own all the same: what is looked at afterwards must be looked at after the wait.
  -- Read from its top end; when somebody else has counted on meanwhile, again.
  loop
    update sb_internal.send_counter as n
       set message_sequence_number = n.message_sequence_number + quantity
     where n.ctid = (
       select l.ctid
         from sb_internal.send_counter as l
        where l.conversation_handle = _send.conversation_handle
        order by l.conversation_handle desc, l.message_sequence_number desc
        limit 1)
    returning n.message_sequence_number, n.is_waiting into last_sequence, is_waiting;
    exit when found or sb_internal._first_send(_send.conversation_handle);
  end loop;

  -- All that SEND has to know, one index probe each. Touching message here also holds off
  -- alter_service, which moves messages to another queue, until this transaction has ended.
  select h as endpoint, o.queue_owner, o.receivers, o.is_queue_enabled, o.is_retention_enabled,
         t.message_type_id, t.validation,
         case when h.is_initiator then t.is_sent_by_initiator else t.is_sent_by_target end as is_allowed,
         p.conversation_group_id, p.priority, p.state as peer_state,
         d.queue_id, d.is_accepting, d.is_poison_watched, d.has_activation_event,
         exists (
           select 1
             from sb_internal.message as m
            where m.conversation_handle = h.conversation_handle
              and m.message_type_id in (1, 2)) as is_ended
    into c
    from sb_internal.endpoint as h
    join sb_internal.service_status as o on o.service_id = h.service_id
    left join sb_internal.contract_message as t
      on t.service_contract_id = h.service_contract_id
     and t.message_type_name = _send.message_type
    left join sb_internal.endpoint as p on p.conversation_handle = h.peer_handle
    left join sb_internal.service_status as d on d.service_id = p.service_id
   where h.conversation_handle = _send.conversation_handle;
  e := c.endpoint;

  if _send.caller <> c.queue_owner and not (_send.caller = any (c.receivers))
    and not sb_internal._may(_send.caller, c.queue_owner, c.receivers)
  then
    perform sb_internal._raise('42501', array[_send.caller::text, 'send on this conversation'],
      'conversation_handle=' || _send.conversation_handle);
  end if;
  if e.state <> 'CO' or c.is_ended or e.lifetime <= clock_timestamp() then
    perform sb_internal._raise('S8429', array[_send.conversation_handle::text,
      sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle)]);
  end if;
  if c.is_allowed is not true then
    perform sb_internal._refuse_message_type(_send.message_type, e.service_contract_id, e.is_initiator);
  end if;
  if c.is_retention_enabled and not c.is_queue_enabled then
    perform sb_internal._raise('S9618', array[q.name])
       from sb_internal.service as s
       join sb_internal.queue as q on q.queue_id = s.queue_id
      where s.service_id = e.service_id;
  end if;

  if c.validation <> 'NONE' and not _send.is_validated then
    if exists (
      select 1
        from unnest(coalesce(bodies, array[null::bytea])) as b (body)
       where not sb_internal._is_valid_body(c.message_type_id, c.validation, nullif(b.body, ''), _send.is_text))
    then
      perform sb_internal._invalid_body(e, _send.message_type, c.validation);
      quantity := 0;
    end if;
    -- A validator function runs in the caller's wrapper, with the caller's rights, and comes back.
    select array[_send.conversation_handle], t.name, bodies, _send.is_text, t.validator, t.validation
      into unsettled
      from sb_internal.message_type as t
     where t.message_type_id = c.message_type_id
       and t.validator is not null;
    if quantity = 0 or found and bodies is not null then
      -- Nothing is sent: no number is used.
      update sb_internal.send_counter as n
         set message_sequence_number = n.message_sequence_number - coalesce(cardinality(bodies), 1)
       where n.conversation_handle = _send.conversation_handle
         and n.message_sequence_number = last_sequence;
      return case when quantity > 0 then unsettled end;
    end if;
  end if;
  if quantity = 0 then
    return null;
  end if;

  -- Where to: straight into the peer's queue when that is there and on and nothing is ahead of us,
  -- else into the transmission queue.
  is_direct := c.is_accepting and not is_waiting;
  if c.queue_id is null and not is_waiting then
    if last_sequence >= quantity or not e.is_initiator then
      -- The peer was there and is gone without a word: cleaned up (R-227).
      perform sb_internal._error_endpoint(e.conversation_handle, -8462,
        'The remote conversation endpoint has been closed.');
      return null;
    end if;
    select t.outcome, t.queue_id, t.priority, t.has_activation_event
      into target
      from sb_internal._create_target(e) as t;
    if target.outcome = 'error' then
      return null;
    end if;
    is_direct := target.outcome = 'created';
    c.conversation_group_id := e.peer_handle;
    c.priority := target.priority;
    c.queue_id := target.queue_id;
    c.has_activation_event := target.has_activation_event;
  elsif is_direct and c.is_poison_watched
    and pg_sequence_last_value(('sb_internal.queue_' || c.queue_id || '_poison_alarm')::regclass) = 1
    and sb_internal._poison_limit_reached(c.queue_id)
  then
    perform sb_internal._poison_disable(c.queue_id);
    is_direct := false;
  end if;

  if c.is_retention_enabled then
    perform sb_internal._retain_sent(e, c.message_type_id, last_sequence - quantity + 1,
      coalesce(bodies, array[null::bytea]));
  end if;

  if not is_direct then
    insert into sb_internal.transmission (conversation_handle, message_sequence_number, message_type_id,
      enqueue_time, to_service_name, message_body)
    select _send.conversation_handle, last_sequence - quantity + b.ordinality, c.message_type_id, clock_timestamp(),
           e.far_service, nullif(b.body, '')
      from unnest(coalesce(bodies, array[null::bytea])) with ordinality as b (body, ordinality);
    perform sb_internal._parked(e, is_waiting);
    return null;
  end if;
  if c.peer_state = 'DO' then
    -- The peer has ended; its EndDialog has not arrived here yet. What it gets is discarded (R-220).
    return null;
  end if;
  if quantity = 1 then
    insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
      message_type_id, conversation_handle, conversation_group_id, priority, message_body)
    values (nextval('sb_internal.queuing_order'), last_sequence, clock_timestamp(), c.queue_id,
      c.message_type_id, e.peer_handle, c.conversation_group_id, c.priority, single);
  else
    insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
      message_type_id, conversation_handle, conversation_group_id, priority, message_body)
    select nextval('sb_internal.queuing_order'), last_sequence - quantity + b.ordinality, clock_timestamp(), c.queue_id,
           c.message_type_id, e.peer_handle, c.conversation_group_id, c.priority, b.body
      from unnest(bodies) with ordinality as b (body, ordinality);
  end if;
  -- As _wake, on the hot path.
  if not (pg_try_advisory_lock(8420, c.queue_id) and pg_advisory_unlock(8420, c.queue_id)) then
    perform pg_notify('sb_queue_' || c.queue_id, '');
  end if;
  if c.has_activation_event then
    perform sb_internal._monitor_arrival(c.queue_id);
  end if;
  return null;
end
$$;
comment on function sb_internal._send(name, uuid, text, bytea[], boolean, boolean) is
  'SEND: one step for all bodies (null: one message without a body). Locks the counter of the endpoint, never the group (X-10), and waits for another SEND, MOVE or END on the conversation. Returns null, or, having changed nothing, what the validator function of the message type has to settle first, with the rights of the caller.';
revoke all on function sb_internal._send(name, uuid, text, bytea[], boolean, boolean) from public;
-- sqlgen:end functions/internal/_send.sql
-- sqlgen:begin functions/internal/_send_event.sql sha256:4cfb6956fb3d9b9b3ee0d2a0ae44cb2b248ef4ef98cf787720389a06297eae7d
create or replace function sb_internal._send_event(queue_id integer, event text)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  n sb_internal.event_notification;
  queue_name text;
  body bytea;
begin
  -- The row lock makes the first event begin one dialog, not two. Never the catalog lock: events come
  -- out of sends and receives, which hold locks of conversations.
  for n in
    select o.*
      from sb_internal.event_notification as o
     where o.queue_id = _send_event.queue_id
       and o.event = _send_event.event
     order by o.event_notification_id
       for no key update
  loop
    if n.conversation_handle is null then
      n.conversation_handle := sb_internal._begin(2, 2, n.to_service, n.broker_instance, null, null);
      update sb_internal.event_notification as o
         set conversation_handle = n.conversation_handle
       where o.event_notification_id = n.event_notification_id;
    end if;
    if body is null then
      select q.name
        into queue_name
        from sb_internal.queue as q
       where q.queue_id = _send_event.queue_id;
      body := sb_internal._event_body(_send_event.event, queue_name);
    end if;
    if not sb_internal._post(n.conversation_handle, 4, body) then
      perform sb_internal._remove_event_notification(n.event_notification_id);
      perform sb_internal._announce('event_notification_dropped', 'event_notification', n.name);
      raise log 'sb: event notification % of queue % is dropped: its conversation % can no longer send',
        n.name, queue_name, n.conversation_handle;
    end if;
  end loop;
end
$$;
comment on function sb_internal._send_event(integer, text) is
  'Sends QUEUE_ACTIVATION or BROKER_QUEUE_DISABLED to the event notifications of a queue, in this transaction (R-112, R-113). One whose subscriber has ended the conversation is dropped (R-111). Locks the notifications, then their dialogs.';
revoke all on function sb_internal._send_event(integer, text) from public;
-- sqlgen:end functions/internal/_send_event.sql
-- sqlgen:begin functions/internal/_set_state.sql sha256:75a2f05615713ad2d95314b08bd3df38406e0beda9e8252a79537f7c7be9caf8
create or replace function sb_internal._set_state(
  caller name,
  conversation_group_id uuid,
  state jsonb
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform 1
     from sb.conversation_group as g
    where g.conversation_group_id = _set_state.conversation_group_id
      for no key update;
  perform sb_internal._may_use_group(_set_state.caller, _set_state.conversation_group_id);
  if _set_state.state is null then
    delete from sb_internal.state as s
     where s.conversation_group_id = _set_state.conversation_group_id;
  else
    insert into sb_internal.state (conversation_group_id, state)
    values (_set_state.conversation_group_id, _set_state.state)
    on conflict on constraint state_pkey do update
       set state = excluded.state;
  end if;
end
$$;
comment on function sb_internal._set_state(name, uuid, jsonb) is
  'sb.set_state with the callers rights checked.';
revoke all on function sb_internal._set_state(name, uuid, jsonb) from public;
-- sqlgen:end functions/internal/_set_state.sql
-- sqlgen:begin functions/internal/_stamp.sql sha256:380b45fd1fd9cd36fc540a82eff0a9b6d08fffd0937661109663d759093495f6
create or replace function sb_internal._stamp()
  returns bigint
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select (hashtextextended(c.system_identifier || '/' || d.oid || '/' || 'sb_internal.message'::regclass::oid, 0)
            & 9223372036854775807)
      from pg_control_system() as c
      join pg_database as d on d.datname = current_database());
end
$$;
comment on function sb_internal._stamp() is
  'Identity of this copy of the broker: cluster, database, message table. Reads the control file (some 20 µs): for rare paths only.';
revoke all on function sb_internal._stamp() from public;
-- sqlgen:end functions/internal/_stamp.sql
-- sqlgen:begin functions/internal/_stop_messaging.sql sha256:e10d658bb135484f25aa8199465ab674a6811753fe63b769bb606e4f4e8ccf06
-- Once nobody has locks on these tables, nobody has locks on their rows, and what follows cannot deadlock.
-- All at once or not at all: to hold one table while waiting for the next is how deadlocks are made.
create or replace function sb_internal._stop_messaging()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  for attempt in 1..100 loop
    begin
      lock table sb.conversation_group, sb_internal.endpoint, sb_internal.send_counter, sb_internal.message,
        sb_internal.transmission, sb_internal.due, sb_internal.event_notification in exclusive mode nowait;
      return;
    exception
      when lock_not_available then
        perform pg_sleep(0.05);
    end;
  end loop;
  -- Too busy to find a gap: stand in line. Whoever then waits for us while we wait for him has to retry.
  lock table sb.conversation_group, sb_internal.endpoint, sb_internal.send_counter, sb_internal.message,
    sb_internal.transmission, sb_internal.due, sb_internal.event_notification in exclusive mode;
end
$$;
comment on function sb_internal._stop_messaging() is
  'Waits until no other transaction uses a messaging verb and keeps them waiting until this one ends, as ALTER DATABASE wants the database for itself (R-123). Reading goes on. After 5 s without a gap it waits in line, and may then be part of a deadlock.';
revoke all on function sb_internal._stop_messaging() from public;
-- sqlgen:end functions/internal/_stop_messaging.sql
-- sqlgen:begin functions/internal/_take_group.sql sha256:330938e10462d5a441bddcf15ee5f98b0015615a15dd5758547a59a8e23cf841
create or replace function sb_internal._take_group(
  queue_id integer,
  group_id uuid,
  priority_levels smallint[],
  max_messages bigint,
  is_retained boolean
)
  returns table (status smallint, priority smallint, queuing_order bigint, conversation_group_id uuid,
    conversation_handle uuid, message_sequence_number bigint, service_name text, service_id integer,
    service_contract_name text, service_contract_id integer, message_type_name text, message_type_id integer,
    validation text, message_body bytea, message_enqueue_time timestamptz)
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  level smallint;
  candidate record;
  last_order bigint;
  taken bigint;
  total bigint := 0::bigint;
  is_small constant boolean := (
    select count(*) <= 16
      from (
        select 1
          from sb_internal.endpoint as e
         where e.conversation_group_id = _take_group.group_id
         limit 17
      ) as c);
begin
  foreach level in array _take_group.priority_levels loop
    -- What time has made due in the group,
    for candidate in
      select distinct d.conversation_handle
        from sb_internal.due as d
       where d.conversation_group_id = _take_group.group_id
         and d.priority = level
         and d.due_at <= clock_timestamp()
    loop
      return query select t.* from sb_internal._take(candidate.conversation_handle, max_messages, _take_group.is_retained) as t;
      get diagnostics taken = row_count;
      total := total + taken;
      max_messages := max_messages - taken;
      if max_messages <= 0 then
        return;
      end if;
    end loop;

    -- then conversation after conversation, by the oldest message. Mostly there are few: each is asked,
    -- from its cursor on. Of many, the messages are walked, rows already taken lie behind last_order; that
    -- walk meets every dead row of the group while an old snapshot is held.
    last_order := -1;
    loop
      if is_small then
        select e.conversation_handle, f.queuing_order
          into candidate
          from sb_internal.endpoint as e
         cross join lateral (
           (select m.queuing_order
              from sb_internal.message as m
             where m.conversation_handle = e.conversation_handle
               and m.message_type_id in (1, 2)
             limit 1)
            union all
           (select m.queuing_order
              from sb_internal.message as m
             where m.conversation_handle = e.conversation_handle
               and m.message_sequence_number >= coalesce((
                 select c.message_sequence_number
                   from sb_internal.receive_cursor as c
                  where c.conversation_handle = e.conversation_handle
                  order by c.conversation_handle desc, c.message_sequence_number desc
                  limit 1), -1)
             order by m.message_sequence_number
             limit 1)
         ) as f
         where e.conversation_group_id = _take_group.group_id
           and e.priority = level
           and e.state <> 'DO'
           and f.queuing_order > last_order
         order by f.queuing_order
         limit 1;
      else
        select m.conversation_handle, m.queuing_order
          into candidate
          from sb_internal.message as m
         where m.queue_id = _take_group.queue_id
           and m.priority = level
           and m.conversation_group_id = _take_group.group_id
           and m.queuing_order > last_order
         order by m.queuing_order
         limit 1;
      end if;
      exit when not found;
      last_order := candidate.queuing_order;
      -- The group in a message row is a hint; the endpoint knows.
      continue when not is_small and not exists (
        select 1
          from sb_internal.endpoint as e
         where e.conversation_handle = candidate.conversation_handle
           and e.conversation_group_id = _take_group.group_id);
      return query select t.* from sb_internal._take(candidate.conversation_handle, max_messages, _take_group.is_retained) as t;
      get diagnostics taken = row_count;
      total := total + taken;
      max_messages := max_messages - taken;
      if max_messages <= 0 then
        return;
      end if;
    end loop;
  end loop;

  -- Messages that arrived during a move carry another group's hint, which the walk does not see. Rare, so
  -- looked for only when the group seems empty.
  if total = 0 and not is_small then
    for candidate in
      select e.conversation_handle
        from sb_internal.endpoint as e
       where e.conversation_group_id = _take_group.group_id
         and e.state <> 'DO'
       order by e.priority desc
    loop
      continue when not exists (
        select 1
          from sb_internal.message as m
         where m.conversation_handle = candidate.conversation_handle);
      return query select t.* from sb_internal._take(candidate.conversation_handle, max_messages, _take_group.is_retained) as t;
      get diagnostics taken = row_count;
      max_messages := max_messages - taken;
      if max_messages <= 0 then
        return;
      end if;
    end loop;
  end if;
end
$$;
comment on function sb_internal._take_group(integer, uuid, smallint[], bigint, boolean) is
  'Takes what a group has ready, at most max_messages: conversations by priority, whole ones one after another (R-179). The caller holds the group lock.';
revoke all on function sb_internal._take_group(integer, uuid, smallint[], bigint, boolean) from public;
-- sqlgen:end functions/internal/_take_group.sql
-- sqlgen:begin functions/internal/_xml_decode.sql sha256:515567fb18c213022a49585e108a88f9e56bce034184b430f4ad51b826b6a830
-- The byte order mark and the XML declaration are cut off: what they say is spent once the bytes
-- are characters, and only without a declaration can the rest stand inside an element
-- (_xml_is_well_formed). A declaration is ASCII in every encoding that PostgreSQL converts; the
-- escape format shows it without an error whatever bytes follow. One that is no declaration, or
-- longer than 256 bytes, stays in place, where the XML parser refuses it.
create or replace function sb_internal._xml_decode(
  body bytea,
  is_text boolean default false
)
  returns text
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _has_mark boolean := substr(_xml_decode.body, 1, 3) = '\xefbbbf'::bytea;
  _rest bytea := case when _has_mark then substr(_xml_decode.body, 4) else _xml_decode.body end;
  _encoding text := 'UTF8';
  _length integer;
  _declaration text;
begin
  if substr(_rest, 1, 5) = '<?xml'::bytea then
    _length := position('?>'::bytea in substr(_rest, 1, 256)) + 1;
    _declaration := encode(substr(_rest, 1, _length), 'escape');
    -- A match without groups is several times as fast as one with.
    if _declaration ~ $re$(?x)^<\?xml
        [ \t\r\n]+ version [ \t\r\n]*=[ \t\r\n]* (?:"1\.[0-9]+"|'1\.[0-9]+')
        (?:[ \t\r\n]+ encoding [ \t\r\n]*=[ \t\r\n]*
          (?:"[A-Za-z][A-Za-z0-9._-]*"|'[A-Za-z][A-Za-z0-9._-]*'))?
        (?:[ \t\r\n]+ standalone [ \t\r\n]*=[ \t\r\n]* (?:"(?:yes|no)"|'(?:yes|no)'))?
        [ \t\r\n]*\?>\Z$re$ then
      _rest := substr(_rest, _length + 1);
      if not _xml_decode.is_text then
        _encoding := upper(coalesce(
          substring(_declaration from 'encoding[ \t\r\n]*=[ \t\r\n]*["'']([^"'']+)'), _encoding
        ));
      end if;
    end if;
  end if;
  if _encoding = 'US-ASCII' then
    _encoding := 'UTF8';
  elsif _has_mark and _encoding not in ('UTF8', 'UTF-8') then
    -- Parsers differ on which of the two to believe: what is valid for one would be garbage for
    -- another.
    return null;
  end if;
  return convert_from(_rest, _encoding);
exception
  -- Not of that encoding, no such character here, no such encoding, no conversion from it.
  when character_not_in_repertoire or untranslatable_character
    or invalid_parameter_value or undefined_function then
    return null;
end
$$;
comment on function sb_internal._xml_decode(bytea, boolean) is
  'The characters of an XML body without byte order mark and XML declaration: UTF-8, or the declared encoding unless is_text says that the bytes are a text in UTF-8 whatever they declare. NULL when the bytes are not of that encoding, hold a NUL, or PostgreSQL cannot convert it (UTF-16).';
revoke all on function sb_internal._xml_decode(bytea, boolean) from public;
-- sqlgen:end functions/internal/_xml_decode.sql
-- sqlgen:begin functions/body/body_xml.sql sha256:53365d84e20b7837bcd416ff0b5a68a77bdcd03afef09c94b4513454e8c5871d
-- Decodes as sb_internal._xml_decode does, which callers may not use, but lets the errors out. And
-- it is kinder to a text that declares UTF-16, as programs write that build it from UTF-16 strings:
-- a body whose declaration can be read in single bytes is not UTF-16, so it is read as UTF-8.
create or replace function sb.body_xml(message_body bytea)
  returns xml
  language plpgsql
  immutable
  parallel safe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _rest bytea := case
    when substr(body_xml.message_body, 1, 3) = '\xefbbbf'::bytea
      then substr(body_xml.message_body, 4)
    else body_xml.message_body
  end;
  _encoding text := 'UTF8';
  _length integer;
  _declaration text;
begin
  if substr(_rest, 1, 5) = '<?xml'::bytea then
    _length := position('?>'::bytea in substr(_rest, 1, 256)) + 1;
    _declaration := encode(substr(_rest, 1, _length), 'escape');
    -- A match without groups is several times as fast as one with.
    if _declaration ~ $re$(?x)^<\?xml
        [ \t\r\n]+ version [ \t\r\n]*=[ \t\r\n]* (?:"1\.[0-9]+"|'1\.[0-9]+')
        (?:[ \t\r\n]+ encoding [ \t\r\n]*=[ \t\r\n]*
          (?:"[A-Za-z][A-Za-z0-9._-]*"|'[A-Za-z][A-Za-z0-9._-]*'))?
        (?:[ \t\r\n]+ standalone [ \t\r\n]*=[ \t\r\n]* (?:"(?:yes|no)"|'(?:yes|no)'))?
        [ \t\r\n]*\?>\Z$re$ then
      _rest := substr(_rest, _length + 1);
      _encoding := upper(coalesce(
        substring(_declaration from 'encoding[ \t\r\n]*=[ \t\r\n]*["'']([^"'']+)'), _encoding
      ));
      if _encoding in ('US-ASCII', 'UTF-16') then
        _encoding := 'UTF8';
      end if;
    end if;
  end if;
  return xmlparse(content convert_from(_rest, _encoding));
end
$$;
comment on function sb.body_xml(bytea) is
  'The body as xml, a document or a fragment, without its XML declaration: it is read as UTF-8 or in the encoding that it declares (a body sent as text that declares another encoding than its own: sb.body_text). 2200N when it is not well formed, 22021 when it is not of its encoding, 22023 when PostgreSQL does not know that. A DOCTYPE is accepted as type xml does: nothing external is read, and libxml stops entities that multiply.';
revoke all on function sb.body_xml(bytea) from public;
-- sqlgen:end functions/body/body_xml.sql
-- sqlgen:begin functions/body/error_code.sql sha256:4880105ac52939e082c215999f307417f0803796e3837a3a9d94fc3d23def761
-- Parsed inside an element of our own, so that a DOCTYPE, and with it every entity, is a syntax
-- error.
create or replace function sb.error_code(message_body bytea)
  returns integer
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _rest bytea := case
    when substr(error_code.message_body, 1, 3) = '\xefbbbf'::bytea
      then substr(error_code.message_body, 4)
    else error_code.message_body
  end;
begin
  if substr(_rest, 1, 5) = '<?xml'::bytea then
    _rest := substr(_rest, position('?>'::bytea in _rest) + 2);
  end if;
  return (
    select e.code
    from xmltable(
      '/x/*[1][local-name() = "Error"]'
      passing xmlparse(document concat('<x>', convert_from(_rest, 'UTF8'), '</x>'))
      columns code integer path '*[local-name() = "Code"][1]'
    ) as e
  );
exception
  when character_not_in_repertoire or untranslatable_character
    or invalid_xml_document or invalid_text_representation or numeric_value_out_of_range then
    return null;
end
$$;
comment on function sb.error_code(bytea) is
  'The error code in the body of an Error message, whatever its namespace; negative when the broker itself raised it. NULL when the body is not that of an Error message.';
revoke all on function sb.error_code(bytea) from public;
-- sqlgen:end functions/body/error_code.sql
-- sqlgen:begin functions/body/error_description.sql sha256:90183ad7e6275b65c98c92e50187ab1657e18f7db0afcea2d70ec25ee605a885
-- Parsed inside an element of our own, so that a DOCTYPE, and with it every entity, is a syntax
-- error.
create or replace function sb.error_description(message_body bytea)
  returns text
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _rest bytea := case
    when substr(error_description.message_body, 1, 3) = '\xefbbbf'::bytea
      then substr(error_description.message_body, 4)
    else error_description.message_body
  end;
begin
  if substr(_rest, 1, 5) = '<?xml'::bytea then
    _rest := substr(_rest, position('?>'::bytea in _rest) + 2);
  end if;
  return (
    select e.description
    from xmltable(
      '/x/*[1][local-name() = "Error"]'
      passing xmlparse(document concat('<x>', convert_from(_rest, 'UTF8'), '</x>'))
      columns description text path '*[local-name() = "Description" or local-name() = "Message"][1]'
    ) as e
  );
exception
  when character_not_in_repertoire or untranslatable_character or invalid_xml_document then
    return null;
end
$$;
comment on function sb.error_description(bytea) is
  'The description in the body of an Error message, from its Description or Message element, whatever their namespace. NULL when the body is not that of an Error message.';
revoke all on function sb.error_description(bytea) from public;
-- sqlgen:end functions/body/error_description.sql
-- sqlgen:begin functions/state/create_state_table.sql sha256:05b48acf98a2bb2e1217496f45a7efa61bfb1decadd615b08df251b8a960b716
create or replace function sb.create_state_table(
  table_name text,
  columns text,
  drop_on_end boolean default true,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._open_state_table(current_user, create_state_table.drop_on_end);
  select sb_internal._make_state_table(create_state_table.table_name, create_state_table.columns,
    create_state_table.drop_on_end, create_state_table.if_not_exists);
  select sb_internal._close_state_table(current_user, create_state_table.table_name, create_state_table.drop_on_end);
end;
comment on function sb.create_state_table(text, text, boolean, boolean) is
  'Creates table_name (an SQL name, optionally qualified and quoted) with the key conversation_group_id and the given further columns, with the caller''s rights and owned by the caller. With drop_on_end the key references the group with on delete cascade, so that a group''s row goes when its last conversation ends. Rights on it are ordinary table rights. Errors: SB002, 42501 and those of create table.';
revoke all on function sb.create_state_table(text, text, boolean, boolean) from public;
-- sqlgen:end functions/state/create_state_table.sql
-- sqlgen:begin functions/admin/after_restore.sql sha256:2db0fdcb55927e4fa8ae00d95ecaeefaf95c6fc24e9ab2b81af0132ec78a1247
create or replace function sb.after_restore()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._after_restore(current_user);
end;
comment on function sb.after_restore() is
  'To be called after a data-only restore or a logical failover: forgets search hints and poison counts, which were written in another place, and puts the queuing order behind every message. For admins.';
revoke all on function sb.after_restore() from public;
-- sqlgen:end functions/admin/after_restore.sql
-- sqlgen:begin functions/admin/error_broker_conversations.sql sha256:ccb2fe72b14d889a225fd89a50fec9359a9acf8273324865180e37102db841a0
create or replace function sb.error_broker_conversations()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._error_broker_conversations(current_user);
end;
comment on function sb.error_broker_conversations() is
  'ALTER DATABASE SET ERROR_BROKER_CONVERSATIONS: every conversation gets an Error -9719 and is to be ended by its application; the broker is enabled and keeps its instance (R-121). Admins only. Errors: 42501. Locks: the catalog, then all messaging tables: waits until no transaction uses them and holds off new ones until commit.';
revoke all on function sb.error_broker_conversations() from public;
-- sqlgen:end functions/admin/error_broker_conversations.sql
-- sqlgen:begin functions/admin/maintain.sql sha256:278f612ea906e30fe976acfff9931a1d0684d34288465445588bc4706a2759f1
create or replace function sb.maintain()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._maintain(current_user);
end;
comment on function sb.maintain() is
  'Housekeeping, bounded and never needed for correctness: removes orphaned messages and leftovers of finished conversations and dropped queues, delivers what can be delivered, writes down reached poison limits, repeats activation events, drops roles that no longer exist from the access lists. Skips what is locked. For admins; call it about once a minute (the activator does).';
revoke all on function sb.maintain() from public;
-- sqlgen:end functions/admin/maintain.sql
-- sqlgen:begin functions/activation/_activation_plan.sql sha256:c1ad167b0a9f3ddd709c14473e379c50d81100c29e71e32a7c24f01deddc5251
create or replace function sb_internal._activation_plan(caller name, queue_names text[])
  returns table (queue_id integer, queue_name text, is_on boolean, max_readers integer, surplus_readers integer,
    procedure_name text, procedure_version text, is_procedure boolean, statement text, execute_as name)
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_activation_plan.caller, 'run an activator');
  return query
    select q.queue_id, q.name::text, b.is_broker_enabled and sb_internal._queue_is_on(q.queue_id), q.max_readers,
           coalesce(h.surplus, 0), q.activation_procedure, p.version, p.is_procedure, p.statement,
           q.execute_as
      from (
        select o.queue_id, o.name, o.max_readers, a.activation_procedure, a.execute_as
          from sb_internal.queue as o
          left join sb_internal.queue as a on a.queue_id = o.queue_id and a.is_activation_enabled
         where a.activation_procedure is not null
            or o.name = any (_activation_plan.queue_names)) as q
      join sb_internal.broker as b on b.singleton
      left join (
        select r.queue_id, count(*)::integer as surplus
          from sb_internal._held_readers() as r
          join sb_internal.queue as o on o.queue_id = r.queue_id
         where r.slot >= o.max_readers
         group by r.queue_id) as h on h.queue_id = q.queue_id
      left join lateral (
        -- The version changes with every create or replace, so that a mended procedure is tried at once.
        select f.oid || ':' || f.xmin::text as version,
               f.prokind = 'p' as is_procedure,
               format(case f.prokind when 'p' then 'call %I.%I()' else 'select %I.%I()' end, n.nspname, f.proname)
                 as statement
          from pg_proc as f
          join pg_namespace as n on n.oid = f.pronamespace
         where f.oid = to_regprocedure(q.activation_procedure || '()')) as p on true
     order by q.queue_id;
end
$$;
comment on function sb_internal._activation_plan(name, text[]) is
  'What an activator has to serve, behind sb.activation_plan.';
revoke all on function sb_internal._activation_plan(name, text[]) from public;
-- sqlgen:end functions/activation/_activation_plan.sql
-- sqlgen:begin functions/activation/_probe_queue.sql sha256:78f7481bbc6a0471a25c9467c6c56f0aafc586a25c77e9d094bda9f01d721c58
create or replace function sb_internal._probe_queue(
  caller name,
  queue_id integer,
  out head bigint,
  out receives bigint
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  levels smallint[];
  is_counting boolean;
  conversation uuid;
begin
  perform sb_internal._require_admin(_probe_queue.caller, 'run an activator');
  if not coalesce(sb_internal._queue_is_on(_probe_queue.queue_id), false) then
    return;
  end if;
  select b.priority_levels, q.is_poison_message_handling_enabled
    into levels, is_counting
    from sb_internal.broker as b
    join sb_internal.queue as q on q.queue_id = _probe_queue.queue_id
   where b.singleton;
  if is_counting then
    receives := coalesce(sb_internal._cell(_probe_queue.queue_id, 'poison_position'), 0);
  end if;
  -- What could be received is what could be locked; the subtransaction gives the lock back.
  begin
    select g.conversation_handle
      into conversation
      from sb_internal._next_group(_probe_queue.queue_id, levels) as g;
    if conversation is null then
      return;
    end if;
    head := hashtextextended(concat_ws(' ', conversation,
      coalesce((
        select m.queuing_order
          from sb_internal.message as m
         where m.conversation_handle = conversation
         order by m.message_sequence_number
         limit 1), 0),
      (select min(d.due_at)
         from sb_internal.due as d
        where d.conversation_handle = conversation
          and d.due_at <= sb_internal._now())), 0);
    perform sb_internal._raise('SB003');
  exception
    when sqlstate 'SB003' then
      null;
  end;
end
$$;
comment on function sb_internal._probe_queue(name, integer) is
  'A look at what the next receive would get, behind sb.probe_queue.';
revoke all on function sb_internal._probe_queue(name, integer) from public;
-- sqlgen:end functions/activation/_probe_queue.sql
-- sqlgen:begin functions/activation/_take_reader.sql sha256:01e10e6bb2de100b0041f14551dc639e63321b83f942158194b18d3307f72424
create or replace function sb_internal._take_reader(
  caller name,
  queue_id integer,
  max_readers integer,
  for_session boolean
)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  slots integer;
begin
  perform sb_internal._require_admin(_take_reader.caller, 'take a reader slot');
  select coalesce(least(q.max_readers, _take_reader.max_readers), 1)
    into slots
    from sb_internal.queue as q
   where q.queue_id = _take_reader.queue_id;
  for slot in 0 .. coalesce(slots, 0) - 1 loop
    if (case when _take_reader.for_session
         then pg_try_advisory_lock(sb_internal._reader_slot(_take_reader.queue_id, slot))
         else pg_try_advisory_xact_lock(sb_internal._reader_slot(_take_reader.queue_id, slot)) end)
    then
      return true;
    end if;
  end loop;
  return false;
end
$$;
comment on function sb_internal._take_reader(name, integer, integer, boolean) is
  'The reader limit behind sb.take_reader.';
revoke all on function sb_internal._take_reader(name, integer, integer, boolean) from public;
-- sqlgen:end functions/activation/_take_reader.sql
-- sqlgen:begin functions/activation/activation_plan.sql sha256:cb789031276ad561d47c8c817359c951a18ab2da2e3a926c6d289628da524adf
create or replace function sb.activation_plan(queue_names text[] default '{}')
  returns table (queue_id integer, queue_name text, is_on boolean, max_readers integer, surplus_readers integer,
    procedure_name text, procedure_version text, is_procedure boolean, statement text, execute_as name)
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select p.queue_id, p.queue_name, p.is_on, p.max_readers, p.surplus_readers, p.procedure_name,
         p.procedure_version, p.is_procedure, p.statement, p.execute_as
    from sb_internal._activation_plan(current_user, activation_plan.queue_names) as p;
end;
comment on function sb.activation_plan(text[]) is
  'For activators: the queues with activation switched on, and those named, which have handlers of the activator''s own (procedure columns null unless activation is on too). statement runs the activation procedure and is null when that does not exist; procedure_version changes when it is replaced; surplus_readers counts readers that a lowered max_queue_readers left over (R-048). Admins only. Locks: none.';
revoke all on function sb.activation_plan(text[]) from public;
-- sqlgen:end functions/activation/activation_plan.sql
-- sqlgen:begin functions/activation/probe_queue.sql sha256:38b3b0b4b5f62d6f5af0d1b0932dcc15283907cbf1d8ae81476762e3c2ff0fce
create or replace function sb.probe_queue(queue_id integer, out head bigint, out receives bigint)
  returns record
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select p.head, p.receives
    from sb_internal._probe_queue(current_user, probe_queue.queue_id) as p;
end;
comment on function sb.probe_queue(integer) is
  'For activators: head is null when a receive would get nothing now (empty, off, all groups held or in back-off), else a number that stands for the message it would begin with: the same number again means that nobody has received that message. receives is the counter of activation_scan, null while poison handling is off. Takes nothing and holds nothing. Admins only. Locks: a group, given back at once.';
revoke all on function sb.probe_queue(integer) from public;
-- sqlgen:end functions/activation/probe_queue.sql
-- sqlgen:begin views/broker.sql sha256:1506f23fd89651e20e01702649ea4f7889a88121c4cf765d2408b5daaeba59d1
create or replace view sb.broker
  with (security_barrier = true)
as
select b.broker_instance,
       b.is_broker_enabled,
       b.is_honor_broker_priority_on,
       (select pg_catalog.max(m.version)
          from sb_internal.meta as m) as schema_version
  from sb_internal.broker as b;
comment on view sb.broker is
  'The broker of this database, one row: its instance, by which routes and dialogs name it, and its switches.';
-- sqlgen:end views/broker.sql
-- sqlgen:begin views/conversation_endpoints.sql sha256:03b61b7b22de1470a87344e57231e91aaa0d70695520a1a7ca7e777114b74449
create or replace view sb.conversation_endpoints
  with (security_barrier = true)
as
select e.conversation_handle,
       case when e.is_initiator then e.conversation_handle else e.peer_handle end as conversation_id,
       e.is_initiator,
       e.service_contract_id,
       e.conversation_group_id,
       e.service_id,
       e.lifetime,
       x.state,
       case x.state
         when 'SO' then 'STARTED_OUTBOUND'
         when 'CO' then 'CONVERSING'
         when 'DI' then 'DISCONNECTED_INBOUND'
         when 'DO' then 'DISCONNECTED_OUTBOUND'
         when 'ER' then 'ERROR'
       end as state_desc,
       e.far_service,
       e.far_broker_instance,
       pg_catalog.to_regrole(pg_catalog.quote_ident(s.owner))::oid::integer as principal_id,
       (select d.due_at
          from sb_internal.due as d
         where d.conversation_handle = e.conversation_handle
           and not d.is_lifetime) as dialog_timer,
       coalesce((
         select c.message_sequence_number + 1
           from sb_internal.send_counter as c
          where c.conversation_handle = e.conversation_handle
          order by c.conversation_handle desc, c.message_sequence_number desc
          limit 1), 0) as send_sequence,
       e.service_id < 65536 as is_system,
       e.priority
  from sb_internal.endpoint as e
  join sb_internal.service as s on s.service_id = e.service_id
 cross join lateral sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle) as x (state)
 where s.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.conversation_endpoints is
  'Both sides of conversations, each with the handle that its side uses; of services whose queue the reader may receive from. conversation_id is what the two sides share. state is SO, CO, DI, DO or ER as it holds now, also when the end is still unread or the lifetime has just passed. send_sequence is the next number to be sent, dialog_timer when the timer is due.';
-- sqlgen:end views/conversation_endpoints.sql
-- sqlgen:begin views/service_queues.sql sha256:ce21f1cf04396afd627688caa8000411923ba933f9406d5f1a7e52caebaa7b29
create or replace view sb.service_queues
  with (security_barrier = true)
as
select q.name,
       q.queue_id,
       q.owner,
       q.max_readers,
       q.activation_procedure,
       q.execute_as,
       q.is_activation_enabled,
       q.queue_id = any ((select sb_internal._queues_on())::integer[]) as is_receive_enabled,
       q.queue_id = any ((select sb_internal._queues_on())::integer[]) as is_enqueue_enabled,
       q.is_retention_enabled,
       q.is_poison_message_handling_enabled,
       q.is_system as is_ms_shipped,
       pg_catalog.to_regrole(pg_catalog.quote_ident(q.owner))::oid::integer as principal_id
  from sb_internal.queue as q
 where q.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.service_queues is
  'Queues that the reader owns or may receive from. is_receive_enabled and is_enqueue_enabled go together (R-050) and are false as soon as the poison limit is reached, also before that is written down.';
-- sqlgen:end views/service_queues.sql
-- sqlgen:begin grants/grants.sql sha256:865e56a64d49909347abdd5405930160c5eec2a0fbae699ef743864ec3696e21
-- The whole grant matrix. Nobody but the owner has anything, until a verb gives it:
--
--                         USAGE sb   EXECUTE                       SELECT views   tables, sequences, sb_internal
--   public                   -       -                                  -         -
--   role with a right        x       _grantable(false)                  x         -
--   owner of an object       x       _grantable(true)                   x         -
--   admin                    x       _grantable(true)                   x         -
--
-- Which role has what is catalog data; _sync_privileges turns it into privileges. It runs here too, so
-- that roles get the functions and views that a new version brings.
revoke all on schema sb, sb_internal from public;
revoke all on all tables in schema sb, sb_internal from public;
revoke all on all sequences in schema sb, sb_internal from public;
revoke all on all routines in schema sb, sb_internal from public;
do $$
begin
  perform sb_internal._lock_catalog();
  perform sb_internal._sync_privileges(array(
    select pg_catalog.unnest(b.admins) from sb_internal.broker as b
     union
    select t.owner from sb_internal.message_type as t
     union
    select pg_catalog.unnest(c.referencers || c.owner) from sb_internal.contract as c
     union
    select pg_catalog.unnest(q.receivers || q.owner) from sb_internal.queue as q
     union
    select pg_catalog.unnest(s.senders || s.owner) from sb_internal.service as s
     union
    select r.owner from sb_internal.route as r));
end
$$;
-- sqlgen:end grants/grants.sql
do $$
declare
  _object record;
  _left integer;
  _before integer;
  _stuck boolean;
begin
  loop
    _left := 0;
    for _object in
      select 'view' as kind, c.oid, c.oid::regclass::text as name
        from pg_catalog.pg_class as c
       where c.relnamespace = 'sb'::regnamespace
         and c.relkind = 'v'
         and c.relname like '%~old'
      union all
      select 'routine', p.oid, p.oid::regprocedure::text
        from pg_catalog.pg_proc as p
       where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
         and p.proname like '%~old'
      union all
      select 'trigger', t.oid, pg_catalog.format('%I on %s', t.tgname, t.tgrelid::regclass)
        from pg_catalog.pg_trigger as t
        join pg_catalog.pg_class as c on c.oid = t.tgrelid
       where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
         and not t.tgisinternal
         and t.tgname like '%~old'
       order by oid desc
    loop
      begin
        execute pg_catalog.format('drop %s %s', _object.kind, _object.name);
      exception
        when dependent_objects_still_exist then
          if _stuck then
            raise;
          end if;
          _left := _left + 1;
      end;
    end loop;
    exit when _left = 0;
    _stuck := _left = _before;
    _before := _left;
  end loop;
end
$$;
delete from sb_internal.meta where version = 3;
-- sqlgen:done

-- After the view that shows it.
alter table sb_internal.queue drop column is_poison_disabled;
drop table sb_internal.loose_end;
alter table sb_internal.service_status
  drop column service_name,
  drop column service_owner,
  drop column senders,
  drop column contracts,
  drop column broker_instance,
  drop column has_priorities,
  drop column is_local_only;
comment on table sb_internal.service_status is
  'What SEND and RECEIVE have to know of a service, its queue and the broker, in one row: one probe instead of three. Written by triggers on those tables only (_refresh_service_status).';
