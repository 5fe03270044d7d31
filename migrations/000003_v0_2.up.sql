set local lock_timeout = '10s';

-- All that is changed below, at once and before anything else.
do $$
begin
  for attempt in 1..20 loop
    begin
      -- Shorter than deadlock_timeout: whoever is in our way gets on first, and those behind us wait no longer than this.
      perform pg_catalog.set_config('lock_timeout', least(attempt * 100, 900) || 'ms', true);
      lock table sb_internal.queue, sb_internal.endpoint, sb_internal.service, sb_internal.service_status, sb_internal.service_contract, sb_internal.route, sb_internal.message, sb_internal.retained_message in access exclusive mode;
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
-- Without a key and without this, a publication FOR ALL TABLES would make every receive fail.
alter table sb_internal.message replica identity full;
alter table sb_internal.retained_message replica identity full;

-- Services and contracts are kept from being dropped by a lock on their names (_share_names): a key share lock
-- of the one service row by every transaction that begins a dialog made a multixact of each of them.
alter table sb_internal.endpoint drop constraint endpoint_service_id_fkey;

-- Read and planned anew by every insert, it cost a twentieth of begin_dialog with its first send; two functions
-- write the column.
alter table sb_internal.endpoint drop constraint endpoint_state_check;

comment on column sb_internal.endpoint.has_counter is
  'Written with the first row in send_counter unless the dialog began in the same transaction: makes a repeatable read transaction that cannot see that row fail (40001) instead of counting from zero again. Says nothing else.';

-- The count of rollbacks does not outlive a crash; this does.
alter table sb_internal.queue add column is_poison_disabled boolean not null default false;
comment on column sb_internal.queue.is_poison_disabled is
  'Poison message handling has switched the queue off (is_enabled), not somebody; until it is switched on again.';
update sb_internal.queue as q
   set is_poison_disabled = true
  from sb_internal.broker as b
 where not q.is_enabled
   and q.is_poison_message_handling_enabled
   and sb_internal._poison_count(q.queue_id) >= b.poison_message_threshold;

create table sb_internal.loose_end (
  loose_end_id bigint generated always as identity,
  conversation_handle uuid not null,
  conversation_group_id uuid not null,
  constraint loose_end_pkey primary key (loose_end_id)
);
comment on table sb_internal.loose_end is
  'Conversations that left their group, by END or MOVE, in a transaction above read committed. What its snapshot did not have of them, and whether the group is empty, maintain sees to (_tie_loose_ends).';

-- What begin_dialog and the first SEND have to know: one probe instead of four and six. Filled below, by the triggers.
alter table sb_internal.service_status
  add column service_name text collate "C",
  add column service_owner name,
  add column senders name[],
  add column contracts integer[],
  add column broker_instance uuid,
  add column has_priorities boolean,
  add column is_local_only boolean;
comment on table sb_internal.service_status is
  'What begin_dialog, SEND and RECEIVE have to know of a service, its queue, the broker and the routes, in one row: one probe instead of many. Written by triggers on those tables only (_refresh_service_status).';
comment on column sb_internal.service_status.contracts is 'Ids of the contracts that the service accepts as a target.';
comment on column sb_internal.service_status.has_priorities is 'There is a conversation priority but 5.';
comment on column sb_internal.service_status.is_local_only is
  'All routes say LOCAL, and for everything: where a dialog goes need not be looked up.';

-- One row, too few for autovacuum ever to look at it; taken for hundreds, it makes the catalog views dear
-- enough on paper to be compiled (jit) for seconds.
analyze sb_internal.broker;

-- sqlgen:generated from sql/ by sqlgen snapshot: edits between here and sqlgen:done are lost
alter function sb_internal._create_endpoint(conversation_handle uuid, peer_handle uuid, conversation_group_id uuid, service_id integer, service_contract_id integer, is_initiator boolean, far_service text, far_broker_instance text, lifetime timestamptz, has_priorities boolean) rename to "_create_endpoint~old";
alter function sb_internal._create_target(e sb_internal.endpoint, out outcome text, out queue_id integer, out priority smallint, out has_activation_event boolean) rename to "_create_target~old";
alter function sb_internal._first_send(conversation_handle uuid) rename to "_first_send~old";
alter function sb_internal._leave_group(conversation_group_id uuid) rename to "_leave_group~old";
alter function sb_internal._lock_conversations(service_id integer, service_contract_id integer) rename to "_lock_conversations~old";
alter function sb_internal._poison_record(queue_id integer) rename to "_poison_record~old";
alter function sb_internal._take_group(queue_id integer, group_id uuid, priority_levels smallint[], max_messages bigint, is_retained boolean) rename to "_take_group~old";
alter function sb_internal._activation_plan(caller name, queue_names text[]) rename to "_activation_plan~old";
alter function sb_internal._probe_queue(caller name, queue_id integer, out head bigint, out receives bigint) rename to "_probe_queue~old";
alter function sb.activation_plan(queue_names text[]) rename to "activation_plan~old";
alter function sb.probe_queue(queue_id integer, out head bigint, out receives bigint) rename to "probe_queue~old";
alter function sb_internal._begin(service_id integer, service_contract_id integer, far_service text, far_broker_instance text, conversation_group_id uuid, lifetime timestamptz) rename to "_begin~old";
alter function sb_internal._json_decode(body bytea) rename to "_json_decode~old";
-- sqlgen:begin functions/internal/_activation_procedure.sql sha256:863b6d033aecf5f18780e5781509a7d4012f57a3ee218518875e07ed98d8f54a
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
    perform sb_internal._raise('S9614', array[_activation_procedure.name],
      case when _activation_procedure.name like '%(%)%' then 'reason=to be written without the parentheses'
      else 'reason=not a schema.name' end);
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
-- sqlgen:begin functions/internal/_after_restore.sql sha256:daabb73aab54747fa2c514acb3dba18f9b92770d3f932da5370942435fb40ce7
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
  sb_owner constant name := (select pg_get_userbyid(n.nspowner) from pg_namespace as n where n.nspname = 'sb');
begin
  perform sb_internal._require_admin(_after_restore.caller, 'call after_restore');
  perform sb_internal._lock_catalog();
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
  -- As its migration does: autovacuum never comes to a table of one row.
  analyze sb_internal.broker;

  -- The system is his who owns sb here. Else its events would be those of a stranger.
  update sb_internal.message_type as t
     set owner = sb_owner
   where t.message_type_id < 65536
     and t.owner <> sb_owner;
  update sb_internal.contract as c
     set owner = sb_owner
   where c.service_contract_id < 65536
     and c.owner <> sb_owner;
  update sb_internal.queue as o
     set owner = sb_owner
   where o.is_system
     and o.owner <> sb_owner;
  update sb_internal.service as s
     set owner = sb_owner
   where s.service_id < 65536
     and s.owner <> sb_owner;
  perform sb_internal._sync_all_privileges();
end
$$;
comment on function sb_internal._after_restore(name) is
  'sb.after_restore with the caller''s rights checked.';
revoke all on function sb_internal._after_restore(name) from public;
-- sqlgen:end functions/internal/_after_restore.sql
-- sqlgen:begin functions/internal/_alter_authorization.sql sha256:2ef4e91a75694384b9a4b57a594e06f2a5f9e9f17766103e57f29ec37ebf4847
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
  if not sb_internal._may_become(_alter_authorization.caller, _alter_authorization.new_owner) then
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
-- sqlgen:begin functions/internal/_alter_queue.sql sha256:b067afcb0408f7d8314f8fd604c7b9c4b3394f52fc40edb6d2e50f272b94b155
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
         -- One that poison handling has stopped and somebody stops once more stays what it is.
         is_poison_disabled = q.is_poison_disabled and _alter_queue.enabled is not true,
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
-- sqlgen:begin functions/internal/_alter_route.sql sha256:a82a1d102883308b933d2cc8a005514e17d5ee4b15b6d722db4925e5f1bcea93
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
         broker_instance = coalesce(lower(_alter_route.broker_instance), o.broker_instance),
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
-- sqlgen:begin functions/internal/_begin_conversation_timer.sql sha256:622f0aa90566d0feeb75110f17716f5804853de3283940687605c13d3d62f034
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
  perform sb_internal._hold_service(e.service_id);
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
-- sqlgen:begin functions/internal/_begin_dialog.sql sha256:8caf070302d117a29eb73ed8d99bc2ac23664b65bb894196872ef164274b828a
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
  instance text := lower(_begin_dialog.broker_instance);
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

  -- Against service and contract being dropped: who looks later sees what the drop has left. The other service,
  -- which need not be there, for the first SEND, mostly in this transaction.
  if sb_internal._share_names(_begin_dialog.from_service, _begin_dialog.on_contract, _begin_dialog.to_service) then
    perform 1
       from sb_internal.service as s
       join sb_internal.contract as k on k.name = _begin_dialog.on_contract
      where s.name = _begin_dialog.from_service
        for share;  -- also against alter_service: see _hold_service
  end if;
  select s.service_id, s.queue_id, s.queue_owner, s.receivers, s.broker_instance, s.has_priorities,
         k.service_contract_id, k.owner as contract_owner, k.referencers
    into c
    from sb_internal.service_status as s
    left join sb_internal.contract as k on k.name = _begin_dialog.on_contract
   where s.service_name = _begin_dialog.from_service;
  if not found then
    perform sb_internal._require_name(_begin_dialog.from_service, 'service', 128);
    perform sb_internal._raise('S8423', array[_begin_dialog.from_service]);
  end if;
  if _begin_dialog.caller <> c.queue_owner and not (_begin_dialog.caller = any (c.receivers))
    and not sb_internal._may(_begin_dialog.caller, c.queue_owner, c.receivers)
  then
    perform sb_internal._raise('42501', array[_begin_dialog.caller::text, 'receive from queue ' || q.name
      || ' and so not begin dialogs from service ' || _begin_dialog.from_service])
       from sb_internal.queue as q
      where q.queue_id = c.queue_id;
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
  if instance = 'current database' then
    instance := c.broker_instance::text;
  end if;

  if _begin_dialog.related_conversation is not null then
    conversation_group := sb_internal._lock_group_of(_begin_dialog.related_conversation);
    if conversation_group is null then
      perform sb_internal._raise('S8426', array[_begin_dialog.related_conversation::text]);
    end if;
    perform sb_internal._join_group(conversation_group, c.service_id, _begin_dialog.from_service);
  elsif _begin_dialog.related_conversation_group is not null then
    conversation_group := _begin_dialog.related_conversation_group;
    perform sb_internal._join_group(conversation_group, c.service_id, _begin_dialog.from_service);
  end if;

  return sb_internal._create_endpoint(gen_random_uuid(), gen_random_uuid(), conversation_group, c.service_id,
    c.service_contract_id, true, _begin_dialog.to_service, instance, expires,
    case
      when c.has_priorities then
        sb_internal._priority(c.service_contract_id, c.service_id, _begin_dialog.to_service)
      else 5::smallint
    end);
end
$$;
comment on function sb_internal._begin_dialog(name, text, text, text, text, uuid, uuid, interval) is
  'BEGIN DIALOG behind sb.begin_dialog.';
revoke all on function sb_internal._begin_dialog(name, text, text, text, text, uuid, uuid, interval) from public;
-- sqlgen:end functions/internal/_begin_dialog.sql
-- sqlgen:begin functions/internal/_cell.sql sha256:964094ccb86460711a62c39665dddca528d3d1321425c5f42be7648574fcdca0
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
  'Reads one of a queue''s non-transactional cells (sequences, found by name so that a dump restores them); null when never written.';
revoke all on function sb_internal._cell(integer, text) from public;
-- sqlgen:end functions/internal/_cell.sql
-- sqlgen:begin functions/internal/_claim.sql sha256:f6f48bf18383b95da675534fd55d8d7e5548b8cea296368932922e058ab8aad8
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
  -- What _has_message says, in one statement: asking that one costs a receive 13 to 20 %.
  if found
    and not exists (
      select 1
        from sb_internal.endpoint as e
       where e.conversation_handle = _claim.conversation_handle
         and e.conversation_group_id is not distinct from claimed
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
-- sqlgen:begin functions/internal/_create_endpoint.sql sha256:f2379ab664ab664362ebf25a893059e40324a583249d00c4f51ff91325802b8b
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
  priority smallint
)
  returns uuid
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- A group of its own takes the handle's value: one uuid less to make, one page less to touch.
  with own_group as (
    insert into sb.conversation_group (conversation_group_id, service_id)
    select _create_endpoint.conversation_handle, _create_endpoint.service_id
     where _create_endpoint.conversation_group_id is null)
  insert into sb_internal.endpoint (conversation_handle, peer_handle, conversation_group_id, lifetime,
    service_id, service_contract_id, priority, is_initiator, far_service, far_broker_instance)
  values (_create_endpoint.conversation_handle, _create_endpoint.peer_handle,
    coalesce(_create_endpoint.conversation_group_id, _create_endpoint.conversation_handle),
    _create_endpoint.lifetime, _create_endpoint.service_id, _create_endpoint.service_contract_id,
    _create_endpoint.priority, _create_endpoint.is_initiator,
    _create_endpoint.far_service, _create_endpoint.far_broker_instance);
  if _create_endpoint.lifetime is not null then
    -- Holds off alter_service, which moves due rows: the queue read next is the right one.
    lock table sb_internal.message in access share mode;
    insert into sb_internal.due (conversation_handle, is_lifetime, conversation_group_id, queue_id, priority, due_at)
    select _create_endpoint.conversation_handle, true,
           coalesce(_create_endpoint.conversation_group_id, _create_endpoint.conversation_handle), s.queue_id,
           _create_endpoint.priority, _create_endpoint.lifetime
      from sb_internal.service as s
     where s.service_id = _create_endpoint.service_id;
  end if;
  return _create_endpoint.conversation_handle;
end
$$;
comment on function sb_internal._create_endpoint(
  uuid, uuid, uuid, integer, integer, boolean, text, text, timestamptz, smallint) is
  'Inserts one side of a dialog: the endpoint, with a lifetime its due row, and its group unless conversation_group_id names one that the caller has locked. Its counter comes with its first SEND. Rights and arguments are checked by the caller, who also holds the lock of _share_names on the service. Returns the handle.';
revoke all on function sb_internal._create_endpoint(
  uuid, uuid, uuid, integer, integer, boolean, text, text, timestamptz, smallint) from public;
-- sqlgen:end functions/internal/_create_endpoint.sql
-- sqlgen:begin functions/internal/_create_event_notification.sql sha256:8eb07208368ebbcf9dfcaa808885b7c654f194e9886c4f5b1c6d74f52fefd8de
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
  instance text := lower(_create_event_notification.broker_instance);
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
  elsif instance = 'current database' then
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
-- sqlgen:begin functions/internal/_create_route.sql sha256:c4f14df5a700351a29d5f2f552283bde984d02b54c1fa451eb0ed538efdb7e57
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
  r.broker_instance := lower(_create_route.broker_instance);
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
-- sqlgen:begin functions/internal/_create_target.sql sha256:e5e97c93beca8919a02c5da2d7f0e6c38b8fe61d76af4df402aa86c4fbb99ab9
create or replace function sb_internal._create_target(
  e sb_internal.endpoint,
  own sb_internal.service_status,
  target sb_internal.service_status,
  out outcome text,
  out priority smallint
)
  returns record
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  outcome := 'wait';
  -- Where there is no route but AutoCreatedLocal, the way of everything leads here.
  if (target.is_local_only and (e.far_broker_instance is null or e.far_broker_instance = target.broker_instance::text))
      is not true
    and sb_internal._route(e.far_service, e.far_broker_instance) is distinct from 'LOCAL'
  then
    return;
  end if;
  if target.service_id is null then
    if e.far_broker_instance is not null then
      outcome := 'error';
      perform sb_internal._error_endpoint(e.conversation_handle, -8490, 'The service "' || e.far_service
        || '" does not exist in broker instance ' || e.far_broker_instance || '.');
    end if;
    return;
  end if;
  if not target.is_accepting
    or target.is_poison_watched
      and pg_sequence_last_value(('sb_internal.queue_' || target.queue_id || '_poison_alarm')::regclass) = 1
      and sb_internal._poison_limit_reached(target.queue_id)
  then
    return;
  end if;
  if own.service_owner <> target.service_owner
    and not sb_internal._may(own.service_owner, target.service_owner, target.senders)
  then
    outcome := 'error';
    perform sb_internal._error_endpoint(e.conversation_handle, -8494,
      'The owner of the initiating service has no permission to send to service "' || e.far_service || '".');
    return;
  end if;
  if e.service_contract_id <> all (target.contracts) then
    outcome := 'error';
    perform sb_internal._error_endpoint(e.conversation_handle, -8408,
      'The service "' || e.far_service || '" does not accept the contract of the dialog.');
    return;
  end if;

  priority := case
    when target.has_priorities then sb_internal._priority(e.service_contract_id, target.service_id, own.service_name)
    else 5::smallint
  end;
  if sb_internal._create_endpoint(e.peer_handle, e.conversation_handle, null, target.service_id, e.service_contract_id,
    false, own.service_name, target.broker_instance::text, e.lifetime, priority) is not null
  then
    outcome := 'created';
  end if;
end
$$;
comment on function sb_internal._create_target(
  sb_internal.endpoint, sb_internal.service_status, sb_internal.service_status) is
  'Creates the target endpoint of a dialog for its first message, in a group of its own with the id of the handle; own is the service of the initiator, target what _find_target returns. outcome: created; wait when the message has to stay in the transmission queue (no route, service missing, queue off, broker off); error when the dialog failed for good and its Error is in the queue of the initiator (-8490, -8494, -8408).';
revoke all on function sb_internal._create_target(
  sb_internal.endpoint, sb_internal.service_status, sb_internal.service_status) from public;
-- sqlgen:end functions/internal/_create_target.sql
-- sqlgen:begin functions/internal/_deliver.sql sha256:00f0df69a0158b7c550b87094120075a45463eeb0729bb4936eb65f29e6aaffd
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
    if found or e.state = 'DO' then
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
-- sqlgen:begin functions/internal/_deliver_conversation.sql sha256:9e10773db90309b8bb141b7800e1e2c033b575b402626308a08f6d9d452be868
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
        from sb_internal.service_status as o
       cross join lateral sb_internal._create_target(e, o, sb_internal._find_target(e.far_service)) as t
       where o.service_id = e.service_id;
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
-- sqlgen:begin functions/internal/_deliver_queue.sql sha256:4126492489bf4a84e9eacc2bce7f08177bbe321e342eb735f6d584658529575e
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
  'sb.deliver with the caller''s rights checked.';
revoke all on function sb_internal._deliver_queue(name, text) from public;
-- sqlgen:end functions/internal/_deliver_queue.sql
-- sqlgen:begin functions/internal/_drop_contract.sql sha256:bf1dbbb5012956d99f40f8abe7eae2f7360bb6af456513b6822be53a28183cf3
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
  perform sb_internal._require_read_committed('drop_contract');
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
  handles := sb_internal._lock_conversations('contract', _drop_contract.name, object.id);
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
-- sqlgen:begin functions/internal/_drop_service.sql sha256:6ab3fec3f2577596fd943671bb2e5325f64d0f5dd0d1a58f9408ba5de591c922
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
  perform sb_internal._require_read_committed('drop_service');
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

  foreach conversation in array sb_internal._lock_conversations('service', _drop_service.name, object.id) loop
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
-- sqlgen:begin functions/internal/_drop_state_table.sql sha256:772f591cf4a57b698bb43f0bf93a89beb26135ce59960463a02360700811b095
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
      message = pg_catalog.format('state table %s does not exist',
        pg_catalog.left(_drop_state_table.table_name, 256));
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
-- sqlgen:begin functions/internal/_end_conversation.sql sha256:157debe0e7ec61ef336c82dc1fd82108598dd6385df7b6174caddbdeadb1dfdd
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

  select p.conversation_group_id, p.priority, p.state, p.service_id, q.queue_id,
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
    perform sb_internal._hold_service(target.service_id);
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
-- sqlgen:begin functions/internal/_error_body.sql sha256:0da3ade25f547d523cec0f7b4297542b141469d0a0866d88f1ad095d3cc1fbcd
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
          $re$[\u0001-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]$re$,
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
-- sqlgen:begin functions/internal/_error_broker_conversations.sql sha256:4bdd978eaea1cf31f138240bad6cb4d50bd3bac87cb01a038ec3a45071203822
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
  perform sb_internal._require_read_committed('error_broker_conversations');
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
-- sqlgen:begin functions/internal/_event_body.sql sha256:1e007250d7a8947707043163c2a387c7e0f6159344af4b7aaeef647c7a33e3f8
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
        regexp_replace(element.value, $re$[\u0001-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]$re$, '?', 'g'),
        '&', '&amp;'), '<', '&lt;'), '>', '&gt;'));
  end loop;
  return convert_to(body || '</EVENT_INSTANCE>', 'UTF8');
end
$$;
comment on function sb_internal._event_body(text, text) is
  'The EVENT_INSTANCE document of R-114, for both events; PostTime is UTC, both names are the session''s login.';
revoke all on function sb_internal._event_body(text, text) from public;
-- sqlgen:end functions/internal/_event_body.sql
-- sqlgen:begin functions/internal/_find_target.sql sha256:ea2832b7ec72ac2556e9d0cc5129691f0cc6aa83c9ebe61e3610648a6035c569
create or replace function sb_internal._find_target(far_service text)
  returns sb_internal.service_status
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  target sb_internal.service_status;
begin
  -- A service being dropped is then simply missing.
  if sb_internal._share_names(_find_target.far_service, null) then
    perform 1
       from sb_internal.service as s
      where s.name = _find_target.far_service
        for share;  -- also against alter_service: see _hold_service
  end if;
  select t.*
    into target
    from sb_internal.service_status as t
   where t.service_name = _find_target.far_service;
  return target;
end
$$;
comment on function sb_internal._find_target(text) is
  'The service that an initiator talks to, for _create_target, kept from being dropped; null when there is none.';
revoke all on function sb_internal._find_target(text) from public;
-- sqlgen:end functions/internal/_find_target.sql
-- sqlgen:begin functions/internal/_first_send.sql sha256:f2318b9036a80589226e60cab24872c3ac87788d3c2f9c8eff2fc05b949ffd8a
create or replace function sb_internal._first_send(conversation_handle uuid, quantity integer)
  returns bigint
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
    return null;
  end if;
  perform 1
     from sb_internal.endpoint as e
    where e.conversation_handle = _first_send.conversation_handle
      for no key update;
  if not found then
    perform sb_internal._raise('S8426', array[_first_send.conversation_handle::text]);
  end if;
  if exists (
    select 1
      from sb_internal.send_counter as c
     where c.conversation_handle = _first_send.conversation_handle)
  then
    return null;
  end if;
  update sb_internal.endpoint as e
     set has_counter = true
   where e.conversation_handle = _first_send.conversation_handle;
  insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
  values (_first_send.conversation_handle, _first_send.quantity - 1);
  return (_first_send.quantity - 1)::bigint;
end
$$;
comment on function sb_internal._first_send(uuid, integer) is
  'Gives a conversation its counter row with its first SEND, having counted quantity messages, and returns the last number; null when a rival has made the row meanwhile: count there. For a dialog begun in this transaction SEND does it itself. Locks the endpoint; writing it makes a repeatable read transaction that cannot see the rival''s row fail (40001) instead of counting from zero again. Error S8426.';
revoke all on function sb_internal._first_send(uuid, integer) from public;
-- sqlgen:end functions/internal/_first_send.sql
-- sqlgen:begin functions/internal/_forget.sql sha256:98f08765dfc87a7f41c14e29b13631bd86bd13f493684486050b01d42e06f9f0
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
    perform sb_internal._leave_group(e.conversation_handle, e.conversation_group_id);
  end if;
end
$$;
comment on function sb_internal._forget(sb_internal.endpoint, boolean) is
  'Removes one side of a conversation and everything it owns; with keep_transmission its endpoint stays in DO until its last message has left. The caller holds the locks of _lock_conversation.';
revoke all on function sb_internal._forget(sb_internal.endpoint, boolean) from public;
-- sqlgen:end functions/internal/_forget.sql
-- sqlgen:begin functions/internal/_get_conversation_group.sql sha256:ff0645291971d0818d89bfdfac8b36c342d41bb3f2b93fe1e52c9a434f34d964
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
      perform sb_internal._raise('S9617', array[q.name], sb_internal._stopped_by(q.queue_id));
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
-- sqlgen:begin functions/internal/_get_state.sql sha256:32cf7ff065edfa724dd930a626d98552000417bf8080876bc94624a03d1bd6e9
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
  'sb.get_state with the caller''s rights checked.';
revoke all on function sb_internal._get_state(name, uuid) from public;
-- sqlgen:end functions/internal/_get_state.sql
-- sqlgen:begin functions/internal/_has_message.sql sha256:a29530414b566f70ebd7c71da68208dea9eb67c8cace93b9ef18381c238046c7
create or replace function sb_internal._has_message(for_conversation uuid, group_id uuid)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  handles uuid[] := case
    when _has_message.for_conversation is not null then array[_has_message.for_conversation]
    else array(
      select e.conversation_handle
        from sb_internal.endpoint as e
       where e.conversation_group_id = _has_message.group_id
         and e.state <> 'DO')  -- around which an orphan may lie
  end;
  handle uuid;
begin
  foreach handle in array handles loop
    if exists (
         select 1
           from sb_internal.due as d
          where d.conversation_handle = handle
            and d.due_at <= sb_internal._now())
      or exists (
         select 1
           from sb_internal.message as m
          where m.conversation_handle = handle
            and m.message_type_id in (1, 2))
      or exists (
         select 1
           from sb_internal.message as m
          where m.conversation_handle = handle
            and m.message_sequence_number >= coalesce((
              select c.message_sequence_number
                from sb_internal.receive_cursor as c
               where c.conversation_handle = handle
               order by c.conversation_handle desc, c.message_sequence_number desc
               limit 1), -1))
    then
      return true;
    end if;
  end loop;
  return false;
end
$$;
comment on function sb_internal._has_message(uuid, uuid) is
  'Whether a receive for_conversation, or else for_group, would find something. Takes no locks.';
revoke all on function sb_internal._has_message(uuid, uuid) from public;
-- sqlgen:end functions/internal/_has_message.sql
-- sqlgen:begin functions/internal/_hold_service.sql sha256:a9d0c80746b47a9da72e809a0ebe188287b08297c3ed3c77223ece641d3bfd58
create or replace function sb_internal._hold_service(service_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    perform 1
       from sb_internal.service as s
      where s.service_id = _hold_service.service_id
        for share;
  end if;
end
$$;
comment on function sb_internal._hold_service(integer) is
  'For whoever puts something into the queue of a service: above read committed fails (40001) when alter_service has given it another queue since the snapshot, and keeps it from doing so. In read committed the lock of the message table does that.';
revoke all on function sb_internal._hold_service(integer) from public;
-- sqlgen:end functions/internal/_hold_service.sql
-- sqlgen:begin functions/internal/_is_valid_body.sql sha256:ff4b0c52a0565afd1756b6214da67081c204d0e1a5012630e569fd1d54d358e5
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
  'Checks a body against the validation of its message type, except for a user''s validator function, which runs with the rights of whoever sends.';
revoke all on function sb_internal._is_valid_body(integer, text, bytea, boolean) from public;
-- sqlgen:end functions/internal/_is_valid_body.sql
-- sqlgen:begin functions/internal/_json_is_well_formed.sql sha256:3c972aca41d5f9b6db5ba26bae9e66af5ebbd5adcd13734e4004c146115825bc
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
      when substr(_json_is_well_formed.body, 1, 3) = e'\\xefbbbf'::bytea
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
-- sqlgen:begin functions/internal/_json_schema_check.sql sha256:c5a05ce32f7ed267aa7c44444a1b7c7268f0e9cefa320be64960f3cbc87ce18d
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
          _wrong := e'a regular expression without \\b and \\B';
          if _kind = 'string' then
            if (_at.value #>> '{}') !~ $re$^(?:[^\\]|\\[^bB])*\\[bB]$re$
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
-- sqlgen:begin functions/internal/_json_value.sql sha256:65dce2460145db68fcdfbc11671523c94687ffc93de34b5b45bdc2934ca555b9
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
      when substr(_json_value.body, 1, 3) = e'\\xefbbbf'::bytea then substr(_json_value.body, 4)
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
-- sqlgen:begin functions/internal/_leave_group.sql sha256:e4ed34f01ada959e3345c46ce0c0b414372cb08e840f9ddf393a9edb64ce7655
create or replace function sb_internal._leave_group(conversation_handle uuid, conversation_group_id uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    -- Others may have joined the group, set timers, received or kept state since the snapshot, and we would neither
    -- see that nor, since they write no row of ours, fail.
    insert into sb_internal.loose_end (conversation_handle, conversation_group_id)
    values (_leave_group.conversation_handle, _leave_group.conversation_group_id);
  elsif not exists (
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
    -- For _lock_named_group, in this transaction.
    perform set_config('sbroker.left_group', left(concat_ws(' ', _leave_group.conversation_group_id,
      current_setting('sbroker.left_group', true)), 4000), true);
  end if;
end
$$;
comment on function sb_internal._leave_group(uuid, uuid) is
  'Removes a group that the conversation has left, with its state, when no conversation is in it any more (R-246); above read committed leaves that to maintain (_tie_loose_ends). The caller holds the group lock.';
revoke all on function sb_internal._leave_group(uuid, uuid) from public;
-- sqlgen:end functions/internal/_leave_group.sql
-- sqlgen:begin functions/internal/_lock_conversation.sql sha256:05040e7a4a8f33a50048e8a58dbf5d0e9d423b14f71f27f87e13a2dacbf3917e
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
  perform sb_internal._lock_counter(_lock_conversation.conversation_handle);
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
-- sqlgen:begin functions/internal/_lock_conversations.sql sha256:d5e377fc681694c39e814be40ff763fe99fe89b23c3dd19d3da962aa27182002
-- Transactions lock conversations in whatever order their work wants. One that takes many of them, and
-- waits for the next while holding some, sooner or later meets a transaction that waits for it: then one of
-- the two is the victim. So it waits only far shorter than deadlock_timeout, and else gives all back and
-- begins anew; who waited for it goes on meanwhile. But so many may be at work that somebody is always in
-- the way: after a while it stands firm, and who has locks in another order has to retry.
-- Row by row, not in a join: how many conversations there are is what statistics know least.
create or replace function sb_internal._lock_conversations(kind text, name text, id integer)
  returns uuid[]
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  own_timeout text := current_setting('lock_timeout');
  give_up_at timestamptz := clock_timestamp() + nullif(own_timeout, '0')::interval;  -- null: never
  insist_at timestamptz := clock_timestamp() + interval '5 seconds';
  is_polite boolean;
  has_name boolean;
  handle uuid;
  handles uuid[];
begin
  loop
    is_polite := clock_timestamp() < insist_at;
    has_name := false;
    perform set_config('lock_timeout', case when is_polite then '50ms' else own_timeout end, true);
    begin
      for pass in 1..2 loop
        for handle in
          select distinct e.conversation_group_id
            from sb_internal.endpoint as e
           where case _lock_conversations.kind when 'service' then e.service_id else e.service_contract_id end
             = _lock_conversations.id
           order by e.conversation_group_id
        loop
          perform 1
             from sb.conversation_group as g
            where g.conversation_group_id = handle
              for update;
        end loop;
        perform 1
           from sb_internal.endpoint as e
          where case _lock_conversations.kind when 'service' then e.service_id else e.service_contract_id end
            = _lock_conversations.id
          order by e.conversation_handle
            for update;
        for handle in
          select e.conversation_handle
            from sb_internal.endpoint as e
           where case _lock_conversations.kind when 'service' then e.service_id else e.service_contract_id end
             = _lock_conversations.id
           order by e.conversation_handle
        loop
          perform 1
             from sb_internal.send_counter as c
            where c.conversation_handle = handle
              for update;
        end loop;
        -- Keeps new ones from coming (_share_names; above read committed the row). Late, since it stops work
        -- that has nothing to do with the conversations locked so far; the second pass takes those that came
        -- before it. Who waits for a name, or waits for something else while he has it, holds up everybody who
        -- would share it, behind one transaction that may stay open for hours: so from here on never for long.
        has_name := true;
        perform set_config('lock_timeout', case when is_polite then '50ms' else '500ms' end, true);
        if _lock_conversations.kind = 'service' then
          perform pg_advisory_xact_lock(8423, hashtext(_lock_conversations.name));
          perform 1
             from sb_internal.service as s
            where s.service_id = _lock_conversations.id
              for update;
        else
          perform pg_advisory_xact_lock(8424, hashtext(_lock_conversations.name));
          perform 1
             from sb_internal.contract as k
            where k.service_contract_id = _lock_conversations.id
              for update;
        end if;
      end loop;
      perform set_config('lock_timeout', own_timeout, true);
      select array_agg(e.conversation_handle order by e.conversation_handle)
        into handles
        from sb_internal.endpoint as e
       where case _lock_conversations.kind when 'service' then e.service_id else e.service_contract_id end
         = _lock_conversations.id;
      return coalesce(handles, '{}');
    exception
      when lock_not_available then
        if not is_polite and not has_name or clock_timestamp() >= give_up_at then
          raise;
        end if;
      when deadlock_detected then
        -- Giving back what was taken here is no help against one who waits for a lock that the transaction
        -- had before.
        if clock_timestamp() >= insist_at + interval '5 seconds' then
          raise;
        end if;
    end;
    perform pg_sleep(case when is_polite then random() * 0.1 else 0.5 + random() end);
  end loop;
end
$$;
comment on function sb_internal._lock_conversations(text, text, integer) is
  'Locks every endpoint, with its group and counter, of a service or contract (kind, name and id), keeps new ones from coming, and returns the handles. Part of a deadlock only after 5 s without success, and the victim of one only after 10 s. Gives up after lock_timeout.';
revoke all on function sb_internal._lock_conversations(text, text, integer) from public;
-- sqlgen:end functions/internal/_lock_conversations.sql
-- sqlgen:begin functions/internal/_lock_counters.sql sha256:e586b657a5428a56c966ec5dc39ab05b921bb67fb0eacd01db7828d355b4f970
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
  give_up_at timestamptz := clock_timestamp() + nullif(own_timeout, '0')::interval;  -- null: never
  insist_at timestamptz := clock_timestamp() + interval '3 seconds';
  is_polite boolean;
begin
  loop
    is_polite := clock_timestamp() < insist_at;
    perform set_config('lock_timeout', case when is_polite then '50ms' else own_timeout end, true);
    begin
      -- A side that has sent nothing yet has no counter: _first_send locks its endpoint.
      perform 1
         from sb_internal.endpoint as e
        where e.conversation_handle = any (_lock_counters.conversation_handles)
          and not exists (
            select 1
              from sb_internal.send_counter as c
             where c.conversation_handle = e.conversation_handle)
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
        if not is_polite or clock_timestamp() >= give_up_at then
          raise;
        end if;
    end;
    perform pg_sleep(random() * 0.05);
  end loop;
end
$$;
comment on function sb_internal._lock_counters(uuid[]) is
  'Takes the locks of SEND on several conversations. Part of a deadlock only after 3 s without success. Gives up after lock_timeout.';
revoke all on function sb_internal._lock_counters(uuid[]) from public;
-- sqlgen:end functions/internal/_lock_counters.sql
-- sqlgen:begin functions/internal/_lock_group_of.sql sha256:c8c12fa2cb81dc0883436f7e132778dec423242d615d4421dcd6a515ac29ec85
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
    -- one. Rolling the subtransaction back frees it. It may even have left and come back to a new group with the
    -- same id, which is not the one that we waited for.
    begin
      perform 1
         from sb.conversation_group as g
        where g.conversation_group_id = seen
          for no key update;
      if not found then
        -- In 0.1.0 a repeatable read transaction could end a group under a newcomer. What is left has no group to
        -- lock; it can be ended all the same.
        if exists (
             select 1
               from sb_internal.endpoint as e
              where e.conversation_handle = _lock_group_of.conversation_handle
                and e.conversation_group_id is not distinct from seen
                and e.state <> 'DO'
                and not exists (
                  select 1
                    from sb.conversation_group as g
                   where g.conversation_group_id = seen))
        then
          return seen;
        end if;
        perform sb_internal._raise('SB003');
      end if;
      perform 1
         from sb_internal.endpoint as e
        where e.conversation_handle = _lock_group_of.conversation_handle
          and e.conversation_group_id is not distinct from seen
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
-- sqlgen:begin functions/internal/_lock_named_group.sql sha256:d460986e8941e725e4077fd672394d77e7f98bbae10808489652f434e150748e
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
         and s.queue_id = _lock_named_group.queue_id
         and exists (
           select 1
             from sb.conversation_group as g
            where g.conversation_group_id = e.conversation_group_id);  -- see _lock_group_of
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
      -- A program that receives from a group until nothing is left may end its last conversation on the way. In
      -- SQL Server the ended side keeps the group for a while (R-246), and the next receive finds it empty.
      if _lock_named_group.deadline is null
        and position(named::text in current_setting('sbroker.left_group', true)) > 0
      then
        return null;
      end if;
      perform sb_internal._raise('S8436', array[named::text]);
    end if;

    -- Who waits for a message must not keep others from the conversation meanwhile: they may end it, set its
    -- timer, drop its service. So nothing is locked before there is something to take, and what is not there
    -- any more when the lock has come is one of the reasons to give it back.
    if _lock_named_group.deadline > sb_internal._now()
      and not sb_internal._has_message(_lock_named_group.for_conversation, named)
    then
      return null;
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
                   and e.conversation_group_id is not distinct from named
                   and e.state <> 'DO'));
        if not found or (_lock_named_group.deadline > sb_internal._now()
          and not sb_internal._has_message(_lock_named_group.for_conversation, named))
        then
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
    perform sb_internal._raise('S9617', array[q.name], sb_internal._stopped_by(q.queue_id))
       from sb_internal.queue as q
      where q.queue_id = _lock_named_group.queue_id
        and not q.is_enabled;
  end loop;
  return null;
end
$$;
comment on function sb_internal._lock_named_group(integer, uuid, uuid, interval, timestamptz) is
  'Locks the group of receives for_conversation or for_group: waits without limit when no timeout is given, else up to the deadline, then null. Null at once, and no lock, while the deadline has not come and there is nothing to take: the caller looks again. Null as well for a group that this transaction has ended. Errors: S8426, S8436 also for those of another queue.';
revoke all on function sb_internal._lock_named_group(integer, uuid, uuid, interval, timestamptz) from public;
-- sqlgen:end functions/internal/_lock_named_group.sql
-- sqlgen:begin functions/internal/_maintain.sql sha256:0421b64de63771019cedb27f346ad816766f9c92f906562f6f61d6b16643d3a5
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
  perform sb_internal._tie_loose_ends();  -- last: it locks groups
end
$$;
comment on function sb_internal._maintain(name) is
  'sb.maintain with the caller''s rights checked.';
revoke all on function sb_internal._maintain(name) from public;
-- sqlgen:end functions/internal/_maintain.sql
-- sqlgen:begin functions/internal/_may_become.sql sha256:24d97f74f2b510f78390165f166d8cdf38ace537a10288ab1c54a00e2fb6c8db
create or replace function sb_internal._may_become(caller name, role name)
  returns boolean
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- From PostgreSQL 16 on there are members that may not SET ROLE.
  return pg_has_role(_may_become.caller, _may_become.role,
    case when current_setting('server_version_num')::integer >= 160000 then 'set' else 'member' end);
end
$$;
comment on function sb_internal._may_become(name, name) is
  'Whether the caller may SET ROLE to a role that exists.';
revoke all on function sb_internal._may_become(name, name) from public;
-- sqlgen:end functions/internal/_may_become.sql
-- sqlgen:begin functions/internal/_may_use_conversation.sql sha256:5215a4363be26cf20013f14ac8d79b39dbc4ac79eb74428e63d87e96f8a42be8
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
  'Error 42501 unless the caller may receive from the queue of the conversation''s service, which is the right to use its conversations.';
revoke all on function sb_internal._may_use_conversation(name, sb_internal.endpoint, text) from public;
-- sqlgen:end functions/internal/_may_use_conversation.sql
-- sqlgen:begin functions/internal/_move_conversation.sql sha256:887c3d50837728677dc891a562b69d6954375fe9ee42b92d945c67b6572e3b9c
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
  locked bigint;
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
      get diagnostics locked = row_count;
      -- Also when a group that we waited for has gone, and another one with its id is there, which is not locked.
      perform 1
         from sb_internal.endpoint as o
        where o.conversation_handle = e.conversation_handle
          and o.conversation_group_id is not distinct from e.conversation_group_id
          and o.state <> 'DO'
          and locked = (
            select count(*)
              from sb.conversation_group as g
             where g.conversation_group_id in (e.conversation_group_id, _move_conversation.conversation_group_id));
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
  -- SEND takes an endpoint that its transaction has written for one that it has begun, with the lock of this name.
  perform sb_internal._share_names(e.far_service, null);
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
  perform sb_internal._leave_group(e.conversation_handle, e.conversation_group_id);
end
$$;
comment on function sb_internal._move_conversation(name, uuid, uuid) is
  'MOVE CONVERSATION behind sb.move_conversation.';
revoke all on function sb_internal._move_conversation(name, uuid, uuid) from public;
-- sqlgen:end functions/internal/_move_conversation.sql
-- sqlgen:begin functions/internal/_move_service.sql sha256:fe52f11be71f5d314ac5970d3b9d771089fdbaa06350e7e01f1ff53f426ba5e7
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
  perform sb_internal._require_read_committed('alter_service to another queue');
  -- A SEND that has read the old queue may not have inserted yet: all it holds on the message table is
  -- the lock of that read. Only this mode waits for it too, and the statements below then see its rows.
  if not sb_internal._lock_table('sb_internal.message', '10 s') then
    perform sb_internal._raise('S3716', array['service ' || s.name, 'transactions that have touched messages'],
      'retry=when no receive waits and no handler runs')
       from sb_internal.service as s
      where s.service_id = _move_service.service_id;
  end if;
  perform sb_internal._raise('S9617', array[q.name], sb_internal._stopped_by(q.queue_id))
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
-- sqlgen:begin functions/internal/_new_broker.sql sha256:c2eee8b1ac46f53abf288af5f063ac3d6d0152019005093255dd75af5713ca96
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
  perform sb_internal._require_read_committed('new_broker');
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
-- sqlgen:begin functions/internal/_next_group.sql sha256:0fadc9719c4809b8cf98da3bfe6ae49cb11fa47e6ec7819f1cf3566b9ea58977
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
        floor((started + pause) * 1000)::bigint);  -- rounded up it would look like a bad day below
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
-- sqlgen:begin functions/internal/_next_group_of_level.sql sha256:c00283b97c0d06ad5b553b9ef23d8247f4cf57c88e86f8657a57f08cbe068fba
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
  stepped_to bigint := 9223372036854775807;
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
    -- An orphan, or a message with an old hint, says nothing about the group whose id it carries.
    if exists (
      select 1
        from sb_internal.endpoint as e
       where e.conversation_handle = candidate.conversation_handle
         and e.conversation_group_id is not distinct from candidate.conversation_group_id
         and e.state <> 'DO')
    then
      tried := tried || candidate.conversation_group_id;
    end if;
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
         and (m.conversation_group_id, m.queuing_order) > (stepped, stepped_to)
       order by m.conversation_group_id, m.queuing_order
       limit 1;
      if not found or wrapped and candidate.conversation_group_id > first_step then
        exit when wrapped;
        wrapped := true;
        stepped := '00000000-0000-0000-0000-000000000000';
        continue;
      end if;
      stepped := candidate.conversation_group_id;
      stepped_to := 9223372036854775807;
      continue when stepped = any (tried);
      conversation_group_id := sb_internal._claim(candidate.conversation_handle);
      if conversation_group_id is not null then
        conversation_handle := candidate.conversation_handle;
        found_at := candidate.queuing_order;
        exit;
      end if;
      -- An orphan, or a message with an old hint: there may be more behind it in the group whose id it carries.
      if not exists (
        select 1
          from sb_internal.endpoint as e
         where e.conversation_handle = candidate.conversation_handle
           and e.conversation_group_id is not distinct from stepped
           and e.state <> 'DO')
      then
        stepped_to := candidate.queuing_order;
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
-- sqlgen:begin functions/internal/_open_state_table.sql sha256:b82993953278f48b08e95a77694a69de41e357b8de06e1efc1b46d34d8cfb8b3
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
    -- The key makes every END in the database run the triggers of the table, in the session of whoever ends: they
    -- may leave a search_path or temporary tables behind there. So whose they are is for those to say whose code
    -- runs in the sessions of others anyway, as that of a validator does.
    perform sb_internal._require_admin(_open_state_table.caller, 'create state tables with drop_on_end');
    -- One at a time: rights on the one column come and go inside this transaction only.
    perform pg_advisory_xact_lock(8422, 0);
    execute format('grant references (conversation_group_id) on sb.conversation_group to %I', _open_state_table.caller);
  end if;
end
$$;
comment on function sb_internal._open_state_table(name, boolean) is
  'First step of create_state_table: lends the caller, who has to be an admin, REFERENCES on the group id. Waits for another create_state_table. Error 42501.';
revoke all on function sb_internal._open_state_table(name, boolean) from public;
-- sqlgen:end functions/internal/_open_state_table.sql
-- sqlgen:begin functions/internal/_poison_count.sql sha256:3792713a0144f49638caaa2e2e023d82773ad0b94ab9afe3b1d6550fad7fc861
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

    if counted = '{}' and not pg_is_in_recovery()
      and sb_internal._cell(_poison_count.queue_id, 'stamp') is distinct from sb_internal._stamp()
    then
      -- The ids were restored from a dump, or a crash or failover lies between.
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
-- sqlgen:begin functions/internal/_poison_disable.sql sha256:b9e2fd93555faab23cb69f487bf915f9fa98e5774469bec0ec556e70914f5c45
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
     set is_enabled = false,
         is_poison_disabled = true
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
-- sqlgen:begin functions/internal/_poison_record.sql sha256:f54abd5d13f27b0dcecd6ddc1300d73481d337ba0cf8c894c4e7ce77b6714f60
create or replace function sb_internal._poison_record(queue_id integer, is_alarm_off boolean default false)
  returns boolean
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
  previous bigint;
  rollbacks integer := 0;
  alarm bigint := 0::bigint;
  is_usual boolean;
  is_close boolean;
begin
  -- How many transactions ago, since an entry has only the low half of an id.
  previous := own - ((own - pg_sequence_last_value((cell || (position & 15))::regclass)) & 4294967295);
  if previous = own then
    return _poison_record.is_alarm_off;
  end if;
  if not _poison_record.is_alarm_off then
    alarm := coalesce(pg_sequence_last_value((cell || 'alarm')::regclass), 0);
  end if;
  -- Mostly the one before has committed and nothing is the matter.
  is_usual := alarm = 0 and previous >= 3 and pg_xact_status(previous::text::xid8) = 'committed';
  if is_usual is not true then
    rollbacks := sb_internal._poison_count(_poison_record.queue_id);
  end if;
  position := nextval((cell || 'position')::regclass);
  position := setval((cell || (position & 15))::regclass, (rollbacks::bigint << 32) | (own & 4294967295));
  if is_usual then
    return true;
  end if;

  -- This one counts, too, if it rolls back. It is written down first: of several at the same time, the last
  -- one sees the others.
  select sb_internal._poison_count(_poison_record.queue_id, true) >= b.poison_message_threshold
    into is_close
    from sb_internal.broker as b
   where b.singleton;
  alarm := coalesce(pg_sequence_last_value((cell || 'alarm')::regclass), 0);
  if alarm <> is_close::integer then
    perform setval((cell || 'alarm')::regclass, is_close::integer);
    -- From now on no receive may take the short way, which does not look at the alarm.
    perform setval(('sb_internal.queue_' || _poison_record.queue_id || '_search')::regclass, 0);
  end if;
  return not is_close;
end
$$;
comment on function sb_internal._poison_record(integer, boolean) is
  'Notes that this transaction received from the queue, with the count of rollbacks before it, and raises or lowers the alarm: raised, one more rollback may reach the limit. is_alarm_off: the caller has seen so. Returns whether it is known to be off now.';
revoke all on function sb_internal._poison_record(integer, boolean) from public;
-- sqlgen:end functions/internal/_poison_record.sql
-- sqlgen:begin functions/internal/_poison_reset.sql sha256:1048ba79188ead99384d48898739fb1739b56a3cbdf18e6fdbd45438fddebd83
create or replace function sb_internal._poison_reset(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- Whoever only looks leaves it to the next receive.
  if current_setting('transaction_read_only')::boolean then
    return;
  end if;
  for slot in 0..15 loop
    perform setval(('sb_internal.queue_' || _poison_reset.queue_id || '_poison_' || slot)::regclass, 0);
  end loop;
  perform setval(('sb_internal.queue_' || _poison_reset.queue_id || '_poison_alarm')::regclass, 0);
  perform setval(('sb_internal.queue_' || _poison_reset.queue_id || '_stamp')::regclass, sb_internal._stamp());
end
$$;
comment on function sb_internal._poison_reset(integer) is
  'Forgets the rollbacks counted for a queue. Takes effect at once and survives a rollback. In a read-only transaction it does nothing.';
revoke all on function sb_internal._poison_reset(integer) from public;
-- sqlgen:end functions/internal/_poison_reset.sql
-- sqlgen:begin functions/internal/_put_broker_priority.sql sha256:f3d2793d0de1dd3d1c6e51fad8cd18b517571be4ab2fdebd440960c9b9f53cec
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
      -- By name, so that one taken invisibly, under repeatable read, is 40001.
      on conflict on constraint conversation_priority_name_key do update
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
-- sqlgen:begin functions/internal/_raise.sql sha256:8d831a3ed0cc9568eac080bba39737dbae1a6932116f77e26f21f2f543f685f5
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
      _message := 'there is no activation procedure %s';
      _hint := 'pass schema.name of a function or procedure without arguments';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9614');
    when 'S9615' then
      _message := 'the message body is not valid for message type %s';
      _detail := concat_ws(' ', _detail, 'sql_server_number=9615');
    when 'S9617' then
      _message := 'queue %s is disabled';
      _hint := 'select sb.alter_queue(name, enabled => true); where poison message handling has stopped it, look first at the log for why';
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
      _hint := e'see the function''s comment: \\df+ or obj_description';
    when '42501' then
      _message := 'role %s may not %s';
      _hint := 'the owner of the object or an admin of sb grants rights; membership in a role is granted by whoever administers that role';
    when '42602' then
      _message := '%s name %s is not valid';
      _hint := 'use 1 to 128 characters, 256 for a remote service';
    when '42704' then
      _message := '%s %s does not exist';
      _hint := 'names are case-sensitive';
    when '42710' then
      _message := '%s %s already exists';
      _hint := 'pass if_not_exists => true to accept that';
    when '25001' then
      _message := '%s works in read committed transactions only, not in %s';
      _hint := 'it has to see what others commit while it waits; begin the transaction at read committed';
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
  -- A caller that passes too few arguments must not hide its own error behind one of format(). What it quotes may
  -- be an argument of any length.
  _message := left(format(_message, variadic _raise.args || array['?', '?', '?', '?']), 1000);
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
-- sqlgen:begin functions/internal/_receive.sql sha256:fad3a147cb8de2d989c0482072dfedbb5066e7c9da08568ee62ec762f2244867
-- Plans are made once a session, perhaps while the queue is empty: every statement here and in what it
-- calls probes an index, and the settings keep the planner from anything else. "is not distinct from" keeps
-- it from the index of groups where the handle says which row: by the plan both are one. jit: what the settings
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
      perform sb_internal._raise('S9617', array[q.name], sb_internal._stopped_by(q.queue_id));
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
      -- It may have waited long, and the queue may be another by now.
      q.is_retention_enabled := (
        select o.is_retention_enabled
          from sb_internal.queue as o
         where o.queue_id = q.queue_id);
      conversation := _receive.for_conversation;
    else
      if is_common and remaining = 1 and cardinality(q.priority_levels) = 1 and not q.is_retention_enabled then
        -- The common case in one go: one message wanted, of the first group from the start hint on that nobody
        -- holds. It says what _claim and _take say; everything unusual is left to them.
        hint := coalesce(pg_sequence_last_value(
          ('sb_internal.queue_' || q.queue_id || '_hint_' || q.priority_levels[1])::regclass), 0);
        found_at := hint - 1;
        for attempt in 1..3 loop
          begin
            -- lateral, so that whatever the plan each message asks for its own group only.
            select g.conversation_group_id, m.conversation_handle, m.queuing_order, m.message_sequence_number
              into held, conversation, found_at, lowest
              from (
                select n.conversation_group_id, n.conversation_handle, n.queuing_order, n.message_sequence_number
                  from sb_internal.message as n
                 where n.queue_id = q.queue_id
                   and n.priority = q.priority_levels[1]
                   and n.queuing_order > found_at
                 order by n.queuing_order
                 limit 100) as m
             cross join lateral (
                select c.conversation_group_id
                  from sb.conversation_group as c
                 where c.conversation_group_id = m.conversation_group_id
                   and not exists (
                     select 1
                       from sb_internal.group_backoff as b
                      where b.conversation_group_id = m.conversation_group_id
                        and b.not_before > clock_timestamp())
                 limit 1
                   for no key update skip locked) as g
             limit 1;
            exit when not found;
            lowest := case
              when lowest < 64 then -1
              else coalesce((
                select c.message_sequence_number
                  from sb_internal.receive_cursor as c
                 where c.conversation_handle = conversation
                 order by c.conversation_handle desc, c.message_sequence_number desc
                 limit 1), -1)
            end;
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
               and o.conversation_group_id is not distinct from held
               and o.state <> 'DO';
            if not found or e.is_due then
              -- A rival has taken it just now, or the group is another one by now; or a timer, whose turn _next_group
              -- knows.
              perform sb_internal._raise('SB003');
            end if;
            is_common := not e.is_unusual and q.system_names = 'documented';
            exit;
          exception
            when sqlstate 'SB003' then
              held := null;
          end;
        end loop;
        if held is not null and is_common then
          delete from sb_internal.message as n
           where n.ctid = e.ctid;
          if e.message_sequence_number - greatest(lowest, 0) >= 64 then
            perform sb_internal._advance_cursor(conversation, lowest, e.message_sequence_number + 1);
          end if;
          if q.is_poison_message_handling_enabled then
            -- Assigned: perform would be a statement more.
            is_common := sb_internal._poison_record(q.queue_id, true);
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
            from sb_internal._take_group(q.queue_id, held, q.priority_levels, remaining,
              q.is_retention_enabled, returned) as t;
        get diagnostics remaining = row_count;
        returned := returned + remaining;
      end if;
      if returned > 0 then
        if q.is_poison_message_handling_enabled then
          is_common := sb_internal._poison_record(q.queue_id);
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
-- sqlgen:begin functions/internal/_refresh_service_status.sql sha256:9072e64acd02c58276744ddab9d2311a6368e471606f78baafd35e2e2bb17ab7
create or replace function sb_internal._refresh_service_status()
  returns trigger
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  changed constant jsonb := to_jsonb(case when tg_op = 'DELETE' then old else new end);
  stale integer[];
begin
  stale := array(
    select s.service_id
      from sb_internal.service as s
     where case
             when tg_table_name = 'queue' then s.queue_id = (changed ->> 'queue_id')::integer
             when tg_table_name in ('service', 'service_contract') then s.service_id = (changed ->> 'service_id')::integer
             else true
           end);
  -- The poison limit switches a queue off without the catalog lock. Wait for such a rival here, and look at what it
  -- has left with the next statement: one that had looked before would write its own, old view.
  perform 1
     from sb_internal.service_status as t
    where t.service_id = any (stale)
    order by t.service_id
      for no key update;
  insert into sb_internal.service_status as t (service_id, queue_id, is_accepting, is_queue_enabled,
    is_retention_enabled, is_poison_watched, has_activation_event, queue_owner, receivers, service_name,
    service_owner, senders, contracts, broker_instance, has_priorities, is_local_only)
  select s.service_id, q.queue_id, b.is_broker_enabled and q.is_enabled, q.is_enabled, q.is_retention_enabled,
         q.is_poison_message_handling_enabled, q.has_activation_event, q.owner, q.receivers, s.name, s.owner, s.senders,
         array(
           select a.service_contract_id
             from sb_internal.service_contract as a
            where a.service_id = s.service_id
            order by a.service_contract_id),
         b.broker_instance, cardinality(b.priority_levels) > 1,
         coalesce((
           select bool_and(r.remote_service_name is null and r.broker_instance is null and r.lifetime is null
             and r.address = 'LOCAL')
             from sb_internal.route as r), false)
    from sb_internal.service as s
    join sb_internal.queue as q on q.queue_id = s.queue_id
   cross join sb_internal.broker as b
   where s.service_id = any (stale)
   order by s.service_id
  on conflict on constraint service_status_pkey do update
     set queue_id = excluded.queue_id, is_accepting = excluded.is_accepting,
         is_queue_enabled = excluded.is_queue_enabled, is_retention_enabled = excluded.is_retention_enabled,
         is_poison_watched = excluded.is_poison_watched, has_activation_event = excluded.has_activation_event,
         queue_owner = excluded.queue_owner, receivers = excluded.receivers, service_name = excluded.service_name,
         service_owner = excluded.service_owner, senders = excluded.senders, contracts = excluded.contracts,
         broker_instance = excluded.broker_instance, has_priorities = excluded.has_priorities,
         is_local_only = excluded.is_local_only;
  return null;
end
$$;
comment on function sb_internal._refresh_service_status() is
  'Trigger of the tables that service_status is made of: rewrites the rows concerned. Locks them, and so waits for a transaction in which the poison limit has switched a queue off; everybody else who writes one of the tables holds the catalog lock.';
revoke all on function sb_internal._refresh_service_status() from public;
-- sqlgen:end functions/internal/_refresh_service_status.sql
-- sqlgen:begin functions/internal/_require_read_committed.sql sha256:60cf8365ed4d22530103f91cf62f57765453643757f4b71d3a8ca8f0cd3e19ef
create or replace function sb_internal._require_read_committed(what text)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- Waiting for those who are at work is no use to whoever cannot see what they have done.
  if current_setting('transaction_isolation') <> 'read committed' then
    perform sb_internal._raise('25001', array[_require_read_committed.what, current_setting('transaction_isolation')]);
  end if;
end
$$;
comment on function sb_internal._require_read_committed(text) is
  'Error 25001 in a transaction above read committed, for verbs that have to see all conversations there are.';
revoke all on function sb_internal._require_read_committed(text) from public;
-- sqlgen:end functions/internal/_require_read_committed.sql
-- sqlgen:begin functions/internal/_require_run_as.sql sha256:6fe1781f7a6c802a96f984544c5ec44bc0aebaa34249fb28db3e94f2830447c4
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
  if not sb_internal._may_become(_require_run_as.caller, _require_run_as.role) then
    perform sb_internal._raise('42501', array[_require_run_as.caller::text,
      'let an activation procedure run as role ' || _require_run_as.role],
      case
        when (
          select r.rolsuper
            from pg_roles as r
           where r.rolname = _require_run_as.role)
        then 'reason=a superuser'
        else format('cure=grant %I to %I', _require_run_as.role, _require_run_as.caller)
      end);
  end if;
end
$$;
comment on function sb_internal._require_run_as(name, name) is
  'Who chooses what runs as a role must be able to SET ROLE to it, else an admin could act as anybody. Errors: S9613 no such role, 42501.';
revoke all on function sb_internal._require_run_as(name, name) from public;
-- sqlgen:end functions/internal/_require_run_as.sql
-- sqlgen:begin functions/internal/_retain_sent.sql sha256:52f34fd7b4292c3947b6f5f4551c295cb11b622ebaa1da544a34bed57eed6ccb
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
  'Keeps copies (status 3) of sent messages in the sender''s own queue (R-053).';
revoke all on function sb_internal._retain_sent(sb_internal.endpoint, integer, bigint, bytea[]) from public;
-- sqlgen:end functions/internal/_retain_sent.sql
-- sqlgen:begin functions/internal/_route.sql sha256:e86fe41ef7ca001bd7fd93b649cf33ad44aec0f99eec77d57f7763be2f54ae02
create or replace function sb_internal._route(service_name text, broker_instance text)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select r.address
      from sb_internal.route as r
      join sb_internal.broker as b on b.singleton
     where (r.remote_service_name is null or r.remote_service_name = _route.service_name)
       and (r.broker_instance is null or _route.broker_instance is null
         or r.broker_instance = _route.broker_instance)
       and (r.lifetime is null or r.lifetime > sb_internal._now())
       -- A wildcard route to LOCAL leads to this broker only.
       and (r.address <> 'LOCAL'
         or coalesce(r.broker_instance, _route.broker_instance, b.broker_instance::text) = b.broker_instance::text)
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
-- sqlgen:begin functions/internal/_run_validator.sql sha256:b0ad0ff2ad4ee32bc0109473cad10b0cc8030041f29de595aa68bf2903481459
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
      -- A validator that raises says no. That it was stopped or kept waiting, lacks a right, is not there or
      -- could do with a second try is not its verdict, which would end the conversation for good.
      when insufficient_privilege or undefined_function or invalid_schema_name or lock_not_available
        or transaction_rollback or operator_intervention or insufficient_resources or system_error or internal_error
      then
        raise;
      when others or assert_failure then
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
  'Runs a validator function on each body, with the rights and the search path of whoever sends; raising or null is no. What says nothing about the body (a cancel, a deadlock, a missing right or function …) is raised.';
revoke all on function sb_internal._run_validator(text, text, bytea[]) from public;
-- sqlgen:end functions/internal/_run_validator.sql
-- sqlgen:begin functions/internal/_send.sql sha256:b67de7fe444b581d67e912c1fa20ceaf93c9c741702bf3bd745e535a840cd76e
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
  target sb_internal.service_status;
  created record;
  single bytea;
  quantity integer := 1;
  last_sequence bigint;
  is_waiting boolean;
  is_new boolean := false;
  target_queue integer;
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
    exit when found;
    is_waiting := false;
    -- Begun in this very transaction, which is how most dialogs start: nobody else can see it yet, there is no
    -- peer to look at, and the service that it goes to cannot be dropped (_share_names). In a subtransaction the ids
    -- differ, and it goes the long way. Or not begun, but moved: the same holds.
    with counted as (
      insert into sb_internal.send_counter (conversation_handle, message_sequence_number)
      select b.conversation_handle, quantity - 1
        from sb_internal.endpoint as b
       where b.conversation_handle = _send.conversation_handle
         and b.xmin = pg_current_xact_id()::xid
         and b.is_initiator
         and current_setting('transaction_isolation') = 'read committed'
      returning send_counter.message_sequence_number)
    select h as endpoint, n.message_sequence_number, o.queue_owner, o.receivers, o.is_queue_enabled,
           o.is_retention_enabled, t.message_type_id, t.validation, t.is_sent_by_initiator as is_allowed,
           null::uuid as conversation_group_id, null::smallint as priority, null::text as peer_state,
           null::integer as queue_id, false as is_accepting, false as is_poison_watched, false as has_activation_event,
           exists (
             select 1
               from sb_internal.message as m
              where m.conversation_handle = h.conversation_handle
                and m.message_type_id in (1, 2)) as is_ended, null::integer as peer_service_id,
           o as own, d as target
      into c
      from counted as n
      join sb_internal.endpoint as h on h.conversation_handle = _send.conversation_handle
      join sb_internal.service_status as o on o.service_id = h.service_id
      left join sb_internal.service_status as d on d.service_name = h.far_service
      left join sb_internal.contract_message as t
        on t.service_contract_id = h.service_contract_id
       and t.message_type_name = _send.message_type;
    is_new := found;
    last_sequence := case
      when is_new then c.message_sequence_number
      else sb_internal._first_send(_send.conversation_handle, quantity)
    end;
    exit when last_sequence is not null;
  end loop;

  -- The common case in one statement, which says again what the rest of this function says step by step:
  -- one message for a queue that is on, with nothing to validate, retain or report.
  if last_sequence > 0 and quantity = 1 and not is_waiting then
    insert into sb_internal.message as n (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
      message_type_id, conversation_handle, conversation_group_id, priority, message_body)
    select nextval('sb_internal.queuing_order'), last_sequence, clock_timestamp(), d.queue_id,
           t.message_type_id, h.peer_handle, p.conversation_group_id, p.priority, single
      from sb_internal.endpoint as h
      join sb_internal.service_status as o on o.service_id = h.service_id
      join sb_internal.contract_message as t
        on t.service_contract_id = h.service_contract_id
       and t.message_type_name = _send.message_type
      join sb_internal.endpoint as p on p.conversation_handle = h.peer_handle
      join sb_internal.service_status as d on d.service_id = p.service_id
     where h.conversation_handle = _send.conversation_handle
       and h.state = 'CO'
       and (h.lifetime is null or h.lifetime > clock_timestamp())
       and (_send.caller = o.queue_owner or _send.caller = any (o.receivers)
         or sb_internal._may(_send.caller, o.queue_owner, o.receivers))
       and not o.is_retention_enabled
       and case when h.is_initiator then t.is_sent_by_initiator else t.is_sent_by_target end
       and (t.validation = 'NONE' or _send.is_validated)
       and current_setting('transaction_isolation') = 'read committed'
       and p.state <> 'DO'
       and d.is_accepting
       and not d.has_activation_event
       and (not d.is_poison_watched
         or pg_sequence_last_value(('sb_internal.queue_' || d.queue_id || '_poison_alarm')::regclass)
           is distinct from 1)
       and not exists (
         select 1
           from sb_internal.message as m
          where m.conversation_handle = h.conversation_handle
            and m.message_type_id in (1, 2))
    returning n.queue_id
      into target_queue;
    if found then
      -- As _wake, on the hot path.
      if not (pg_try_advisory_lock(8420, target_queue) and pg_advisory_unlock(8420, target_queue)) then
        perform pg_notify('sb_queue_' || target_queue, '');
      end if;
      return null;
    end if;
  end if;

  -- All that SEND has to know, one index probe each. Touching message here also holds off
  -- alter_service, which moves messages to another queue, until this transaction has ended.
  if not is_new then
    select h as endpoint, o.queue_owner, o.receivers, o.is_queue_enabled, o.is_retention_enabled,
           t.message_type_id, t.validation,
           case when h.is_initiator then t.is_sent_by_initiator else t.is_sent_by_target end as is_allowed,
           p.conversation_group_id, p.priority, p.state as peer_state,
           d.queue_id, d.is_accepting, d.is_poison_watched, d.has_activation_event,
           exists (
             select 1
               from sb_internal.message as m
              where m.conversation_handle = h.conversation_handle
                and m.message_type_id in (1, 2)) as is_ended, p.service_id as peer_service_id,
           o as own, null::sb_internal.service_status as target
      into c
      from sb_internal.endpoint as h
      join sb_internal.service_status as o on o.service_id = h.service_id
      left join sb_internal.contract_message as t
        on t.service_contract_id = h.service_contract_id
       and t.message_type_name = _send.message_type
      left join sb_internal.endpoint as p on p.conversation_handle = h.peer_handle
      left join sb_internal.service_status as d on d.service_id = p.service_id
     where h.conversation_handle = _send.conversation_handle;
  end if;
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
    -- An assignment: a function in FROM costs as much again as this one.
    target := case when is_new then c.target else sb_internal._find_target(e.far_service) end;
    created := sb_internal._create_target(e, c.own, target);
    if created.outcome = 'error' then
      return null;
    end if;
    is_direct := created.outcome = 'created';
    c.conversation_group_id := e.peer_handle;
    c.priority := created.priority;
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
  perform sb_internal._hold_service(c.peer_service_id);
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
-- sqlgen:begin functions/internal/_send_event.sql sha256:f8cceb2f3fd5f25b40abb3fd98c36bebae167a2b75f23995d08de0ef199bccc5
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
      n.conversation_handle := sb_internal._create_endpoint(gen_random_uuid(), gen_random_uuid(), null, 2, 2, true,
        n.to_service, n.broker_instance, null, sb_internal._priority(2, 2, n.to_service));
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
-- sqlgen:begin functions/internal/_set_state.sql sha256:2e27cd898ee7f764e7a3f69e2986522f6a4759e93d3bc004c467994cdd1b9f8b
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
  loop
    perform 1
       from sb.conversation_group as g
      where g.conversation_group_id = _set_state.conversation_group_id
        for no key update;
    -- The group that we waited for may have gone, and another one with its id be there: that one, then.
    exit when found or not exists (
      select 1
        from sb.conversation_group as g
       where g.conversation_group_id = _set_state.conversation_group_id);
  end loop;
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
  'sb.set_state with the caller''s rights checked.';
revoke all on function sb_internal._set_state(name, uuid, jsonb) from public;
-- sqlgen:end functions/internal/_set_state.sql
-- sqlgen:begin functions/internal/_share_names.sql sha256:5062ee703062497ca9e1236cdba004a93a3458e6c0b5608dcfc28cf379be76a8
create or replace function sb_internal._share_names(service text, contract text, far_service text default null)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- Rather than the rows: key share locks of many transactions on one row make a multixact of each of them,
  -- which cost a fifth of begin_dialog with its first send.
  return current_setting('transaction_isolation') <> 'read committed'
    or pg_advisory_xact_lock_shared(8423, hashtext(_share_names.service)) is null
    or pg_advisory_xact_lock_shared(8424, hashtext(_share_names.contract)) is null
      and _share_names.contract is not null
    or pg_advisory_xact_lock_shared(8423, hashtext(_share_names.far_service)) is null
      and _share_names.far_service is not null;
end
$$;
comment on function sb_internal._share_names(text, text, text) is
  'Keeps a service, a contract (null: none) and another service (null: none) from being dropped to the end of the transaction, see _lock_conversations; look them up afterwards. Returns true where that is not enough, having locked nothing: above read committed the look may be older than the lock, and the caller locks the rows for share, which fails (40001) when they are gone.';
revoke all on function sb_internal._share_names(text, text, text) from public;
-- sqlgen:end functions/internal/_share_names.sql
-- sqlgen:begin functions/internal/_stamp.sql sha256:be97657c1a12826d4e964a028b804ad474c0229bb690ee2376f2731c6f34261f
-- Rollbacks are only counted where, and as long as, they can be somebody's fault. A crash rolls back whoever is
-- receiving at that moment, and leaves sequences up to 32 ahead, so that the ring of a queue is turned; so does a standby
-- that takes over. What PostgreSQL forgets in both cases, but not in an orderly restart, is its statistics:
-- that of the archiver, which otherwise nobody resets, says since when it has been counting.
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
    select (hashtextextended(concat_ws('/', c.system_identifier, d.oid, 'sb_internal.message'::regclass::oid,
              extract(epoch from a.stats_reset)), 0)
            & 9223372036854775807)
      from pg_control_system() as c
     cross join pg_stat_archiver as a
      join pg_database as d on d.datname = current_database());
end
$$;
comment on function sb_internal._stamp() is
  'Identity of this copy of the broker: cluster, database, message table, and the time since the last crash or failover. Reads the control file (some 20 µs) and a statistic: for rare paths only.';
revoke all on function sb_internal._stamp() from public;
-- sqlgen:end functions/internal/_stamp.sql
-- sqlgen:begin functions/internal/_stop_messaging.sql sha256:13e08f07266ad55dc565a28349dc9a04064f15ec2e051ce19fd047ea0ec4bb35
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
declare
  give_up_at timestamptz := clock_timestamp() + nullif(current_setting('lock_timeout'), '0')::interval;  -- null: never
begin
  for attempt in 1..100 loop
    begin
      lock table sb.conversation_group, sb_internal.endpoint, sb_internal.send_counter, sb_internal.message,
        sb_internal.transmission, sb_internal.due, sb_internal.event_notification in exclusive mode nowait;
      return;
    exception
      when lock_not_available then
        exit when clock_timestamp() >= give_up_at;
        perform pg_sleep(0.05);
    end;
  end loop;
  -- Too busy to find a gap: stand in line. Whoever then waits for us while we wait for him has to retry.
  lock table sb.conversation_group, sb_internal.endpoint, sb_internal.send_counter, sb_internal.message,
    sb_internal.transmission, sb_internal.due, sb_internal.event_notification in exclusive mode;
end
$$;
comment on function sb_internal._stop_messaging() is
  'Waits until no other transaction uses a messaging verb and keeps them waiting until this one ends, as ALTER DATABASE wants the database for itself (R-123). Reading goes on. After 5 s without a gap, or lock_timeout, it waits in line, and may then be part of a deadlock.';
revoke all on function sb_internal._stop_messaging() from public;
-- sqlgen:end functions/internal/_stop_messaging.sql
-- sqlgen:begin functions/internal/_stopped_by.sql sha256:ca804bcb5e7fbd0bd312c8e0d8834c9328fdb961fbe80a0e58a8afba21dd60db
create or replace function sb_internal._stopped_by(queue_id integer)
  returns text
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    -- One that is off although it is switched on has reached its poison limit; nobody has written that down yet.
    select 'stopped_by=' || case when q.is_poison_disabled or q.is_enabled then 'poison_message_handling' else 'alter_queue' end
      from sb_internal.queue as q
     where q.queue_id = _stopped_by.queue_id);
end
$$;
comment on function sb_internal._stopped_by(integer) is
  'What has switched off a queue that is off, as a detail for S9617.';
revoke all on function sb_internal._stopped_by(integer) from public;
-- sqlgen:end functions/internal/_stopped_by.sql
-- sqlgen:begin functions/internal/_sync_all_privileges.sql sha256:e707713f9315bec87d734ca8c70a3f1d84839e9b56eba42082ccb97ae7383ff8
create or replace function sb_internal._sync_all_privileges()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._sync_privileges(array(
    select unnest(b.admins) from sb_internal.broker as b
     union
    select t.owner from sb_internal.message_type as t
     union
    select unnest(c.referencers || c.owner) from sb_internal.contract as c
     union
    select unnest(q.receivers || q.owner) from sb_internal.queue as q
     union
    select unnest(s.senders || s.owner) from sb_internal.service as s
     union
    select r.owner from sb_internal.route as r));
end
$$;
comment on function sb_internal._sync_all_privileges() is
  'Turns what the catalog says of each role it names into privileges: for new functions and views, and after a restore without them. The caller holds the catalog lock.';
revoke all on function sb_internal._sync_all_privileges() from public;
-- sqlgen:end functions/internal/_sync_all_privileges.sql
-- sqlgen:begin functions/internal/_take_group.sql sha256:fea982019e5bf20f2c7f8b12bf3ce09855a1d7fc179412044a724da1c031c737
create or replace function sb_internal._take_group(
  queue_id integer,
  group_id uuid,
  priority_levels smallint[],
  max_messages bigint,
  is_retained boolean,
  taken_before bigint
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
  total bigint := _take_group.taken_before;
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
           and e.conversation_group_id is not distinct from _take_group.group_id);
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
       cross join lateral (
         select 1
           from sb_internal.message as m
          where m.conversation_handle = e.conversation_handle
          limit 1) as m
       where e.conversation_group_id = _take_group.group_id
         and e.state <> 'DO'
       order by e.priority desc
    loop
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
comment on function sb_internal._take_group(integer, uuid, smallint[], bigint, boolean, bigint) is
  'Takes what a group has ready, at most max_messages: conversations by priority, whole ones one after another (R-179). taken_before: how many the caller has taken from it already. The caller holds the group lock.';
revoke all on function sb_internal._take_group(integer, uuid, smallint[], bigint, boolean, bigint) from public;
-- sqlgen:end functions/internal/_take_group.sql
-- sqlgen:begin functions/internal/_tie_loose_ends.sql sha256:25ac863408c3dddf38197fe73194f9556aafaafc379185de820a5e60cdded023
create or replace function sb_internal._tie_loose_ends()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
as $$
declare
  l sb_internal.loose_end;
  e sb_internal.endpoint;
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    return;
  end if;
  for l in
    select o.*
      from sb_internal.loose_end as o
     order by o.loose_end_id
     limit 10000
       for update skip locked
  loop
    -- Those who have the conversation or the group at work come first: another time.
    perform 1
       from sb.conversation_group as g
      where g.conversation_group_id = l.conversation_group_id
        for no key update skip locked;
    continue when not found and exists (
      select 1
        from sb.conversation_group as g
       where g.conversation_group_id = l.conversation_group_id);
    select o.*
      into e
      from sb_internal.endpoint as o
     where o.conversation_handle = l.conversation_handle
       and o.state <> 'DO';
    if found then
      -- Moved, and perhaps once more since.
      perform 1
         from sb.conversation_group as g
        where g.conversation_group_id = e.conversation_group_id
          for no key update skip locked;
      continue when not found;
      update sb_internal.due as d
         set conversation_group_id = o.conversation_group_id
        from sb_internal.endpoint as o
       where o.conversation_handle = l.conversation_handle
         and d.conversation_handle = l.conversation_handle
         and d.conversation_group_id <> o.conversation_group_id;
      update sb_internal.retained_message as r
         set conversation_group_id = o.conversation_group_id
        from sb_internal.endpoint as o
       where o.conversation_handle = l.conversation_handle
         and r.conversation_handle = l.conversation_handle
         and r.conversation_group_id <> o.conversation_group_id;
    else
      delete from sb_internal.due as d
       where d.conversation_handle = l.conversation_handle;
      delete from sb_internal.retained_message as r
       where r.conversation_handle = l.conversation_handle;
      delete from sb_internal.receive_cursor as c
       where c.conversation_handle = l.conversation_handle;
    end if;
    perform sb_internal._leave_group(l.conversation_handle, l.conversation_group_id);
    delete from sb_internal.loose_end as o
     where o.loose_end_id = l.loose_end_id;
  end loop;
end
$$;
comment on function sb_internal._tie_loose_ends() is
  'Does for conversations that were ended or moved above read committed what those transactions could not: deletes or moves the rows that they did not see, and removes groups that are empty. Waits for nobody; at most 10000 a call.';
revoke all on function sb_internal._tie_loose_ends() from public;
-- sqlgen:end functions/internal/_tie_loose_ends.sql
-- sqlgen:begin functions/internal/_xml_decode.sql sha256:9f5f785809143a9502925d3ca633e3e7a1212d7dfbf0a40280bc3ff73f2638d3
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
  _has_mark boolean := substr(_xml_decode.body, 1, 3) = e'\\xefbbbf'::bytea;
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
          substring(_declaration from $re$encoding[ \t\r\n]*=[ \t\r\n]*["']([^"']+)$re$), _encoding
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
-- sqlgen:begin functions/body/body_xml.sql sha256:6496290f4029f7b5d094edcda02365ce880434987135fa009f940cefd15848d2
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
    when substr(body_xml.message_body, 1, 3) = e'\\xefbbbf'::bytea
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
        substring(_declaration from $re$encoding[ \t\r\n]*=[ \t\r\n]*["']([^"']+)$re$), _encoding
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
-- sqlgen:begin functions/body/error_code.sql sha256:f18472905572de6a77b8c88339cdd179da5e1536665340d0f31ae4ed6024c322
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
    when substr(error_code.message_body, 1, 3) = e'\\xefbbbf'::bytea
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
-- sqlgen:begin functions/body/error_description.sql sha256:1d39568c45dfb25c9d48d21a78f559da92db6e354c70eb3f47d1a056ad4c8d29
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
    when substr(error_description.message_body, 1, 3) = e'\\xefbbbf'::bytea
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
-- sqlgen:begin functions/state/create_state_table.sql sha256:d5279516b2eb3694f220f4e6fd35add44acae10e48fe94b29763621ca1cff8ee
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
  'Creates table_name (an SQL name, optionally qualified and quoted) with the key conversation_group_id and the given further columns, with the caller''s rights and owned by the caller. With drop_on_end the key references the group with on delete cascade, so that a group''s row goes when its last conversation ends; for admins only, since END then waits for locks on the table and runs its triggers, whoever ends. Rights on it are ordinary table rights. Errors: SB002, 42501 and those of create table.';
revoke all on function sb.create_state_table(text, text, boolean, boolean) from public;
-- sqlgen:end functions/state/create_state_table.sql
-- sqlgen:begin functions/admin/after_restore.sql sha256:f48e4787298546273eca4daa113aebf08f23c25e60fbe03f2ed0cef1b49776dd
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
  'To be called after a data-only restore, a restore without owners or privileges, or a logical failover: forgets search hints and poison counts, which were written in another place, puts the queuing order behind every message, gives the system objects to the owner of sb, and grants anew what the catalog says of roles. For admins. Locks: the catalog.';
revoke all on function sb.after_restore() from public;
-- sqlgen:end functions/admin/after_restore.sql
-- sqlgen:begin functions/admin/error_broker_conversations.sql sha256:2e7c557062f0b5591af7437f95596044fba6f0c25f6557983b176b28d2c7e98e
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
  'ALTER DATABASE SET ERROR_BROKER_CONVERSATIONS: every conversation gets an Error -9719 and is to be ended by its application; the broker is enabled and keeps its instance (R-121). Admins only. Errors: 42501, 25001 above read committed. Locks: the catalog, then all messaging tables: waits until no transaction uses them and holds off new ones until commit.';
revoke all on function sb.error_broker_conversations() from public;
-- sqlgen:end functions/admin/error_broker_conversations.sql
-- sqlgen:begin functions/admin/maintain.sql sha256:ee17c146a55efff8a90ba2230c4bf2361d085875c1a8fbc780e18f62eb3b57e7
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
  'Housekeeping, bounded and never needed for correctness: removes orphaned messages, what conversations ended above read committed have left (in read committed only), and leftovers of dropped queues, delivers what can be delivered, writes down reached poison limits, repeats activation events, drops roles that no longer exist from the access lists. Skips what is locked. For admins; call it about once a minute (the activator does).';
revoke all on function sb.maintain() from public;
-- sqlgen:end functions/admin/maintain.sql
-- sqlgen:begin functions/activation/_activation_plan.sql sha256:0740e95b9937df968fccc2f9d486d3d297366fb82ec5e0f6ccd200485aeb9b90
create or replace function sb_internal._activation_plan(caller name, queue_names text[])
  returns table (queue_id integer, queue_name text, is_on boolean, max_readers integer, surplus_readers integer,
    procedure_name text, procedure_version text, is_procedure boolean, statement text, execute_as name,
    may_become boolean)
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
           q.execute_as,
           q.execute_as is null or coalesce((
             select sb_internal._may_become(_activation_plan.caller, r.rolname)
               from pg_roles as r
              where r.rolname = q.execute_as), false)
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
-- sqlgen:begin functions/activation/_excuse_reader.sql sha256:9e4e491e9e53e471e21f58d3f37fc1bc450864e320465b028fd26e521982ad14
-- What counts a rollback is the transaction's id in the ring of the queue (see _poison_record). An entry that says
-- the same as the one before it is passed over, so a copy of that one makes the rollback of its owner count for nothing.
create or replace function sb_internal._excuse_reader(caller name, queue_id integer, pid integer)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  own bigint;
  position bigint;
  cell text;
  before text;
  found_own boolean := false;
begin
  perform sb_internal._require_admin(_excuse_reader.caller, 'run an activator');
  select l.transactionid::text::bigint
    into own
    from pg_locks as l
   where l.locktype = 'transactionid'
     and l.pid = _excuse_reader.pid
     and l.mode = 'ExclusiveLock'
     and l.granted
   order by age(l.transactionid) desc -- before those of its subtransactions
   limit 1;
  position := sb_internal._cell(_excuse_reader.queue_id, 'poison_position');
  if own is null or position is null then
    return false;
  end if;
  -- From the oldest on: the one after may be a copy already.
  for age in reverse 15..0 loop
    cell := 'poison_' || ((position - age) & 15);
    before := 'poison_' || ((position - age - 1) & 15);
    if sb_internal._cell(_excuse_reader.queue_id, cell) & 4294967295 = own then
      -- The oldest has nothing before it but the newest.
      perform setval(('sb_internal.queue_' || _excuse_reader.queue_id || '_' || cell)::regclass,
        case when age = 15 then 0 else coalesce(sb_internal._cell(_excuse_reader.queue_id, before), 0) end);
      found_own := true;
    end if;
  end loop;
  return found_own;
end
$$;
comment on function sb_internal._excuse_reader(name, integer, integer) is
  'An exception from poison counting, behind sb.excuse_reader.';
revoke all on function sb_internal._excuse_reader(name, integer, integer) from public;
-- sqlgen:end functions/activation/_excuse_reader.sql
-- sqlgen:begin functions/activation/_probe_queue.sql sha256:1287b28b77803eb1a0e662d8df3f533509d6f55183a13ad6b934c6238905a62b
create or replace function sb_internal._probe_queue(
  caller name,
  queue_id integer,
  out head bigint,
  out receives bigint,
  out waited double precision
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
  first_order bigint;
  enqueued_at timestamptz;
  due_at timestamptz;
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
    select m.queuing_order, m.message_enqueue_time
      into first_order, enqueued_at
      from sb_internal.message as m
     where m.conversation_handle = conversation
     order by m.message_sequence_number
     limit 1;
    select min(d.due_at)
      into due_at
      from sb_internal.due as d
     where d.conversation_handle = conversation
       and d.due_at <= sb_internal._now();
    head := hashtextextended(concat_ws(' ', conversation, coalesce(first_order, 0), due_at), 0);
    waited := extract(epoch from sb_internal._now() - least(enqueued_at, due_at))::double precision;
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
-- sqlgen:begin functions/activation/_take_reader.sql sha256:a78ac9589ce0073aa5b24df688a2200e1c98e43979e293bc104697e1c67f9980
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
  is_admin boolean;
begin
  -- Asked before every receive, so the usual answers first: the owner of sb, and so of this function, or by name.
  select coalesce(least(q.max_readers, _take_reader.max_readers), 1),
         _take_reader.caller = current_user or _take_reader.caller = any (b.admins)
    into slots, is_admin
    from sb_internal.queue as q
   cross join sb_internal.broker as b
   where q.queue_id = _take_reader.queue_id;
  if is_admin is not true then
    perform sb_internal._require_admin(_take_reader.caller, 'take a reader slot');
  end if;
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
-- sqlgen:begin functions/activation/activation_plan.sql sha256:3c690631352773e19c64a903ca32a63083a4f3cf929f7877715c716b112cdfc0
create or replace function sb.activation_plan(queue_names text[] default '{}')
  returns table (queue_id integer, queue_name text, is_on boolean, max_readers integer, surplus_readers integer,
    procedure_name text, procedure_version text, is_procedure boolean, statement text, execute_as name,
    may_become boolean)
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select p.queue_id, p.queue_name, p.is_on, p.max_readers, p.surplus_readers, p.procedure_name,
         p.procedure_version, p.is_procedure, p.statement, p.execute_as, p.may_become
    from sb_internal._activation_plan(current_user, activation_plan.queue_names) as p;
end;
comment on function sb.activation_plan(text[]) is
  'For activators: the queues with activation switched on, and those named, which have handlers of the activator''s own (procedure columns null unless activation is on too). statement runs the activation procedure and is null when that does not exist; may_become says whether the caller may SET ROLE to execute_as; procedure_version changes when it is replaced; surplus_readers counts readers that a lowered max_queue_readers left over (R-048). Admins only. Locks: none.';
revoke all on function sb.activation_plan(text[]) from public;
-- sqlgen:end functions/activation/activation_plan.sql
-- sqlgen:begin functions/activation/excuse_reader.sql sha256:617047dfbc31c1ab0950fc51cec0a16eef2574de8f0098adf8700f2a8b6b76c8
create or replace function sb.excuse_reader(queue_id integer, pid integer)
  returns boolean
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._excuse_reader(current_user, excuse_reader.queue_id, excuse_reader.pid);
end;
comment on function sb.excuse_reader(integer, integer) is
  'For activators that end, or whose handler cannot work: the transaction that the session with this process id is in, and has received in, does not count for the poison limit of the queue when it is rolled back; true when there is one. To be called while it is still open. Takes effect at once and survives a rollback. Admins only. Locks nothing.';
revoke all on function sb.excuse_reader(integer, integer) from public;
-- sqlgen:end functions/activation/excuse_reader.sql
-- sqlgen:begin functions/activation/probe_queue.sql sha256:cd7b9a5a438afde87221fd0369357fd97a7470ede2cf216a905729945924547b
create or replace function sb.probe_queue(queue_id integer, out head bigint, out receives bigint,
  out waited double precision)
  returns record
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select p.head, p.receives, p.waited
    from sb_internal._probe_queue(current_user, probe_queue.queue_id) as p;
end;
comment on function sb.probe_queue(integer) is
  'For activators: head is null when a receive would get nothing now (empty, off, all groups held or in back-off), else a number that stands for the message it would begin with: the same number again means that nobody has received that message. receives is the counter of activation_scan, null while poison handling is off. waited is for how many seconds that message has been there, or its timer due. Takes nothing and holds nothing. Admins only. Locks: a group, given back at once.';
revoke all on function sb.probe_queue(integer) from public;
-- sqlgen:end functions/activation/probe_queue.sql
-- sqlgen:begin views/broker.sql sha256:85fc68a89c9a3d709895b13565a6fbe1762c08b03222834211d380c7d1157420
create or replace view sb.broker
  with (security_barrier = true)
as
select b.broker_instance,
       b.is_broker_enabled,
       b.is_honor_broker_priority_on,
       (select pg_catalog.max(m.version)
          from sb_internal.meta as m) as schema_version,
       b.admins
  from sb_internal.broker as b;
comment on view sb.broker is
  'The broker of this database, one row: its instance, by which routes and dialogs name it, and its switches, and the roles that sb.grant_admin has made admins.';
-- sqlgen:end views/broker.sql
-- sqlgen:begin views/conversation_endpoints.sql sha256:13f2beeef4db2086fa920bfed3528c39466404af75d7bef82d444bd386a10efd
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
          limit 1), (
         -- A side in DO counts no more; the end it sent is the last of what waits.
         select pg_catalog.max(t.message_sequence_number) + 1
           from sb_internal.transmission as t
          where t.conversation_handle = e.conversation_handle), 0) as send_sequence,
       e.service_id < 65536 as is_system,
       e.priority
  from sb_internal.endpoint as e
  join sb_internal.service as s on s.service_id = e.service_id
 cross join lateral sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle) as x (state)
 where s.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.conversation_endpoints is
  'Both sides of conversations, each with the handle that its side uses; of services whose queue the reader may receive from. conversation_id is what the two sides share. state is SO, CO, DI, DO or ER as it holds now, also when the end is still unread or the lifetime has just passed. send_sequence is the next number to be sent, dialog_timer when the timer is due.';
-- sqlgen:end views/conversation_endpoints.sql
-- sqlgen:begin views/service_queues.sql sha256:0a96fedecbd73b5f93181b97ceab9af7ffd36d4df44d82b252a3f298beb597f3
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
       pg_catalog.to_regrole(pg_catalog.quote_ident(q.owner))::oid::integer as principal_id,
       q.is_poison_disabled
         or q.is_enabled and q.queue_id <> all ((select sb_internal._queues_on())::integer[]) as is_poison_disabled
  from sb_internal.queue as q
 where q.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.service_queues is
  'Queues that the reader owns or may receive from. is_receive_enabled and is_enqueue_enabled go together (R-050) and are false as soon as the poison limit is reached, also before that is written down; is_poison_disabled tells those from queues that were stopped by hand, until they are started again.';
-- sqlgen:end views/service_queues.sql
-- sqlgen:begin triggers/service_status_of_contracts.sql sha256:fcc903b4d067b8a7062c239a8f67f79ec65f4351525323a9997bcb0012b9259b
create or replace trigger service_contract_status
  after insert or delete on sb_internal.service_contract
  for each row execute function sb_internal._refresh_service_status();
-- sqlgen:end triggers/service_status_of_contracts.sql
-- sqlgen:begin triggers/service_status_of_routes.sql sha256:c820a3b3468dc1efa5a7e811b0ddfb5285f148fa506370d83d45e936b5c4321f
create or replace trigger route_status
  after insert or update or delete on sb_internal.route
  for each row execute function sb_internal._refresh_service_status();
-- sqlgen:end triggers/service_status_of_routes.sql
-- sqlgen:begin grants/grants.sql sha256:c517f362e6788c01300b48ab9f7d1cab138c677a3ddefc777b27d4d2dca46037
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
  perform sb_internal._sync_all_privileges();
end
$$;
-- sqlgen:end grants/grants.sql
-- sqlgen:drop functions/internal/_begin.sql
-- sqlgen:drop functions/internal/_json_decode.sql
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
insert into sb_internal.meta(version, name) values (3, 'v0_2');
-- sqlgen:done

-- Fills the new columns.
update sb_internal.broker as b
   set singleton = b.singleton;
alter table sb_internal.service_status
  alter column service_name set not null,
  alter column service_owner set not null,
  alter column senders set not null,
  alter column contracts set not null,
  alter column broker_instance set not null,
  alter column has_priorities set not null,
  alter column is_local_only set not null,
  add constraint service_status_service_name_key unique (service_name);
