set local lock_timeout = '10s';

-- sqlgen:generated from sql/ by sqlgen snapshot: edits between here and sqlgen:done are lost
-- sqlgen:begin functions/internal/_accept_contracts.sql sha256:cf4c58a5f00021d2d2b71fa643d9cb2354fc87f50f716240ade1bbf0597fd761
create or replace function sb_internal._accept_contracts(caller name, service_id integer, contracts text[])
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  contract record;
begin
  for contract in
    select a.name, c.id, c.owner, c.acl, count(*) over (partition by c.id) as times
      from unnest(_accept_contracts.contracts) as a (name)
     cross join lateral sb_internal._lookup('contract', a.name) as c
  loop
    if contract.times > 1 then
      perform sb_internal._raise('S8404', array[contract.name]);
    end if;
    if not sb_internal._may(_accept_contracts.caller, contract.owner, contract.acl) then
      perform sb_internal._raise('42501', array[_accept_contracts.caller::text, 'use contract ' || contract.name]);
    end if;
    insert into sb_internal.service_contract (service_id, service_contract_id)
    values (_accept_contracts.service_id, contract.id)
        on conflict on constraint service_contract_pkey do nothing;
    if not found then
      perform sb_internal._raise('42710', array['contract of this service', contract.name],
        'service_id=' || _accept_contracts.service_id);
    end if;
  end loop;
end
$$;
comment on function sb_internal._accept_contracts(name, integer, text[]) is
  'Adds to the contracts that a service accepts as target. Errors: 42704, 42501 no right to reference one, S8404 listed twice, 42710 accepted already.';
revoke all on function sb_internal._accept_contracts(name, integer, text[]) from public;
-- sqlgen:end functions/internal/_accept_contracts.sql
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
-- sqlgen:begin functions/internal/_add_priority_level.sql sha256:40890608322acf1326bc4bd69aaaf45fcdd8c09d5b5fae16282dea51831d9435
create or replace function sb_internal._add_priority_level(priority_level integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  update sb_internal.broker as b
     set priority_levels = (
           select array_agg(p.level order by p.level desc)
             from unnest(b.priority_levels || _add_priority_level.priority_level::smallint) as p (level))
   where b.singleton
     and _add_priority_level.priority_level <> all (b.priority_levels);
  if found then
    perform sb_internal._queue_sequences(q.queue_id)
       from sb_internal.queue as q
      order by q.queue_id;
  end if;
end
$$;
comment on function sb_internal._add_priority_level(integer) is
  'Makes a priority one that receive looks for, in every queue. Levels are never removed: endpoints may have them.';
revoke all on function sb_internal._add_priority_level(integer) from public;
-- sqlgen:end functions/internal/_add_priority_level.sql
-- sqlgen:begin functions/internal/_advance_cursor.sql sha256:3887390978003c18198727fc08ffa0178ba327c8535dcd6240ea5bd133dd5a16
create or replace function sb_internal._advance_cursor(
  conversation_handle uuid,
  previous bigint,
  next bigint
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  update sb_internal.receive_cursor as c
     set message_sequence_number = _advance_cursor.next
   where c.conversation_handle = _advance_cursor.conversation_handle
     and c.message_sequence_number = _advance_cursor.previous;
  if not found then
    insert into sb_internal.receive_cursor (conversation_handle, message_sequence_number)
    values (_advance_cursor.conversation_handle, _advance_cursor.next);
  end if;
end
$$;
comment on function sb_internal._advance_cursor(uuid, bigint, bigint) is
  'Moves the receive cursor of a conversation on; previous: where it was, anything when there was none. The caller holds the group lock.';
revoke all on function sb_internal._advance_cursor(uuid, bigint, bigint) from public;
-- sqlgen:end functions/internal/_advance_cursor.sql
-- sqlgen:begin functions/internal/_advance_hint.sql sha256:1e05dfcd31181e18c10e34177ea4983d8916d8b5b7b11db1b322714e12af0b58
create or replace function sb_internal._advance_hint(
  queue_id integer,
  level smallint,
  found_at bigint
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  cell constant regclass :=
    ('sb_internal.queue_' || _advance_hint.queue_id || '_hint_' || _advance_hint.level)::regclass;
  hint bigint := coalesce(pg_sequence_last_value(cell), 0);
begin
  -- Forward in strides (a write costs WAL and a lock), back as far as a full search saw need.
  if _advance_hint.found_at - 128 > hint or _advance_hint.found_at < hint then
    perform setval(cell, _advance_hint.found_at);
  end if;
end
$$;
comment on function sb_internal._advance_hint(integer, smallint, bigint) is
  'Remembers where the last group that could be locked was found.';
revoke all on function sb_internal._advance_hint(integer, smallint, bigint) from public;
-- sqlgen:end functions/internal/_advance_hint.sql
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
-- sqlgen:begin functions/internal/_alter_broker_priority.sql sha256:0ca7bec8057caef9592a040acd639f0ecc03b177e8e46871e62651e285eefd31
create or replace function sb_internal._alter_broker_priority(
  caller name,
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
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
begin
  perform sb_internal._require_admin(_alter_broker_priority.caller, 'alter broker priorities');
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('broker priority', _alter_broker_priority.name);
  if num_nonnulls(_alter_broker_priority.contract_name, _alter_broker_priority.local_service_name,
    _alter_broker_priority.remote_service_name, _alter_broker_priority.priority_level) = 0
  then
    perform sb_internal._raise('22023', array['nothing to change for broker priority ' || _alter_broker_priority.name]);
  end if;
  perform sb_internal._put_broker_priority(object.id, _alter_broker_priority.name,
    _alter_broker_priority.contract_name, _alter_broker_priority.local_service_name,
    _alter_broker_priority.remote_service_name, _alter_broker_priority.priority_level);
end
$$;
comment on function sb_internal._alter_broker_priority(name, text, text, text, text, integer) is
  'ALTER BROKER PRIORITY behind sb.alter_broker_priority.';
revoke all on function sb_internal._alter_broker_priority(name, text, text, text, text, integer) from public;
-- sqlgen:end functions/internal/_alter_broker_priority.sql
-- sqlgen:begin functions/internal/_alter_message_type.sql sha256:abcc7f187a70339807d0540073dccd58c49853f2098d531f234d149944fef763
create or replace function sb_internal._alter_message_type(
  caller name,
  name text,
  validation text,
  validator regprocedure,
  schema jsonb
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
  old sb_internal.message_type;
  checked record;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('message type', _alter_message_type.name);
  perform sb_internal._require_owner(_alter_message_type.caller, object.owner,
    'alter message type ' || _alter_message_type.name);
  perform sb_internal._require_user_object(object.id, 'message type ' || _alter_message_type.name);
  if num_nonnulls(_alter_message_type.validation, _alter_message_type.validator, _alter_message_type.schema) = 0 then
    perform sb_internal._raise('22023', array['nothing to change for message type ' || _alter_message_type.name]);
  end if;
  select t.*
    into old
    from sb_internal.message_type as t
   where t.message_type_id = object.id;
  if upper(coalesce(_alter_message_type.validation, old.validation)) = old.validation
    and _alter_message_type.validator is null and _alter_message_type.schema is null
  then
    return;
  end if;
  checked := sb_internal._validation(_alter_message_type.caller,
    coalesce(_alter_message_type.validation, old.validation), _alter_message_type.validator,
    _alter_message_type.schema);
  update sb_internal.message_type as t
     set validation = checked.validation_kind,
         validator = checked.validator_name,
         schema = _alter_message_type.schema
   where t.message_type_id = object.id;
  update sb_internal.contract_message as m
     set validation = checked.validation_kind
   where m.message_type_id = object.id;
end
$$;
comment on function sb_internal._alter_message_type(name, text, text, regprocedure, jsonb) is
  'ALTER MESSAGE TYPE behind sb.alter_message_type. No key column changes, so no sender waits.';
revoke all on function sb_internal._alter_message_type(name, text, text, regprocedure, jsonb) from public;
-- sqlgen:end functions/internal/_alter_message_type.sql
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
-- sqlgen:begin functions/internal/_alter_service.sql sha256:fa809cfa48d97d9836bac59a826f0340a558f42c3257c076f63bc6b3cfd9bd91
create or replace function sb_internal._alter_service(
  caller name,
  name text,
  queue_name text,
  add_contracts text[],
  drop_contracts text[]
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
  queue record;
  old_queue_id integer;
  contract record;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('service', _alter_service.name);
  perform sb_internal._require_owner(_alter_service.caller, object.owner, 'alter service ' || _alter_service.name);
  perform sb_internal._require_user_object(object.id, 'service ' || _alter_service.name);
  if _alter_service.queue_name is null
    and cardinality(coalesce(_alter_service.add_contracts, '{}') || coalesce(_alter_service.drop_contracts, '{}')) = 0
  then
    perform sb_internal._raise('S8493', array[_alter_service.name]);
  end if;

  for contract in
    select a.name, c.id, count(*) over (partition by c.id) as times
      from unnest(_alter_service.drop_contracts) as a (name)
     cross join lateral sb_internal._lookup('contract', a.name) as c
  loop
    if contract.times > 1 then
      perform sb_internal._raise('S8404', array[contract.name]);
    end if;
    delete from sb_internal.service_contract as c
     where c.service_id = object.id
       and c.service_contract_id = contract.id;
    if not found then
      perform sb_internal._raise('42704', array['contract of service ' || _alter_service.name || ':', contract.name]);
    end if;
  end loop;
  perform sb_internal._accept_contracts(_alter_service.caller, object.id, _alter_service.add_contracts);

  if _alter_service.queue_name is not null then
    queue := sb_internal._lookup('queue', _alter_service.queue_name);
    perform sb_internal._require_owner(_alter_service.caller, queue.owner,
      'put a service on queue ' || _alter_service.queue_name);
    perform sb_internal._require_user_object(queue.id, 'queue ' || _alter_service.queue_name);
    select s.queue_id
      into old_queue_id
      from sb_internal.service as s
     where s.service_id = object.id;
    if queue.id <> old_queue_id then
      perform sb_internal._move_service(object.id, old_queue_id, queue.id);
      perform sb_internal._deliver(queue.id, _alter_service.name);
    end if;
  end if;
  perform sb_internal._announce('service_altered', 'service', _alter_service.name);
end
$$;
comment on function sb_internal._alter_service(name, text, text, text[], text[]) is
  'ALTER SERVICE behind sb.alter_service.';
revoke all on function sb_internal._alter_service(name, text, text, text[], text[]) from public;
-- sqlgen:end functions/internal/_alter_service.sql
-- sqlgen:begin functions/internal/_announce.sql sha256:b3ff4de4fbb2a4374cfb172d1289e97a99903a2168c57913b1a361635650f5d8
create or replace function sb_internal._announce(event text, kind text, name text)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_notify('sb_events',
    json_build_object('event', _announce.event, _announce.kind, _announce.name)::text);
end
$$;
comment on function sb_internal._announce(text, text, text) is
  'Tells operators and activators, on channel sb_events, what changed: {"event": …, "<kind>": <name>}. A hint, like every notification.';
revoke all on function sb_internal._announce(text, text, text) from public;
-- sqlgen:end functions/internal/_announce.sql
-- sqlgen:begin functions/internal/_arrived.sql sha256:c820606cf784b35fc61485736f262cf9a3c159a7baa45f84f5dc488a5db53ed0
create or replace function sb_internal._arrived(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._wake(_arrived.queue_id);
  if (select q.has_activation_event from sb_internal.queue as q where q.queue_id = _arrived.queue_id) then
    perform sb_internal._monitor_arrival(_arrived.queue_id);
  end if;
end
$$;
comment on function sb_internal._arrived(integer) is
  'What follows the arrival of messages in a queue: waiters are notified, a watching QUEUE_ACTIVATION notification gets its event.';
revoke all on function sb_internal._arrived(integer) from public;
-- sqlgen:end functions/internal/_arrived.sql
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
-- sqlgen:begin functions/internal/_cancel_conversation_timer.sql sha256:438336479db8a0071e16e5eb140d3584044ac16d2f730b495594c35ae9277aa2
create or replace function sb_internal._cancel_conversation_timer(caller name, conversation_handle uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint := sb_internal._hold_conversation(_cancel_conversation_timer.conversation_handle);
begin
  perform sb_internal._may_use_conversation(_cancel_conversation_timer.caller, e, 'cancel the timer of');
  if e.state = 'DO' then
    perform sb_internal._raise('S8458', array[e.conversation_handle::text, e.state]);
  end if;
  delete from sb_internal.due as d
   where d.conversation_handle = e.conversation_handle
     and not d.is_lifetime;
end
$$;
comment on function sb_internal._cancel_conversation_timer(name, uuid) is
  'Cancels the timer behind sb.cancel_conversation_timer.';
revoke all on function sb_internal._cancel_conversation_timer(name, uuid) from public;
-- sqlgen:end functions/internal/_cancel_conversation_timer.sql
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
-- sqlgen:begin functions/internal/_change_access.sql sha256:2713edc597d6ee9bb19f2b8a135e07cf0bca072efa408b098123c2b35dfa95e0
create or replace function sb_internal._change_access(
  caller name,
  access text,
  name text,
  role name,
  is_granted boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  kind text := case _change_access.access when 'send' then 'service' when 'receive' then 'queue' else 'contract' end;
  object record;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup(kind, _change_access.name);
  perform sb_internal._require_owner(_change_access.caller, object.owner,
    case when _change_access.is_granted then 'grant ' else 'revoke ' end || _change_access.access || ' on '
      || kind || ' ' || _change_access.name);
  perform sb_internal._require_user_object(object.id, kind || ' ' || _change_access.name);
  -- A role that is gone may still be taken off the list.
  if _change_access.role is distinct from 'public'
    and (_change_access.is_granted or _change_access.role = any (object.acl) is not true)
  then
    perform sb_internal._require_role(_change_access.role);
  end if;

  object.acl := array_remove(object.acl, _change_access.role);
  if _change_access.is_granted then
    object.acl := object.acl || _change_access.role;
  end if;
  case kind
    when 'service' then
      update sb_internal.service as s
         set senders = object.acl
       where s.service_id = object.id;
    when 'queue' then
      update sb_internal.queue as q
         set receivers = object.acl
       where q.queue_id = object.id;
    else
      update sb_internal.contract as c
         set referencers = object.acl
       where c.service_contract_id = object.id;
  end case;
  perform sb_internal._sync_privileges(array[_change_access.role]);
end
$$;
comment on function sb_internal._change_access(name, text, text, name, boolean) is
  'The grant and revoke verbs of services (send), queues (receive) and contracts (references).';
revoke all on function sb_internal._change_access(name, text, text, name, boolean) from public;
-- sqlgen:end functions/internal/_change_access.sql
-- sqlgen:begin functions/internal/_change_admin.sql sha256:6e3e8c8d7fc25cb8a3a3bd1a4ae844937a3b3c7fa697a5c6468528676667b416
create or replace function sb_internal._change_admin(caller name, role name, is_granted boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  list name[];
begin
  perform sb_internal._require_admin(_change_admin.caller,
    case when _change_admin.is_granted then 'make admins' else 'revoke admins' end);
  perform sb_internal._lock_catalog();
  select b.admins
    into list
    from sb_internal.broker as b
   where b.singleton;
  if _change_admin.role = 'public' then
    perform sb_internal._raise('22023', array['public cannot be an admin']);
  elsif _change_admin.is_granted or _change_admin.role = any (list) is not true then
    perform sb_internal._require_role(_change_admin.role);
  end if;
  list := array_remove(list, _change_admin.role);
  if _change_admin.is_granted then
    list := list || _change_admin.role;
  end if;
  update sb_internal.broker as b
     set admins = list
   where b.singleton;
  perform sb_internal._sync_privileges(array[_change_admin.role]);
end
$$;
comment on function sb_internal._change_admin(name, name, boolean) is
  'Behind sb.grant_admin and sb.revoke_admin.';
revoke all on function sb_internal._change_admin(name, name, boolean) from public;
-- sqlgen:end functions/internal/_change_admin.sql
-- sqlgen:begin functions/internal/_check_route.sql sha256:9342c0423861361e4a7694c69981d8d34edd4b0a589f05c965d0827649bf115d
create or replace function sb_internal._check_route(r sb_internal.route)
  returns void
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  clause record;
begin
  for clause in
    select c.name, c.value, c.max_length
      from (values
        ('address', coalesce(r.address, ''), 256),
        ('service_name', r.remote_service_name, 256),
        ('broker_instance', r.broker_instance, 128),
        ('mirror_address', r.mirror_address, 256)
      ) as c (name, value, max_length)
  loop
    if clause.value = '' then
      perform sb_internal._raise('S9659', array[clause.name]);
    elsif char_length(clause.value) > clause.max_length then
      perform sb_internal._raise('S9660', array[clause.name, clause.max_length::text]);
    end if;
  end loop;
  if r.address <> 'LOCAL' and r.address !~ '^remote://[^/[:space:]]+$' then
    perform sb_internal._raise('S9744', array[r.address]);
  end if;
  if r.broker_instance is not null and r.remote_service_name is null then
    perform sb_internal._raise('S9662');
  end if;
  if r.mirror_address is null then
    return;
  end if;
  if r.remote_service_name is null or r.broker_instance is null then
    perform sb_internal._raise('S9661');
  elsif r.mirror_address !~ '^remote://[^/[:space:]]+$' then
    perform sb_internal._raise('S9743', array[r.mirror_address]);
  elsif r.mirror_address = r.address then
    perform sb_internal._raise('S9747');
  elsif r.address = 'LOCAL' then
    perform sb_internal._raise('22023', array['a LOCAL route takes no mirror address']);
  end if;
end
$$;
comment on function sb_internal._check_route(sb_internal.route) is
  'Checks the clauses of a route (R-079 to R-082). Errors: S9659 empty, S9660 too long, S9661, S9662, S9743, S9744, S9747, 22023.';
revoke all on function sb_internal._check_route(sb_internal.route) from public;
-- sqlgen:end functions/internal/_check_route.sql
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
-- sqlgen:begin functions/internal/_claim_due.sql sha256:e3e19a145167beeb16054a507c78ade2fa74edeff20710e9250e921ae5a72674
create or replace function sb_internal._claim_due(
  queue_id integer,
  level smallint,
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
  candidate record;
  tried uuid[] := '{}'::uuid[];
begin
  for candidate in
    select d.conversation_handle, d.conversation_group_id, d.due_at
      from sb_internal.due as d
     where d.queue_id = _claim_due.queue_id
       and d.priority = _claim_due.level
     order by d.due_at
     limit 300
  loop
    exit when candidate.due_at > clock_timestamp();
    continue when candidate.conversation_group_id = any (tried);
    conversation_group_id := sb_internal._claim(candidate.conversation_handle);
    if conversation_group_id is not null then
      conversation_handle := candidate.conversation_handle;
      return;
    end if;
    tried := tried || candidate.conversation_group_id;
  end loop;
end
$$;
comment on function sb_internal._claim_due(integer, smallint) is
  'Locks the group of the timer or lifetime that has been due for longest and can be had, see _claim; null when there is none.';
revoke all on function sb_internal._claim_due(integer, smallint) from public;
-- sqlgen:end functions/internal/_claim_due.sql
-- sqlgen:begin functions/internal/_clean_bodies.sql sha256:6bff9b525239244cf5edc3d6e3fedebcd6d8710665279811944e5c8a93670838
create or replace function sb_internal._clean_bodies(bodies bytea[])
  returns bytea[]
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  refused integer;
begin
  if exists (select 1 from unnest(_clean_bodies.bodies) as b (body) where b.body is null) then
    perform sb_internal._raise('S8433');
  end if;
  select max(octet_length(b.body))
    into refused
    from unnest(_clean_bodies.bodies) as b (body);
  if refused > 268435456 then
    perform sb_internal._raise('S8459', array[refused::text]);
  end if;
  return array(
    select nullif(b.body, '')
      from unnest(_clean_bodies.bodies) with ordinality as b (body, ordinality)
     order by b.ordinality);
end
$$;
comment on function sb_internal._clean_bodies(bytea[]) is
  'Bodies of a batch as they are stored: zero length is null. Errors: S8433 a null among them, S8459 one too large.';
revoke all on function sb_internal._clean_bodies(bytea[]) from public;
-- sqlgen:end functions/internal/_clean_bodies.sql
-- sqlgen:begin functions/internal/_close_state_table.sql sha256:78adc0fec0b0aeb1410b76ff8ce79d7d8baff48567b8f1b6b994039bb583cc3e
create or replace function sb_internal._close_state_table(
  caller name,
  table_name text,
  drop_on_end boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _close_state_table.drop_on_end then
    execute format('revoke references (conversation_group_id) on sb.conversation_group from %I', _close_state_table.caller);
    -- The lent right could have been used for a foreign key that blocks END: no such key may exist.
    if exists (
      select 1
        from pg_constraint as c
       where c.confrelid = 'sb.conversation_group'::regclass
         and c.contype = 'f'
         and (c.confdeltype <> 'c' or cardinality(c.conkey) <> 1 or not exists (
           select 1
             from pg_attribute as a
            where a.attrelid = c.conrelid
              and a.attnum = c.conkey[1]
              and a.attname = 'conversation_group_id')))
    then
      perform sb_internal._raise('SB002', array[_close_state_table.table_name,
        'only its key may reference the conversation group']);
    end if;
  end if;
end
$$;
comment on function sb_internal._close_state_table(name, text, boolean) is
  'Last step of create_state_table: takes the lent right back and makes sure that it was used for the key alone. Error SB002.';
revoke all on function sb_internal._close_state_table(name, text, boolean) from public;
-- sqlgen:end functions/internal/_close_state_table.sql
-- sqlgen:begin functions/internal/_create_broker_priority.sql sha256:c43b7d9471dee6ce1ab6617ba15beb3aa6e964ba53562c11ffe2e41bbe09731a
create or replace function sb_internal._create_broker_priority(
  caller name,
  name text,
  contract_name text,
  local_service_name text,
  remote_service_name text,
  priority_level integer,
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_create_broker_priority.caller, 'create broker priorities');
  perform sb_internal._require_name(_create_broker_priority.name, 'broker priority', 128);
  perform sb_internal._lock_catalog();
  if sb_internal._require_free_name('broker priority', _create_broker_priority.name,
    exists (
      select 1
        from sb_internal.conversation_priority as p
       where p.name = _create_broker_priority.name),
    _create_broker_priority.if_not_exists)
  then
    perform sb_internal._put_broker_priority(nextval('sb_internal.priority_id')::integer,
      _create_broker_priority.name, _create_broker_priority.contract_name,
      _create_broker_priority.local_service_name, _create_broker_priority.remote_service_name,
      _create_broker_priority.priority_level);
  end if;
end
$$;
comment on function sb_internal._create_broker_priority(name, text, text, text, text, integer, boolean) is
  'CREATE BROKER PRIORITY behind sb.create_broker_priority.';
revoke all on function sb_internal._create_broker_priority(name, text, text, text, text, integer, boolean) from public;
-- sqlgen:end functions/internal/_create_broker_priority.sql
-- sqlgen:begin functions/internal/_create_contract.sql sha256:0cbb68a57ca7eac65097d25cf43b1b8341d139208ce3780859774731df3cf7d0
create or replace function sb_internal._create_contract(
  caller name,
  name text,
  sent_by_initiator text[],
  sent_by_target text[],
  sent_by_any text[],
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
  contract_id integer;
  entry record;
begin
  perform sb_internal._require_admin(_create_contract.caller, 'create contracts');
  perform sb_internal._require_name(_create_contract.name, 'contract', 128);
  perform sb_internal._lock_catalog();
  if not sb_internal._require_free_name('contract', _create_contract.name,
    (select l.id from sb_internal._lookup('contract', _create_contract.name, true) as l) is not null,
    _create_contract.if_not_exists)
  then
    return;
  end if;

  insert into sb_internal.contract (service_contract_id, name, owner)
  values (nextval('sb_internal.service_contract_id'), _create_contract.name, _create_contract.caller)
      on conflict on constraint contract_name_key do nothing
  returning service_contract_id into contract_id;
  for entry in
    select l.name, l.by_initiator, l.by_target, t.id
      from (
        select unnest(_create_contract.sent_by_initiator) as name, true as by_initiator, false as by_target
         union all
        select unnest(_create_contract.sent_by_target), false, true
         union all
        select unnest(_create_contract.sent_by_any), true, true
      ) as l
     cross join lateral sb_internal._lookup('message type', l.name) as t
  loop
    -- EndDialog and its like are sent by the broker alone: whoever could send one would forge an end.
    if entry.id in (1, 2, 5) then
      perform sb_internal._raise('S9663', array['message type ' || entry.name]);
    end if;
    insert into sb_internal.contract_message (service_contract_id, message_type_name, message_type_id,
      validation, is_sent_by_initiator, is_sent_by_target)
    select contract_id, t.name, t.message_type_id, t.validation, entry.by_initiator, entry.by_target
      from sb_internal.message_type as t
     where t.message_type_id = entry.id
        on conflict on constraint contract_message_pkey do nothing;
    if not found then
      perform sb_internal._raise('S8403', array[entry.name]);
    end if;
  end loop;
  if not exists (
    select 1
      from sb_internal.contract_message as m
     where m.service_contract_id = contract_id
       and m.is_sent_by_initiator)
  then
    perform sb_internal._raise('S8492', array[_create_contract.name]);
  end if;
end
$$;
comment on function sb_internal._create_contract(name, text, text[], text[], text[], boolean) is
  'CREATE CONTRACT behind sb.create_contract.';
revoke all on function sb_internal._create_contract(name, text, text[], text[], text[], boolean) from public;
-- sqlgen:end functions/internal/_create_contract.sql
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
-- sqlgen:begin functions/internal/_create_message_type.sql sha256:70cf230aa907a3a46a7ffc7f2b047f4b4a7c145b4e6c6586d5e5ca37134eaea5
create or replace function sb_internal._create_message_type(
  caller name,
  name text,
  validation text,
  validator regprocedure,
  schema jsonb,
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
  checked record;
begin
  perform sb_internal._require_admin(_create_message_type.caller, 'create message types');
  perform sb_internal._require_name(_create_message_type.name, 'message type', 128);
  perform sb_internal._lock_catalog();
  if not sb_internal._require_free_name('message type', _create_message_type.name,
    (select l.id from sb_internal._lookup('message type', _create_message_type.name, true) as l) is not null,
    _create_message_type.if_not_exists)
  then
    return;
  end if;
  checked := sb_internal._validation(_create_message_type.caller, _create_message_type.validation,
    _create_message_type.validator, _create_message_type.schema);
  -- Under repeatable read the name may be taken invisibly: on conflict turns that into 40001.
  insert into sb_internal.message_type (message_type_id, name, owner, validation, validator, schema)
  values (nextval('sb_internal.message_type_id'), _create_message_type.name, _create_message_type.caller,
    checked.validation_kind, checked.validator_name, _create_message_type.schema)
      on conflict on constraint message_type_name_key do nothing;
end
$$;
comment on function sb_internal._create_message_type(name, text, text, regprocedure, jsonb, boolean) is
  'CREATE MESSAGE TYPE behind sb.create_message_type.';
revoke all on function sb_internal._create_message_type(name, text, text, regprocedure, jsonb, boolean) from public;
-- sqlgen:end functions/internal/_create_message_type.sql
-- sqlgen:begin functions/internal/_create_queue.sql sha256:4f2083b060cf526ae29b66bb46b36dd78696e18e33a9e5a469aea049e0d4f7f2
create or replace function sb_internal._create_queue(
  caller name,
  name text,
  enabled boolean,
  retention boolean,
  activation_procedure text,
  max_queue_readers integer,
  activation_enabled boolean,
  execute_as name,
  poison_message_handling boolean,
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
  id integer;
begin
  perform sb_internal._require_admin(_create_queue.caller, 'create queues');
  perform sb_internal._require_name(_create_queue.name, 'queue', 128);
  if starts_with(_create_queue.name, '#') then
    perform sb_internal._raise('42602', array['queue', _create_queue.name, '128'], 'reason=no temporary queues');
  end if;
  perform sb_internal._lock_catalog();
  if not sb_internal._require_free_name('queue', _create_queue.name,
    exists (select 1 from sb_internal.queue as q where q.name = _create_queue.name),
    _create_queue.if_not_exists)
  then
    return;
  end if;

  insert into sb_internal.queue (queue_id, name, owner)
  values (nextval('sb_internal.queue_id'), _create_queue.name, _create_queue.caller)
      on conflict on constraint queue_name_key do nothing
  returning queue_id into id;
  perform sb_internal._set_activation(_create_queue.caller, id, _create_queue.activation_procedure,
    _create_queue.max_queue_readers, coalesce(_create_queue.activation_enabled, true), _create_queue.execute_as);
  update sb_internal.queue as q
     set is_enabled = coalesce(_create_queue.enabled, true),
         is_retention_enabled = coalesce(_create_queue.retention, false),
         is_poison_message_handling_enabled = coalesce(_create_queue.poison_message_handling, true)
   where q.queue_id = id;
  insert into sb_internal.queue_monitor (queue_id)
  values (id);
  perform sb_internal._queue_sequences(id);
  -- Nothing to deliver yet: messages wait for services, and none is on this queue.
  perform sb_internal._announce('queue_created', 'queue', _create_queue.name);
end
$$;
comment on function sb_internal._create_queue(name, text, boolean, boolean, text, integer, boolean, name, boolean, boolean) is
  'CREATE QUEUE behind sb.create_queue.';
revoke all on function sb_internal._create_queue(name, text, boolean, boolean, text, integer, boolean, name, boolean, boolean) from public;
-- sqlgen:end functions/internal/_create_queue.sql
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
-- sqlgen:begin functions/internal/_create_service.sql sha256:da5ba9299fa2c3d67463cf604709b12774ed121dfc91ca366502e6567c5c8d8f
create or replace function sb_internal._create_service(
  caller name,
  name text,
  queue_name text,
  contracts text[],
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
  queue record;
  id integer;
begin
  perform sb_internal._require_admin(_create_service.caller, 'create services');
  perform sb_internal._require_name(_create_service.name, 'service', 128);
  perform sb_internal._lock_catalog();
  if not sb_internal._require_free_name('service', _create_service.name,
    (select l.id from sb_internal._lookup('service', _create_service.name, true) as l) is not null,
    _create_service.if_not_exists)
  then
    return;
  end if;
  queue := sb_internal._lookup('queue', _create_service.queue_name);
  perform sb_internal._require_user_object(queue.id, 'queue ' || _create_service.queue_name);
  insert into sb_internal.service (service_id, name, owner, queue_id)
  values (nextval('sb_internal.service_id'), _create_service.name, _create_service.caller, queue.id)
      on conflict on constraint service_name_key do nothing
  returning service_id into id;
  perform sb_internal._accept_contracts(_create_service.caller, id, _create_service.contracts);
  perform sb_internal._deliver_now(null, _create_service.name);
  perform sb_internal._announce('service_created', 'service', _create_service.name);
end
$$;
comment on function sb_internal._create_service(name, text, text, text[], boolean) is
  'CREATE SERVICE behind sb.create_service.';
revoke all on function sb_internal._create_service(name, text, text, text[], boolean) from public;
-- sqlgen:end functions/internal/_create_service.sql
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
-- sqlgen:begin functions/internal/_delete_orphans.sql sha256:e0f7809ef5d413a2818b857f055a2fe256d579de253bdfc19dbec23080ead47d
create or replace function sb_internal._delete_orphans()
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
  start constant uuid := gen_random_uuid();
  stepped uuid := start;
  wrapped boolean := false;
begin
  -- From conversation to conversation, from a random point on and at most once around: the same work
  -- whatever the backlog, and sooner or later everywhere.
  for step in 1..1000 loop
    select m.conversation_handle
      into stepped
      from sb_internal.message as m
     where m.conversation_handle > stepped
     order by m.conversation_handle
     limit 1;
    if not found then
      exit when wrapped;
      wrapped := true;
      stepped := '00000000-0000-0000-0000-000000000000';
      continue;
    end if;
    exit when wrapped and stepped > start;

    continue when exists (
      select 1
        from sb_internal.endpoint as e
       where e.conversation_handle = stepped
         and e.state <> 'DO');
    delete from sb_internal.message as m
     where m.ctid = any (array(
       select o.ctid
         from sb_internal.message as o
        where o.conversation_handle = stepped
        limit 10000
          for update skip locked));
  end loop;
end
$$;
comment on function sb_internal._delete_orphans() is
  'Deletes messages whose endpoint has gone, because both sides ended at once: they never count as ready, nobody needs them gone. Looks at 1000 conversations a call.';
revoke all on function sb_internal._delete_orphans() from public;
-- sqlgen:end functions/internal/_delete_orphans.sql
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
-- sqlgen:begin functions/internal/_deliver_now.sql sha256:e6aba4a7783db47a34e845d83d8f43642feff388f120a3073c60fe1b73037824
create or replace function sb_internal._deliver_now(queue_id integer, service_name text)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- A SEND that found the way closed before this transaction opened it may not have committed its row yet,
  -- and a later one does not see this transaction before it commits. The lock waits for the former, and makes
  -- the latter wait and look again (_parked). Before any row is locked: who waits for such a row may have
  -- put one into the transmission queue. Somebody who keeps his transaction open is waited for 5 s; his row
  -- is left to the activator or to sb.deliver.
  perform sb_internal._lock_table('sb_internal.transmission', '5 s');
  perform sb_internal._deliver(_deliver_now.queue_id, _deliver_now.service_name);
end
$$;
comment on function sb_internal._deliver_now(integer, text) is
  'Delivery by whoever has just opened a way (queue switched on, service created, broker enabled): moves on what waits, so that nothing is left behind. Messages parked meanwhile for whatever queue wait for the end of this transaction.';
revoke all on function sb_internal._deliver_now(integer, text) from public;
-- sqlgen:end functions/internal/_deliver_now.sql
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
-- sqlgen:begin functions/internal/_drop_broker_priority.sql sha256:29025171d0b60c2cd24ba7dd54de187123375a841fa6a708c4858f45e85ad84d
create or replace function sb_internal._drop_broker_priority(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
begin
  perform sb_internal._require_admin(_drop_broker_priority.caller, 'drop broker priorities');
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('broker priority', _drop_broker_priority.name, _drop_broker_priority.if_exists);
  delete from sb_internal.conversation_priority as p
   where p.priority_id = object.id;
end
$$;
comment on function sb_internal._drop_broker_priority(name, text, boolean) is
  'DROP BROKER PRIORITY behind sb.drop_broker_priority.';
revoke all on function sb_internal._drop_broker_priority(name, text, boolean) from public;
-- sqlgen:end functions/internal/_drop_broker_priority.sql
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
-- sqlgen:begin functions/internal/_drop_event_notification.sql sha256:9aed407907a3a9f0862ff14a8bf6ffad0efbc6e5ab1f97679b566336f611e9fb
create or replace function sb_internal._drop_event_notification(
  caller name,
  name text,
  queue_name text,
  if_exists boolean
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
  id integer;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('queue', _drop_event_notification.queue_name, _drop_event_notification.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_event_notification.caller, object.owner,
    'drop event notifications of queue ' || _drop_event_notification.queue_name);
  select n.event_notification_id
    into id
    from sb_internal.event_notification as n
   where n.queue_id = object.id
     and n.name = _drop_event_notification.name;
  if found then
    perform sb_internal._remove_event_notification(id);
  elsif _drop_event_notification.if_exists is not true then
    perform sb_internal._require_name(_drop_event_notification.name, 'event notification', 128);
    perform sb_internal._raise('42704', array['event notification', _drop_event_notification.name],
      'queue=' || _drop_event_notification.queue_name);
  end if;
end
$$;
comment on function sb_internal._drop_event_notification(name, text, text, boolean) is
  'DROP EVENT NOTIFICATION behind sb.drop_event_notification.';
revoke all on function sb_internal._drop_event_notification(name, text, text, boolean) from public;
-- sqlgen:end functions/internal/_drop_event_notification.sql
-- sqlgen:begin functions/internal/_drop_message_type.sql sha256:7940f1bff5c7e43a8e42282296391c2c09aa2b22ea715b67a7369fcdf03244d7
create or replace function sb_internal._drop_message_type(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  used_by text;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('message type', _drop_message_type.name, _drop_message_type.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_message_type.caller, object.owner,
    'drop message type ' || _drop_message_type.name);
  perform sb_internal._require_user_object(object.id, 'message type ' || _drop_message_type.name);
  select c.name
    into used_by
    from sb_internal.contract_message as m
    join sb_internal.contract as c on c.service_contract_id = m.service_contract_id
   where m.message_type_id = object.id
   order by c.name
   limit 1;
  if found then
    perform sb_internal._raise('S3716', array['message type ' || _drop_message_type.name, 'contract ' || used_by]);
  end if;
  delete from sb_internal.message_type as t
   where t.message_type_id = object.id;
  perform sb_internal._sync_privileges(object.owner || object.acl);
end
$$;
comment on function sb_internal._drop_message_type(name, text, boolean) is
  'DROP MESSAGE TYPE behind sb.drop_message_type.';
revoke all on function sb_internal._drop_message_type(name, text, boolean) from public;
-- sqlgen:end functions/internal/_drop_message_type.sql
-- sqlgen:begin functions/internal/_drop_queue.sql sha256:cc0d7ea4778388ac681883f5f55f1a2340951c6a91ab94f0867f345ad0535702
create or replace function sb_internal._drop_queue(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
  used_by text;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('queue', _drop_queue.name, _drop_queue.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_queue.caller, object.owner, 'drop queue ' || _drop_queue.name);
  perform sb_internal._require_user_object(object.id, 'queue ' || _drop_queue.name);
  select s.name
    into used_by
    from sb_internal.service as s
   where s.queue_id = object.id
   order by s.name
   limit 1;
  if found then
    perform sb_internal._raise('S3716', array['queue ' || _drop_queue.name, 'service ' || used_by]);
  end if;

  -- The queue's sequences stay until a maintain after a minute: a receive that has found the queue still
  -- there reads them.
  perform setval(('sb_internal.queue_' || object.id || '_search')::regclass,
    (date_part('epoch', clock_timestamp()) * 1000)::bigint);
  perform sb_internal._remove_event_notification(n.event_notification_id)
     from sb_internal.event_notification as n
    where n.queue_id = object.id;
  -- Orphans: what had a conversation went with its service.
  delete from sb_internal.message as m
   where m.queue_id = object.id;
  delete from sb_internal.queue as q
   where q.queue_id = object.id;
  perform sb_internal._sync_privileges(object.owner || object.acl);
  perform pg_notify('sb_queue_' || object.id, '');
  perform sb_internal._announce('queue_dropped', 'queue', _drop_queue.name);
end
$$;
comment on function sb_internal._drop_queue(name, text, boolean) is
  'DROP QUEUE behind sb.drop_queue. Wakes waiting receivers, who find the queue gone.';
revoke all on function sb_internal._drop_queue(name, text, boolean) from public;
-- sqlgen:end functions/internal/_drop_queue.sql
-- sqlgen:begin functions/internal/_drop_route.sql sha256:a531dfee1329370ccd755fdfcc3c188c502ef0a25ec27893cd49dfdde997dfa9
create or replace function sb_internal._drop_route(caller name, name text, if_exists boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  object record;
begin
  perform sb_internal._lock_catalog();
  object := sb_internal._lookup('route', _drop_route.name, _drop_route.if_exists);
  if object.id is null then
    return;
  end if;
  perform sb_internal._require_owner(_drop_route.caller, object.owner, 'drop route ' || _drop_route.name);
  delete from sb_internal.route as r
   where r.route_id = object.id;
  perform sb_internal._sync_privileges(array[object.owner]);
  perform sb_internal._announce('route_dropped', 'route', _drop_route.name);
end
$$;
comment on function sb_internal._drop_route(name, text, boolean) is
  'DROP ROUTE behind sb.drop_route.';
revoke all on function sb_internal._drop_route(name, text, boolean) from public;
-- sqlgen:end functions/internal/_drop_route.sql
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
-- sqlgen:begin functions/internal/_drop_stale_sequences.sql sha256:6a112f0b31d8f9c35a572f1f7afcddce0b22435a29f5f1a8cac4b1fb63d7fa6d
create or replace function sb_internal._drop_stale_sequences()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '50ms'
as $$
declare
  sequences text := (
    select string_agg(s.oid::regclass::text, ', ' order by s.oid)
      from (
        select c.oid
          from pg_class as c
         where c.relnamespace = 'sb_internal'::regnamespace
           and c.relkind = 'S'
           and c.relname ~ '^queue_[0-9]+_'
           and not exists (
             select 1
               from sb_internal.queue as q
              where q.queue_id = split_part(c.relname, '_', 2)::integer)
           and coalesce(pg_sequence_last_value(to_regclass(
                 'sb_internal.queue_' || split_part(c.relname, '_', 2) || '_search')), 0)
               < (date_part('epoch', clock_timestamp()) - 60) * 1000
         order by c.oid
         limit 1000
      ) as s);
begin
  if sequences is not null then
    execute 'drop sequence ' || sequences;
  end if;
exception
  when lock_not_available then
    null;
end
$$;
comment on function sb_internal._drop_stale_sequences() is
  'Drops what _queue_sequences created for queues that are gone by now, a minute after they were dropped, unless some of it is still in use: then next time.';
revoke all on function sb_internal._drop_stale_sequences() from public;
-- sqlgen:end functions/internal/_drop_stale_sequences.sql
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
-- sqlgen:begin functions/internal/_effective_state.sql sha256:a2c3517c8aa685ff5373800d922c7b977c4b4d5d2d00deaa0693fe24fa3498c0
create or replace function sb_internal._effective_state(
  state text,
  is_initiator boolean,
  lifetime timestamptz,
  conversation_handle uuid
)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  control integer;
begin
  -- What this side wrote itself stays: ER never falls back to DI, DO is final.
  if _effective_state.state <> 'CO' then
    return _effective_state.state;
  end if;
  -- The peer never writes my row. That it ended or failed is the message it left in my queue. An end that
  -- came after the lifetime came too late.
  select min(m.message_type_id)
    into control
    from sb_internal.message as m
   where m.conversation_handle = _effective_state.conversation_handle
     and m.message_type_id in (1, 2)
     and (m.message_type_id = 1 or _effective_state.lifetime is null
       or m.message_enqueue_time < _effective_state.lifetime);
  if control = 1 then
    return 'ER';
  elsif control = 2 then
    return 'DI';
  elsif _effective_state.lifetime <= sb_internal._now() then
    return 'ER';
  elsif _effective_state.is_initiator
    and not exists (
      select 1
        from sb_internal.send_counter as c
       where c.conversation_handle = _effective_state.conversation_handle
         and c.message_sequence_number >= 0)
  then
    return 'SO';
  end if;
  return 'CO';
end
$$;
comment on function sb_internal._effective_state(text, boolean, timestamptz, uuid) is
  'The state machine of an endpoint, in one place: SO begun, nothing sent; CO both may send; DI the peer has ended; ER an error or the end of the lifetime came; DO ended here, the last message still has to leave. Arguments are the columns of its row.';
revoke all on function sb_internal._effective_state(text, boolean, timestamptz, uuid) from public;
-- sqlgen:end functions/internal/_effective_state.sql
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
-- sqlgen:begin functions/internal/_error_endpoint.sql sha256:62cbf43b48f0cd346dbf039e842066f89935f56b7ae6dca3d095f25e307c5223
create or replace function sb_internal._error_endpoint(
  conversation_handle uuid,
  code integer,
  description text
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  insert into sb_internal.message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
    message_type_id, conversation_handle, conversation_group_id, priority, message_body)
  select nextval('sb_internal.queuing_order'), -1, sb_internal._now(), s.queue_id,
         1, e.conversation_handle, e.conversation_group_id, e.priority,
         sb_internal._error_body(sb_internal._system_namespace(), _error_endpoint.code, _error_endpoint.description)
    from sb_internal.endpoint as e
    join sb_internal.service as s on s.service_id = e.service_id
   where e.conversation_handle = _error_endpoint.conversation_handle
     and e.state <> 'DO';
  perform sb_internal._arrived(s.queue_id)
     from sb_internal.endpoint as e
     join sb_internal.service as s on s.service_id = e.service_id
    where e.conversation_handle = _error_endpoint.conversation_handle;
end
$$;
comment on function sb_internal._error_endpoint(uuid, integer, text) is
  'Puts an Error message of the broker into the queue of the endpoint named, which is thereby in ER. Insert only: takes no lock of that side, and goes in also while its queue is off, since nobody can receive it before the queue is on.';
revoke all on function sb_internal._error_endpoint(uuid, integer, text) from public;
-- sqlgen:end functions/internal/_error_endpoint.sql
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
-- sqlgen:begin functions/internal/_get_transmission_status.sql sha256:52b506b935c79fb6479ccb8ad2650027e92a1e3567101d09ef6e28394958c37c
create or replace function sb_internal._get_transmission_status(caller name, conversation_handle uuid)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint;
begin
  select o.*
    into e
    from sb_internal.endpoint as o
   where o.conversation_handle = _get_transmission_status.conversation_handle;
  if not found then
    return '';
  end if;
  perform sb_internal._may_use_conversation(_get_transmission_status.caller, e, 'see the status of');
  return sb_internal._transmission_status(e.conversation_handle);
end
$$;
comment on function sb_internal._get_transmission_status(name, uuid) is
  'GET_TRANSMISSION_STATUS behind sb.get_transmission_status.';
revoke all on function sb_internal._get_transmission_status(name, uuid) from public;
-- sqlgen:end functions/internal/_get_transmission_status.sql
-- sqlgen:begin functions/internal/_grantable.sql sha256:3d5f3c7de4a980e0eeacb7ffd6a02598bd64f06473a1fcb53f16ce78f061c763
create or replace function sb_internal._grantable(is_admin boolean)
  returns setof regprocedure
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    with recursive granted(oid) as (
      select p.oid
        from pg_proc as p
       where p.pronamespace = 'sb'::regnamespace
         and (_grantable.is_admin or p.proname in (
           'begin_dialog', 'send', 'send_batch', 'multicast', 'receive', 'get_conversation_group',
           'move_conversation', 'end_conversation', 'begin_conversation_timer', 'cancel_conversation_timer',
           'get_transmission_status', 'error_code', 'error_description', 'body_text', 'body_json', 'body_xml',
           'create_state_table', 'drop_state_table', 'get_state', 'set_state', 'start_waiting', 'stop_waiting'))
       union
      -- What a view calls is called by whoever reads the view.
      select d.refobjid
        from pg_class as c
        join pg_rewrite as r on r.ev_class = c.oid
        join pg_depend as d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid
       where c.relnamespace = 'sb'::regnamespace
         and c.relkind = 'v'
         and d.refclassid = 'pg_proc'::regclass
       union
      -- What a verb's body calls, which it names with the owner's rights but calls with the caller's.
      select d.refobjid
        from granted as g
        join pg_depend as d on d.classid = 'pg_proc'::regclass and d.objid = g.oid
       where d.refclassid = 'pg_proc'::regclass
    )
    select p.oid::regprocedure
      from granted as g
      join pg_proc as p on p.oid = g.oid
     where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
     order by p.oid;
end
$$;
comment on function sb_internal._grantable(boolean) is
  'The functions that a role with any right may execute: messaging verbs, and what they and the views call; for admins and owners every verb. EXECUTE on inner functions is harmless without USAGE on their schema, which nobody gets.';
revoke all on function sb_internal._grantable(boolean) from public;
-- sqlgen:end functions/internal/_grantable.sql
-- sqlgen:begin functions/internal/_hold_conversation.sql sha256:dfefd55cb852bdc0b24c1ba3959e260a0c045c6a931055c218aba9a7a4941a6c
create or replace function sb_internal._hold_conversation(conversation_handle uuid)
  returns sb_internal.endpoint
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  held sb_internal.endpoint;
begin
  if _hold_conversation.conversation_handle is null then
    perform sb_internal._raise('S8418');
  end if;
  perform sb_internal._lock_group_of(_hold_conversation.conversation_handle);
  -- Holds off alter_service, which moves due rows to another queue: the queue found from here on is the right one.
  lock table sb_internal.message in access share mode;
  select e.*
    into held
    from sb_internal.endpoint as e
   where e.conversation_handle = _hold_conversation.conversation_handle;
  if not found then
    perform sb_internal._raise('S8426', array[_hold_conversation.conversation_handle::text]);
  end if;
  return held;
end
$$;
comment on function sb_internal._hold_conversation(uuid) is
  'Locks the group of a conversation and returns the endpoint: enough to keep END, MOVE and readers out, and no SEND waits for it. Errors: S8418 null handle, S8426 unknown handle.';
revoke all on function sb_internal._hold_conversation(uuid) from public;
-- sqlgen:end functions/internal/_hold_conversation.sql
-- sqlgen:begin functions/internal/_invalid_body.sql sha256:74c767be069f827ba0eef3a610d1883433a96c5d5866d2d793e778548cac2ac9
create or replace function sb_internal._invalid_body(
  e sb_internal.endpoint,
  message_type text,
  validation text
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  code integer := case _invalid_body.validation when 'EMPTY' then 8430 else 9615 end;
  description text := 'The body of a message of type "' || _invalid_body.message_type || '" failed its validation.';
begin
  if (select b.is_validate_on_send from sb_internal.broker as b where b.singleton) then
    perform sb_internal._raise('S' || code, array[_invalid_body.message_type],
      'conversation_handle=' || e.conversation_handle);
  end if;
  -- The message is dropped and uses no sequence number; both sides get the Error.
  perform sb_internal._error_endpoint(e.conversation_handle, -code, description);
  perform sb_internal._error_endpoint(e.peer_handle, -code, description);
end
$$;
comment on function sb_internal._invalid_body(sb_internal.endpoint, text, text) is
  'What happens to a message that fails its validation: SEND fails under the option validate_on_send (S9615, S8430), else both sides get an Error (R-022, R-024).';
revoke all on function sb_internal._invalid_body(sb_internal.endpoint, text, text) from public;
-- sqlgen:end functions/internal/_invalid_body.sql
-- sqlgen:begin functions/internal/_is_admin.sql sha256:f85015b1edea1a46ac7019ef3241bb760c9f7418090d166c4a68493e8069e532
create or replace function sb_internal._is_admin(caller name)
  returns boolean
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- to_regrole gives null for a role that is gone, and pg_has_role null for null: no such name raises.
  -- A superuser has the rights of every role, so he needs no case of his own.
  return exists (
    select 1
      from sb_internal.broker as b
      join pg_namespace as n on n.nspname = 'sb_internal'
     cross join lateral unnest(b.admins || pg_get_userbyid(n.nspowner)) as a (role)
     where b.singleton
       and pg_has_role(to_regrole(quote_ident(_is_admin.caller)), to_regrole(quote_ident(a.role)), 'usage'));
end
$$;
comment on function sb_internal._is_admin(name) is
  'Whether the role may run every DDL verb and sees everything: the owner of sb, a role granted admin, a member of one of them, a superuser. False for a role that does not exist.';
revoke all on function sb_internal._is_admin(name) from public;
-- sqlgen:end functions/internal/_is_admin.sql
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
-- sqlgen:begin functions/internal/_join_group.sql sha256:4ab2faab661cdd79a6366b9bf4cf0fe7462f672b0fc423c7a1ef09235b16797e
create or replace function sb_internal._join_group(
  conversation_group_id uuid,
  service_id integer,
  service_name text
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  owner_service integer;
begin
  loop
    select g.service_id
      into owner_service
      from sb.conversation_group as g
     where g.conversation_group_id = _join_group.conversation_group_id
       for no key update;
    if found then
      if owner_service <> _join_group.service_id then
        perform sb_internal._raise('S9610', array[_join_group.service_name, _join_group.conversation_group_id::text]);
      end if;
      return;
    end if;
    -- Not there: made with exactly this id (R-143). Waits for a rival that makes the same one.
    insert into sb.conversation_group (conversation_group_id, service_id)
    values (_join_group.conversation_group_id, _join_group.service_id)
    on conflict on constraint conversation_group_pkey do nothing;
    if found then
      return;
    end if;
  end loop;
end
$$;
comment on function sb_internal._join_group(uuid, integer, text) is
  'Locks a group for a new dialog of the service, creating it when it does not exist. Waits for the group lock. Error S9610 when the group belongs to another service.';
revoke all on function sb_internal._join_group(uuid, integer, text) from public;
-- sqlgen:end functions/internal/_join_group.sql
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
-- sqlgen:begin functions/internal/_json_matches.sql sha256:105a383b7b03ee4efda08158dfde8e88ec9f8b2d48c0976fef173ebb8ddafeec
-- An absent keyword yields NULL in a comparison, so the if is not taken and the keyword is not
-- applied: that is the rule of JSON Schema. Where a query is needed, ? asks first whether the
-- keyword is there.
create or replace function sb_internal._json_matches(
  schema jsonb,
  value jsonb
)
  returns boolean
  language plpgsql
  immutable
  parallel safe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _schema constant jsonb := _json_matches.schema;
  _value constant jsonb := _json_matches.value;
  _kind constant text := jsonb_typeof(_value);
  _text text;
begin
  if jsonb_typeof(_schema) = 'boolean' then
    return _schema::boolean;
  end if;

  -- ? finds a name in a list of types as well as in a single one.
  if not (_schema -> 'type') ? _kind then
    -- 1.0 is an integer.
    if _kind <> 'number' or not (_schema -> 'type') ? 'integer' or _value::numeric % 1 <> 0 then
      return false;
    end if;
  end if;
  if _schema -> 'const' <> _value then
    return false;
  end if;

  case _kind
    when 'number' then
      if _value::numeric < (_schema -> 'minimum')::numeric
        or _value::numeric > (_schema -> 'maximum')::numeric then
        return false;
      end if;
    when 'string' then
      _text := _value #>> '{}';
      if length(_text) < (_schema -> 'minLength')::numeric
        or length(_text) > (_schema -> 'maxLength')::numeric
        -- In this collation \d and \w are ASCII, as JSON Schema means them.
        or _text !~ (_schema ->> 'pattern') collate "C" then
        return false;
      end if;
    when 'array' then
      if jsonb_array_length(_value) < (_schema -> 'minItems')::numeric
        or jsonb_array_length(_value) > (_schema -> 'maxItems')::numeric then
        return false;
      end if;
      if _schema ? 'items' then
        if exists (
          select
          from jsonb_array_elements(_value) as i(item)
          where not sb_internal._json_matches(_schema -> 'items', i.item)
        ) then
          return false;
        end if;
      end if;
    when 'object' then
      if _schema ?| array['required', 'properties', 'additionalProperties'] then
        if exists (
          select
          from jsonb_array_elements_text(_schema -> 'required') as r(name)
          where not _value ? r.name
        ) or exists (
          select
          from jsonb_each(_schema -> 'properties') as p(name, schema)
          where _value ? p.name and not sb_internal._json_matches(p.schema, _value -> p.name)
        ) or _schema ? 'additionalProperties' and exists (
          select
          from jsonb_each(_value) as m(name, value)
          where not coalesce(_schema -> 'properties' ? m.name, false)
            and not sb_internal._json_matches(_schema -> 'additionalProperties', m.value)
        ) then
          return false;
        end if;
      end if;
    else
      null;
  end case;

  if _schema ?| array['enum', 'anyOf', 'allOf', 'oneOf', 'not'] then
    if _schema ? 'enum' and not exists (
      select from jsonb_array_elements(_schema -> 'enum') as e(value) where e.value = _value
    ) or exists (
      select
      from jsonb_array_elements(_schema -> 'allOf') as s(schema)
      where not sb_internal._json_matches(s.schema, _value)
    ) or _schema ? 'anyOf' and not exists (
      select
      from jsonb_array_elements(_schema -> 'anyOf') as s(schema)
      where sb_internal._json_matches(s.schema, _value)
    ) or _schema ? 'oneOf' and 1 <> (
      select count(*)
      from jsonb_array_elements(_schema -> 'oneOf') as s(schema)
      where sb_internal._json_matches(s.schema, _value)
    ) or _schema ? 'not' and sb_internal._json_matches(_schema -> 'not', _value) then
      return false;
    end if;
  end if;
  return true;
end
$$;
comment on function sb_internal._json_matches(jsonb, jsonb) is
  'Whether a value is valid for a schema that passed _json_schema_check, by the rules of JSON Schema 2020-12; pattern is a regular expression of PostgreSQL in collation C, matched anywhere in the string.';
revoke all on function sb_internal._json_matches(jsonb, jsonb) from public;
-- sqlgen:end functions/internal/_json_matches.sql
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
-- sqlgen:begin functions/internal/_json_schema_is_valid.sql sha256:9a58c97239e4e658f561c4c9e658866242f2208b12ebeaf02c91616c520e201c
create or replace function sb_internal._json_schema_is_valid(
  schema jsonb,
  body jsonb
)
  returns boolean
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  _home name;
  _is_valid boolean;
begin
  select n.nspname
  into _home
  from pg_catalog.pg_extension as e
  inner join pg_catalog.pg_namespace as n on n.oid = e.extnamespace
  where e.extname = 'pg_jsonschema';
  if _home is null then
    return sb_internal._json_matches(_json_schema_is_valid.schema, _json_schema_is_valid.body);
  end if;
  -- Dynamic because the extension may be absent. The exact argument types leave no other overload a
  -- chance.
  execute format('select %I.jsonb_matches_schema($1::pg_catalog.json, $2)', _home)
  into _is_valid
  using _json_schema_is_valid.schema, _json_schema_is_valid.body;
  return coalesce(_is_valid, false);
end
$$;
comment on function sb_internal._json_schema_is_valid(jsonb, jsonb) is
  'Whether a body is valid for a schema: asks the extension pg_jsonschema where it is installed, else _json_matches.';
revoke all on function sb_internal._json_schema_is_valid(jsonb, jsonb) from public;
-- sqlgen:end functions/internal/_json_schema_is_valid.sql
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
-- sqlgen:begin functions/internal/_lifetime_error.sql sha256:519577b50e7c090ca2e610b8282d86df3526354acbd2ed4b5f30b5394cc4a064
create or replace function sb_internal._lifetime_error()
  returns bytea
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  return sb_internal._error_body(sb_internal._system_namespace(), -8489, 'The dialog has exceeded its lifetime.');
end
$$;
comment on function sb_internal._lifetime_error() is
  'The body of the Error that a conversation past its lifetime has ready, for sb.queue_messages.';
revoke all on function sb_internal._lifetime_error() from public;
-- sqlgen:end functions/internal/_lifetime_error.sql
-- sqlgen:begin functions/internal/_lock_catalog.sql sha256:729a79a0256002361fad6c42b04ad089b5837e2918e3e84bbe948547dccfe357
-- Table locks would stop SENDs, and row locks do not protect names that are not there yet.
create or replace function sb_internal._lock_catalog()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform pg_advisory_xact_lock(8420, -1);
end
$$;
comment on function sb_internal._lock_catalog() is
  'Makes DDL verbs one after the other, to the end of the transaction. First in the lock order: taken before anything else, and never by a messaging verb. Grants too, since PostgreSQL fails on privileges changed concurrently.';
revoke all on function sb_internal._lock_catalog() from public;
-- sqlgen:end functions/internal/_lock_catalog.sql
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
-- sqlgen:begin functions/internal/_lock_counter.sql sha256:564e7cbe0050cd9269532a9f7ef7781f6f83a63bfcff32782cd3d43f7bc62fd2
create or replace function sb_internal._lock_counter(conversation_handle uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform 1
     from sb_internal.send_counter as c
    where c.conversation_handle = _lock_counter.conversation_handle
    order by c.conversation_handle desc, c.message_sequence_number desc
    limit 1
      for no key update;
end
$$;
comment on function sb_internal._lock_counter(uuid) is
  'Waits for SENDs on the conversation and keeps further ones out, to the end of the transaction.';
revoke all on function sb_internal._lock_counter(uuid) from public;
-- sqlgen:end functions/internal/_lock_counter.sql
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
-- sqlgen:begin functions/internal/_lock_table.sql sha256:6138eb3fe64b8745ca89c2a4956c1c5d66ddebd3f77b7a15d29c999919eee865
-- Whoever waits for a table lock makes all who come after wait too: so for a fifth of a second at a time
-- (less than deadlock_timeout, so never as the victim of a deadlock), and not for ever.
create or replace function sb_internal._lock_table(target regclass, patience interval)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
  set lock_timeout = '200ms'
as $$
declare
  give_up_at timestamptz := clock_timestamp() + _lock_table.patience;
begin
  while clock_timestamp() < give_up_at loop
    begin
      if _lock_table.target = 'sb_internal.message'::regclass then
        lock table sb_internal.message in access exclusive mode;
      else
        lock table sb_internal.transmission in share row exclusive mode;
      end if;
      return true;
    exception
      when lock_not_available then
        null;
    end;
    perform pg_sleep(random() * 0.1);
  end loop;
  return false;
end
$$;
comment on function sb_internal._lock_table(regclass, interval) is
  'Locks message (access exclusive) or transmission (share row exclusive) to the end of the transaction; false when it could not be had within patience.';
revoke all on function sb_internal._lock_table(regclass, interval) from public;
-- sqlgen:end functions/internal/_lock_table.sql
-- sqlgen:begin functions/internal/_look_again.sql sha256:ca1490613e3e19080c79c985b73e051ddeea227c503059c43ab806e1fac4012c
create or replace function sb_internal._look_again(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (
    select 1
      from sb_internal.message as m
     where m.queue_id = _look_again.queue_id)
  then
    perform sb_internal._arrived(_look_again.queue_id);
  end if;
end
$$;
comment on function sb_internal._look_again(integer) is
  'After DDL that makes messages ready which arrived before: what is due to arriving messages, waiters and notifications, is done for them now.';
revoke all on function sb_internal._look_again(integer) from public;
-- sqlgen:end functions/internal/_look_again.sql
-- sqlgen:begin functions/internal/_lookup.sql sha256:4a72e6683799db3e80a40e1c375e14c17b3c477ab876744f66d6a7d82594fb9c
create or replace function sb_internal._lookup(
  kind text,
  name text,
  if_exists boolean default false,
  out id integer,
  out owner name,
  out acl name[]
)
  returns record
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  case _lookup.kind
    when 'message type' then
      select t.message_type_id, t.owner, '{}'::name[]
        into _lookup.id, _lookup.owner, _lookup.acl
        from sb_internal.message_type as t
       where t.name = _lookup.name or t.sqlserver_name = _lookup.name;
    when 'contract' then
      select c.service_contract_id, c.owner, c.referencers
        into _lookup.id, _lookup.owner, _lookup.acl
        from sb_internal.contract as c
       where c.name = _lookup.name or c.sqlserver_name = _lookup.name;
    when 'queue' then
      select q.queue_id, q.owner, q.receivers
        into _lookup.id, _lookup.owner, _lookup.acl
        from sb_internal.queue as q
       where q.name = _lookup.name;
    when 'service' then
      select s.service_id, s.owner, s.senders
        into _lookup.id, _lookup.owner, _lookup.acl
        from sb_internal.service as s
       where s.name = _lookup.name or s.sqlserver_name = _lookup.name;
    when 'route' then
      select r.route_id, r.owner, '{}'::name[]
        into _lookup.id, _lookup.owner, _lookup.acl
        from sb_internal.route as r
       where r.name = _lookup.name;
    when 'broker priority' then
      select p.priority_id
        into _lookup.id
        from sb_internal.conversation_priority as p
       where p.name = _lookup.name;
  end case;
  if _lookup.id is null and _lookup.if_exists is not true then
    perform sb_internal._require_name(_lookup.name, _lookup.kind, 128);
    if _lookup.kind = 'queue' then
      perform sb_internal._raise('S0208', array[_lookup.name]);
    elsif _lookup.kind = 'service' then
      perform sb_internal._raise('S8423', array[_lookup.name]);
    end if;
    perform sb_internal._raise('42704', array[_lookup.kind, _lookup.name]);
  end if;
end
$$;
comment on function sb_internal._lookup(text, text, boolean) is
  'Id, owner and access list of an object, system objects under either of their names; nulls when it is missing and if_exists accepts that. Errors: 42602, S0208 queue, S8423 service, 42704.';
revoke all on function sb_internal._lookup(text, text, boolean) from public;
-- sqlgen:end functions/internal/_lookup.sql
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
-- sqlgen:begin functions/internal/_make_state_table.sql sha256:98c04ceec98c0911005df771b25c79c4a2f34b95eeb0a49b03df4f1f8f68d165
-- Runs what the caller wrote (the columns) as the caller: no set clause, operators qualified.
create or replace function sb_internal._make_state_table(
  table_name text,
  columns text,
  drop_on_end boolean,
  if_not_exists boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
as $$
declare
  target pg_catalog.text;
begin
  if _make_state_table.table_name is null or _make_state_table.table_name operator(pg_catalog.=) '' then
    raise exception using errcode = '42602', message = 'state table name may not be null or empty';
  end if;
  -- Quoted again part by part, so that the name is a name and nothing else.
  select pg_catalog.string_agg(pg_catalog.quote_ident(p.part), '.' order by p.ordinality)
    into target
    from pg_catalog.unnest(pg_catalog.parse_ident(_make_state_table.table_name)) with ordinality as p (part, ordinality);
  execute 'create table ' operator(pg_catalog.||) case when _make_state_table.if_not_exists
      then 'if not exists ' else '' end operator(pg_catalog.||) target
    operator(pg_catalog.||) ' (conversation_group_id pg_catalog.uuid primary key'
    operator(pg_catalog.||) case when _make_state_table.drop_on_end
      then ' references sb.conversation_group (conversation_group_id) on delete cascade' else '' end
    operator(pg_catalog.||) case when pg_catalog.btrim(_make_state_table.columns) operator(pg_catalog.<>) ''
      then ', ' operator(pg_catalog.||) _make_state_table.columns else '' end
    operator(pg_catalog.||) ')';
end
$$;
comment on function sb_internal._make_state_table(text, text, boolean, boolean) is
  'Second step of create_state_table: creates the table with the rights and the search path of the caller.';
revoke all on function sb_internal._make_state_table(text, text, boolean, boolean) from public;
-- sqlgen:end functions/internal/_make_state_table.sql
-- sqlgen:begin functions/internal/_may.sql sha256:fc2d4ee0b765bd5650dd693eb5fdd247acd76629db7ec86dd9f1c8eab1e46045
create or replace function sb_internal._may(caller name, owner name, acl name[])
  returns boolean
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _may.caller = _may.owner or _may.caller = any (_may.acl) or 'public' = any (_may.acl) then
    return true;
  end if;
  -- Membership, by name: lists may hold roles that a restore did not bring along.
  return exists (
      select 1
        from unnest(_may.acl || _may.owner) as a (role)
       where pg_has_role(to_regrole(quote_ident(_may.caller)), to_regrole(quote_ident(a.role)), 'usage'))
    or sb_internal._is_admin(_may.caller);
end
$$;
comment on function sb_internal._may(name, name, name[]) is
  'Whether the caller has a right: he is the owner, in the list (public stands for everybody), has the rights of one who is, or is an admin. Roles that do not exist have none.';
revoke all on function sb_internal._may(name, name, name[]) from public;
-- sqlgen:end functions/internal/_may.sql
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
-- sqlgen:begin functions/internal/_may_use_group.sql sha256:13413c053374ed01d6c21cac95f3e9c5bf413a1f9a77eed409dfef6e8bd16867
create or replace function sb_internal._may_use_group(caller name, conversation_group_id uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  q record;
begin
  if _may_use_group.conversation_group_id is null then
    perform sb_internal._raise('S8420');
  end if;
  select o.name, o.owner, o.receivers
    into q
    from sb.conversation_group as g
    join sb_internal.service as s on s.service_id = g.service_id
    join sb_internal.queue as o on o.queue_id = s.queue_id
   where g.conversation_group_id = _may_use_group.conversation_group_id;
  if not found then
    perform sb_internal._raise('S8436', array[_may_use_group.conversation_group_id::text]);
  end if;
  if not sb_internal._may(_may_use_group.caller, q.owner, q.receivers) then
    perform sb_internal._raise('42501', array[_may_use_group.caller::text, 'receive from queue ' || q.name]);
  end if;
end
$$;
comment on function sb_internal._may_use_group(name, uuid) is
  'Error unless the group exists (S8436) and the caller may receive from its queue (42501).';
revoke all on function sb_internal._may_use_group(name, uuid) from public;
-- sqlgen:end functions/internal/_may_use_group.sql
-- sqlgen:begin functions/internal/_monitor_arrival.sql sha256:07d54bda41e2d951a47325c1006056c355712fb9a63ffdebd6dae39ec0a9c7e4
create or replace function sb_internal._monitor_arrival(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- Who finds the row locked leaves the event to its holder; maintain looks again.
  perform 1
     from sb_internal.queue_monitor as m
    where m.queue_id = _monitor_arrival.queue_id
      and m.state = 'INACTIVE'
      for no key update skip locked;
  if found then
    update sb_internal.queue_monitor as m
       set state = 'NOTIFIED', last_activated_time = sb_internal._now()
     where m.queue_id = _monitor_arrival.queue_id;
    perform sb_internal._send_event(_monitor_arrival.queue_id, 'QUEUE_ACTIVATION');
  end if;
end
$$;
comment on function sb_internal._monitor_arrival(integer) is
  'A message arrived on a queue that a QUEUE_ACTIVATION notification watches: INACTIVE becomes NOTIFIED and the event is sent (R-316, R-340). Never waits.';
revoke all on function sb_internal._monitor_arrival(integer) from public;
-- sqlgen:end functions/internal/_monitor_arrival.sql
-- sqlgen:begin functions/internal/_monitor_receive.sql sha256:52c51cf8715a5662fbb8bb815d82c2211a7431b1f7bd1670880d124d41784bd5
create or replace function sb_internal._monitor_receive(queue_id integer, got_messages boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform 1
     from sb_internal.queue_monitor as m
    where m.queue_id = _monitor_receive.queue_id
      and (not _monitor_receive.got_messages or m.state <> 'RECEIVES_OCCURRING')
      for no key update skip locked;
  if found then
    update sb_internal.queue_monitor as m
       set state = case when _monitor_receive.got_messages then 'RECEIVES_OCCURRING' else 'INACTIVE' end,
           last_empty_rowset_time = case when _monitor_receive.got_messages then m.last_empty_rowset_time
             else sb_internal._now() end
     where m.queue_id = _monitor_receive.queue_id;
  end if;
end
$$;
comment on function sb_internal._monitor_receive(integer, boolean) is
  'Somebody received from a watched queue: RECEIVES_OCCURRING, or INACTIVE when nothing was there. Never waits.';
revoke all on function sb_internal._monitor_receive(integer, boolean) from public;
-- sqlgen:end functions/internal/_monitor_receive.sql
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
-- sqlgen:begin functions/internal/_multicast.sql sha256:5294836d28e56a893918405a5a5019c036515a30e1289cd6a80e55565f364f12
create or replace function sb_internal._multicast(
  caller name,
  conversation_handles uuid[],
  message_type text,
  message_body bytea
)
  returns sb_internal.unsettled
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  conversation uuid;
  previous uuid;
  pending sb_internal.unsettled;
  unsettled sb_internal.unsettled;
begin
  if _multicast.conversation_handles is null then
    perform sb_internal._raise('S8418');
  end if;
  perform sb_internal._lock_counters(_multicast.conversation_handles);
  for conversation in
    select h.handle
      from unnest(_multicast.conversation_handles) as h (handle)
     order by h.handle nulls first
  loop
    if conversation is null then
      perform sb_internal._raise('S8418');
    elsif conversation = previous then
      perform sb_internal._raise('SB001', array[conversation::text]);
    end if;
    previous := conversation;
    pending := sb_internal._send(_multicast.caller, conversation, _multicast.message_type,
      array[_multicast.message_body], false);
    if pending.validator is not null then
      -- One verdict for all who wait for it.
      pending.conversation_handles := coalesce(unsettled.conversation_handles, '{}') || conversation;
      unsettled := pending;
    end if;
  end loop;
  return case when unsettled.validator is not null then unsettled end;
end
$$;
comment on function sb_internal._multicast(name, uuid[], text, bytea) is
  'SEND on several conversations behind sb.multicast: all or none, since a failing one fails the statement. Returns what a validator has to settle, as _send does.';
revoke all on function sb_internal._multicast(name, uuid[], text, bytea) from public;
-- sqlgen:end functions/internal/_multicast.sql
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
-- sqlgen:begin functions/internal/_next_catalog_ids.sql sha256:e54bf297e364af2675c858b3e1e807d53cc1b32a1dbb297cc7abf618a1712761
create or replace function sb_internal._next_catalog_ids()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform setval('sb_internal.message_type_id', 1 + greatest(65535, (
    select max(t.message_type_id) from sb_internal.message_type as t)), false);
  perform setval('sb_internal.service_contract_id', 1 + greatest(65535, (
    select max(c.service_contract_id) from sb_internal.contract as c)), false);
  perform setval('sb_internal.queue_id', 1 + greatest(65535, (
    select max(q.queue_id) from sb_internal.queue as q)), false);
  perform setval('sb_internal.service_id', 1 + greatest(65535, (
    select max(s.service_id) from sb_internal.service as s)), false);
  perform setval('sb_internal.route_id', 1 + greatest(65535, (
    select max(r.route_id) from sb_internal.route as r)), false);
  perform setval('sb_internal.priority_id', 1 + greatest(65535, (
    select max(p.priority_id) from sb_internal.conversation_priority as p)), false);
  perform setval('sb_internal.event_notification_id', 1 + greatest(0, (
    select max(n.event_notification_id) from sb_internal.event_notification as n)), false);
end
$$;
comment on function sb_internal._next_catalog_ids() is
  'Puts the id sequences of the catalog behind every id in use, after a restore of data alone.';
revoke all on function sb_internal._next_catalog_ids() from public;
-- sqlgen:end functions/internal/_next_catalog_ids.sql
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
-- sqlgen:begin functions/internal/_now.sql sha256:3320ae45a149b96851d1a390d14080319213d79003b8f8bae88979711d84c62f
-- The one clock. clock_timestamp, not now(): an old transaction must see a timer that fell due
-- after it began. No set clause, so that the planner inlines it.
create or replace function sb_internal._now()
  returns timestamptz
  language sql
  volatile
  parallel safe
  security invoker
begin atomic
  select pg_catalog.clock_timestamp();
end;
comment on function sb_internal._now() is
  'The clock of the broker: the database server''s.';
revoke all on function sb_internal._now() from public;
-- sqlgen:end functions/internal/_now.sql
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
-- sqlgen:begin functions/internal/_parked.sql sha256:1da0239cd20a14578f4f30165f7fb14384bb6f54bc5ba20d5b9aea0c72960ceb
create or replace function sb_internal._parked(e sb_internal.endpoint, is_waiting boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not _parked.is_waiting then
    update sb_internal.send_counter as c
       set is_waiting = true
     where c.conversation_handle = e.conversation_handle;
  end if;
  -- The way may have been opened between our look at it and our insert, which waited for that
  -- (_deliver_now): so look again. And tell the activator, for the cases that escape both.
  if sb_internal._undeliverable(e.far_service, e.far_broker_instance) is null then
    perform sb_internal._deliver_conversation(e);
  end if;
  perform pg_notify('sb_events', json_build_object('event', 'transmission_waiting')::text);
end
$$;
comment on function sb_internal._parked(sb_internal.endpoint, boolean) is
  'After a row was put into the transmission queue: marks the conversation (is_waiting: it is already), moves it on if it may, and tells the activator, so that no row is stranded. The caller holds the counter lock.';
revoke all on function sb_internal._parked(sb_internal.endpoint, boolean) from public;
-- sqlgen:end functions/internal/_parked.sql
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
-- sqlgen:begin functions/internal/_poison_limit_reached.sql sha256:f12eb8262c247f0857ec0430ced37d2a97068a3cee560e3f11e820479d95e117
create or replace function sb_internal._poison_limit_reached(queue_id integer)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- The alarm is raised by the receive after which one more rollback may reach the limit, so that the
  -- others need not walk the ring.
  if coalesce(sb_internal._cell(_poison_limit_reached.queue_id, 'poison_alarm'), 0) = 0 then
    return false;
  end if;
  return (
    select sb_internal._poison_count(_poison_limit_reached.queue_id) >= b.poison_message_threshold
      from sb_internal.broker as b
     where b.singleton);
end
$$;
comment on function sb_internal._poison_limit_reached(integer) is
  'Whether so many receives in a row were rolled back that the queue is off.';
revoke all on function sb_internal._poison_limit_reached(integer) from public;
-- sqlgen:end functions/internal/_poison_limit_reached.sql
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
-- sqlgen:begin functions/internal/_post.sql sha256:5585e8485fb997275e56bc2e78c48a37c3bf211ee6707e6dc060700ffeb620ce
create or replace function sb_internal._post(
  conversation_handle uuid,
  message_type_id integer,
  message_body bytea
)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  message_type text;
  owner name;
begin
  select t.name
    into message_type
    from sb_internal.message_type as t
   where t.message_type_id = _post.message_type_id;
  select q.owner
    into owner
    from sb_internal.endpoint as e
    join sb_internal.service as s on s.service_id = e.service_id
    join sb_internal.queue as q on q.queue_id = s.queue_id
   where e.conversation_handle = _post.conversation_handle;
  perform sb_internal._send(owner, _post.conversation_handle, message_type, array[_post.message_body], false, true);
  return true;
exception
  -- The peer may end at any moment: only SEND itself, under its lock, knows.
  when sqlstate 'S8426' or sqlstate 'S8429' then
    return false;
end
$$;
comment on function sb_internal._post(uuid, integer, bytea) is
  'Sends on behalf of the broker itself; false when the conversation can no longer send.';
revoke all on function sb_internal._post(uuid, integer, bytea) from public;
-- sqlgen:end functions/internal/_post.sql
-- sqlgen:begin functions/internal/_priority.sql sha256:5a12a2d9fe9adfc42f7bdf648dc00af5e6d472cf17f3b5b4e90860d8137bb634
create or replace function sb_internal._priority(
  service_contract_id integer,
  local_service_id integer,
  remote_service_name text
)
  returns smallint
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return coalesce((
    select p.priority
      from sb_internal.conversation_priority as p
     where (p.service_contract_id is null or p.service_contract_id = _priority.service_contract_id)
       and (p.local_service_id is null or p.local_service_id = _priority.local_service_id)
       and (p.remote_service_name is null or p.remote_service_name = _priority.remote_service_name)
     order by (p.service_contract_id is not null) desc, (p.local_service_id is not null) desc,
       (p.remote_service_name is not null) desc
     limit 1), 5::smallint);
end
$$;
comment on function sb_internal._priority(integer, integer, text) is
  'Priority of an endpoint at its creation (R-098): contract before local service before remote service; 5 when nothing matches.';
revoke all on function sb_internal._priority(integer, integer, text) from public;
-- sqlgen:end functions/internal/_priority.sql
-- sqlgen:begin functions/internal/_prune_roles.sql sha256:0bc166dfb328734464b2e09cb6a1cb964d4eb04b0db3ebabf9bc8b647b447d6f
create or replace function sb_internal._prune_roles()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  existing name[] := array(select r.rolname from pg_roles as r) || name 'public';
begin
  update sb_internal.queue as q
     set receivers = array(select r.role from unnest(q.receivers) as r (role) where r.role = any (existing))
   where not q.receivers <@ existing;
  update sb_internal.service as s
     set senders = array(select r.role from unnest(s.senders) as r (role) where r.role = any (existing))
   where not s.senders <@ existing;
  update sb_internal.contract as c
     set referencers = array(select r.role from unnest(c.referencers) as r (role) where r.role = any (existing))
   where not c.referencers <@ existing;
  update sb_internal.broker as b
     set admins = array(select r.role from unnest(b.admins) as r (role) where r.role = any (existing))
   where not b.admins <@ existing;
end
$$;
comment on function sb_internal._prune_roles() is
  'Takes roles that no longer exist out of the access lists, so that a new role of the same name inherits nothing.';
revoke all on function sb_internal._prune_roles() from public;
-- sqlgen:end functions/internal/_prune_roles.sql
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
-- sqlgen:begin functions/internal/_queue_is_on.sql sha256:75fadc62c878e2fa673c076e5264357c4e5250db07b6ceab20acc1854172a429
create or replace function sb_internal._queue_is_on(queue_id integer)
  returns boolean
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select q.is_enabled
           and not (q.is_poison_message_handling_enabled and sb_internal._poison_limit_reached(q.queue_id))
      from sb_internal.queue as q
     where q.queue_id = _queue_is_on.queue_id);
end
$$;
comment on function sb_internal._queue_is_on(integer) is
  'Whether a queue takes and gives messages: switched on, and its poison limit not reached (which is OFF from that moment, before anybody has written it down).';
revoke all on function sb_internal._queue_is_on(integer) from public;
-- sqlgen:end functions/internal/_queue_is_on.sql
-- sqlgen:begin functions/internal/_queue_sequences.sql sha256:d6df28def6629db8efc4065605694d260f398de8a50240db66637dbadf1daa54
create or replace function sb_internal._queue_sequences(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  cell text;
begin
  for cell in
    select 'queue_' || _queue_sequences.queue_id || '_' || c.cell
      from (
        select unnest(array['poison_position', 'poison_alarm', 'stamp', 'search'])
         union all
        select 'poison_' || g.slot
          from generate_series(0, 15) as g (slot)
         union all
        select 'hint_' || p.level
          from sb_internal.broker as b
         cross join unnest(b.priority_levels) as p (level)
         where b.singleton
      ) as c (cell)
     where to_regclass('sb_internal.queue_' || _queue_sequences.queue_id || '_' || c.cell) is null
  loop
    execute format('create sequence sb_internal.%I as bigint minvalue 0 start 0 cache 1 no cycle', cell);
  end loop;
  if sb_internal._cell(_queue_sequences.queue_id, 'stamp') is null then
    perform setval(('sb_internal.queue_' || _queue_sequences.queue_id || '_stamp')::regclass, sb_internal._stamp());
  end if;
end
$$;
comment on function sb_internal._queue_sequences(integer) is
  'Creates those of a queue''s non-transactional cells that are missing: poison ring, stamp, time of the next full search, and a search hint for each priority level. Readable as null until first written; the stamp is written.';
revoke all on function sb_internal._queue_sequences(integer) from public;
-- sqlgen:end functions/internal/_queue_sequences.sql
-- sqlgen:begin functions/internal/_queue_statistics.sql sha256:d4083c8e4bf7d4ffad010cf7b290f9206f2aa1284ccd7cb38f1bb39de8e28aa3
-- Plans that avoid sequential scans at all costs are taken for expensive: compiling them would take longer
-- than running them, hence jit off.
create or replace function sb_internal._queue_statistics(caller name)
  returns table (queue_name text, queue_id integer, is_on boolean, ready_messages bigint, is_estimate boolean,
    blocked_groups bigint, oldest_ready_age interval, transmission_backlog bigint, consecutive_rollbacks integer,
    last_receive_time timestamptz, last_empty_rowset_time timestamptz, last_activated_time timestamptz)
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
as $$
declare
  most constant integer := 10000;
  visible integer[] := sb_internal._visible(_queue_statistics.caller, 'queue');
  levels smallint[] := (select b.priority_levels from sb_internal.broker as b where b.singleton);
  oldest timestamptz;
  plan json;
begin
  for queue_name, queue_id, last_empty_rowset_time, last_activated_time in
    select q.name, q.queue_id, m.last_empty_rowset_time, m.last_activated_time
      from sb_internal.queue as q
      left join sb_internal.queue_monitor as m on m.queue_id = q.queue_id
     where q.queue_id = any (visible)
     order by q.name
  loop
    -- A receive notes when the next full search may be, a tenth of a second or more ahead.
    last_receive_time := (
      select least(sb_internal._now(), to_timestamp(c.looked::double precision / 1000 - 0.1))
        from sb_internal._cell(queue_id, 'search') as c (looked)
       where c.looked > 0);
    is_on := sb_internal._queue_is_on(queue_id);
    consecutive_rollbacks := sb_internal._poison_count(queue_id);

    -- Count as far as it is cheap; beyond, the planner knows well enough.
    select count(*)
      into ready_messages
      from (
        select 1
          from sb_internal.message as m
         where m.queue_id = _queue_statistics.queue_id
         limit most
      ) as c;
    is_estimate := ready_messages = most;
    if is_estimate then
      execute 'explain (format json) select 1 from sb_internal.message as m where m.queue_id = ' || queue_id into plan;
      ready_messages := greatest(most, (plan #>> '{0,Plan,Plan Rows}')::numeric::bigint);
    end if;

    select min(f.message_enqueue_time)
      into oldest
      from unnest(levels) as p (level)
     cross join lateral (
       select m.message_enqueue_time
         from sb_internal.message as m
        where m.queue_id = _queue_statistics.queue_id
          and m.priority = p.level
        order by m.queuing_order
        limit 1
     ) as f;
    oldest_ready_age := sb_internal._now() - oldest;

    -- Sub-selects and limits leave the planner no way to start from the big tables.
    select count(*)
      into blocked_groups
      from sb_internal.group_backoff as b
     where b.not_before > sb_internal._now()
       and (select s.queue_id
              from sb.conversation_group as g
              join sb_internal.service as s on s.service_id = g.service_id
             where g.conversation_group_id = b.conversation_group_id) = _queue_statistics.queue_id;
    select count(*)
      into transmission_backlog
      from (
        select 1
          from sb_internal.service as s
         cross join lateral (
           select 1
             from sb_internal.transmission as t
            where t.to_service_name = s.name
            limit most
         ) as t
         where s.queue_id = _queue_statistics.queue_id
         limit most
      ) as c;
    return next;
  end loop;
end
$$;
comment on function sb_internal._queue_statistics(name) is
  'Behind view sb.queue_statistics: looks at no more than 10,000 messages of a queue.';
revoke all on function sb_internal._queue_statistics(name) from public;
-- sqlgen:end functions/internal/_queue_statistics.sql
-- sqlgen:begin functions/internal/_queues_on.sql sha256:8c44860334aaa9a209e85bd9b2581abd17483fa9ad6c03a9f85d568de6db7cd8
create or replace function sb_internal._queues_on()
  returns integer[]
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select q.queue_id
      from sb_internal.queue as q
     where sb_internal._queue_is_on(q.queue_id));
end
$$;
comment on function sb_internal._queues_on() is
  'Ids of the queues that are on, poison limits included; for views, whose functions run as whoever reads them.';
revoke all on function sb_internal._queues_on() from public;
-- sqlgen:end functions/internal/_queues_on.sql
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
-- sqlgen:begin functions/internal/_refuse_message_type.sql sha256:674e89317c144967167d9013361fdeef9cc9ca4ccf8e881e3f1c6107e9b8a868
create or replace function sb_internal._refuse_message_type(
  message_type text,
  service_contract_id integer,
  is_initiator boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_name(_refuse_message_type.message_type, 'message type', 128);
  if not exists (
    select 1
      from sb_internal.message_type as t
     where _refuse_message_type.message_type in (t.name, t.sqlserver_name))
  then
    perform sb_internal._raise('S8428', array[_refuse_message_type.message_type]);
  elsif not exists (
    select 1
      from sb_internal.contract_message as m
     where m.service_contract_id = _refuse_message_type.service_contract_id
       and m.message_type_name = _refuse_message_type.message_type)
  then
    perform sb_internal._raise('S8431', array[_refuse_message_type.message_type,
      coalesce((
        select c.name
          from sb_internal.contract as c
         where c.service_contract_id = _refuse_message_type.service_contract_id),
        _refuse_message_type.service_contract_id::text)]);
  elsif _refuse_message_type.is_initiator then
    perform sb_internal._raise('S8432', array[_refuse_message_type.message_type]);
  else
    perform sb_internal._raise('S8434', array[_refuse_message_type.message_type]);
  end if;
end
$$;
comment on function sb_internal._refuse_message_type(text, integer, boolean) is
  'Says why this side may not send the message type: unknown (S8428), not in the contract (S8431), the targets (S8432) or the initiators (S8434).';
revoke all on function sb_internal._refuse_message_type(text, integer, boolean) from public;
-- sqlgen:end functions/internal/_refuse_message_type.sql
-- sqlgen:begin functions/internal/_remove_event_notification.sql sha256:1dfe57e3ea8e8cc6513a8d93d438817559a8f62eba6074798c3f61d297532ac0
create or replace function sb_internal._remove_event_notification(event_notification_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  n sb_internal.event_notification;
begin
  delete from sb_internal.event_notification as o
   where o.event_notification_id = _remove_event_notification.event_notification_id
  returning o.* into n;
  update sb_internal.queue as q
     set has_activation_event = false
   where q.queue_id = n.queue_id
     and q.has_activation_event
     and not exists (
       select 1
         from sb_internal.event_notification as o
        where o.queue_id = n.queue_id
          and o.event = 'QUEUE_ACTIVATION');
  if exists (
    select 1
      from sb_internal.endpoint as e
     where e.conversation_handle = n.conversation_handle
       and e.state <> 'DO')
  then
    perform sb_internal._end_conversation(current_user, n.conversation_handle, null, null, false);
  end if;
end
$$;
comment on function sb_internal._remove_event_notification(integer) is
  'Deletes a notification and ends its dialog (R-110). Locks the notification, then queue row, then the dialog.';
revoke all on function sb_internal._remove_event_notification(integer) from public;
-- sqlgen:end functions/internal/_remove_event_notification.sql
-- sqlgen:begin functions/internal/_require_admin.sql sha256:64d08241279b382b90427e5815aaaaf1e39fdc2c274949bff6f4eb3b0518a5e4
create or replace function sb_internal._require_admin(caller name, what text)
  returns void
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not sb_internal._is_admin(_require_admin.caller) then
    perform sb_internal._raise('42501', array[_require_admin.caller::text, _require_admin.what]);
  end if;
end
$$;
comment on function sb_internal._require_admin(name, text) is
  'Error 42501 "role … may not <what>" unless the caller is an admin.';
revoke all on function sb_internal._require_admin(name, text) from public;
-- sqlgen:end functions/internal/_require_admin.sql
-- sqlgen:begin functions/internal/_require_free_name.sql sha256:f62459c2871c44ec334017f023f7d94d546a65431fd107578cfd824c2aa0d487
create or replace function sb_internal._require_free_name(kind text, name text, taken boolean, if_not_exists boolean)
  returns boolean
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _require_free_name.taken and _require_free_name.if_not_exists is not true then
    perform sb_internal._raise('42710', array[_require_free_name.kind, _require_free_name.name]);
  end if;
  return not _require_free_name.taken;
end
$$;
comment on function sb_internal._require_free_name(text, text, boolean, boolean) is
  'Whether a create verb has to create: false when the name is taken and if_not_exists accepts that. Error 42710.';
revoke all on function sb_internal._require_free_name(text, text, boolean, boolean) from public;
-- sqlgen:end functions/internal/_require_free_name.sql
-- sqlgen:begin functions/internal/_require_name.sql sha256:6863750dd40d7e15c2c4bb5e748de40fc7f8f1368d589e4d2e6906a9475331dc
create or replace function sb_internal._require_name(value text, kind text, max_length integer)
  returns void
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _require_name.value is null or char_length(_require_name.value) not between 1 and _require_name.max_length then
    perform sb_internal._raise('42602', array[
      _require_name.kind,
      case when _require_name.value is null then '(null)' when _require_name.value = '' then '(empty)'
        else left(_require_name.value, 256) end,
      _require_name.max_length::text]);
  end if;
end
$$;
comment on function sb_internal._require_name(text, text, integer) is
  'Error 42602 unless the name has 1 to max_length characters (not bytes).';
revoke all on function sb_internal._require_name(text, text, integer) from public;
-- sqlgen:end functions/internal/_require_name.sql
-- sqlgen:begin functions/internal/_require_owner.sql sha256:297707df03ce7c81886a34e6f990a1769f20513602b84e9a025a375554bc0fc4
create or replace function sb_internal._require_owner(caller name, owner name, what text)
  returns void
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  if not sb_internal._may(_require_owner.caller, _require_owner.owner, '{}') then
    perform sb_internal._raise('42501', array[_require_owner.caller::text, _require_owner.what]);
  end if;
end
$$;
comment on function sb_internal._require_owner(name, name, text) is
  'Error 42501 "role … may not <what>" unless the caller is the owner, a member of the owner, or an admin.';
revoke all on function sb_internal._require_owner(name, name, text) from public;
-- sqlgen:end functions/internal/_require_owner.sql
-- sqlgen:begin functions/internal/_require_role.sql sha256:af89951b371aa61980f64e004ade3940439593a90fb3e32e18ed6d97dc4ca22e
create or replace function sb_internal._require_role(role name)
  returns void
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regrole(quote_ident(_require_role.role)) is null then
    perform sb_internal._raise('42704', array['role', coalesce(_require_role.role::text, '(null)')]);
  end if;
end
$$;
comment on function sb_internal._require_role(name) is
  'Error 42704 unless the role exists; public is no role here.';
revoke all on function sb_internal._require_role(name) from public;
-- sqlgen:end functions/internal/_require_role.sql
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
-- sqlgen:begin functions/internal/_require_user_object.sql sha256:537d357f4a67bae5e9920ef17d3bea575645a816889ee98c8cbf34fa96f2be04
create or replace function sb_internal._require_user_object(id integer, what text)
  returns void
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _require_user_object.id < 65536 then
    perform sb_internal._raise('S9663', array[_require_user_object.what]);
  end if;
end
$$;
comment on function sb_internal._require_user_object(integer, text) is
  'Error S9663 when the id is one of the system''s (R-011, R-012).';
revoke all on function sb_internal._require_user_object(integer, text) from public;
-- sqlgen:end functions/internal/_require_user_object.sql
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
-- sqlgen:begin functions/internal/_route_changed.sql sha256:20a2465d991e5e45becf44d7f60eb52be8adf26288ef9cd068a03049273a9242
create or replace function sb_internal._route_changed(event text, r sb_internal.route)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if r.address = 'LOCAL' then
    perform sb_internal._deliver_now(null, r.remote_service_name);
  end if;
  perform sb_internal._announce(_route_changed.event, 'route', r.name);
end
$$;
comment on function sb_internal._route_changed(text, sb_internal.route) is
  'Lets messages take a new route: local ones at once, the others by the activator, which is told.';
revoke all on function sb_internal._route_changed(text, sb_internal.route) from public;
-- sqlgen:end functions/internal/_route_changed.sql
-- sqlgen:begin functions/internal/_route_expiry.sql sha256:3010100247710707eed6fd1e9acc209395f97e5667daefc5f153b7d91f018b70
create or replace function sb_internal._route_expiry(lifetime interval)
  returns timestamptz
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if _route_expiry.lifetime <= interval '0' or extract(epoch from _route_expiry.lifetime) > 2147483647 then
    perform sb_internal._raise('S9746', array[_route_expiry.lifetime::text]);
  end if;
  return sb_internal._now() + _route_expiry.lifetime;
end
$$;
comment on function sb_internal._route_expiry(interval) is
  'When a route with this lifetime expires, null for never. Error S9746 unless it is above 0 and at most 2147483647 seconds (R-083).';
revoke all on function sb_internal._route_expiry(interval) from public;
-- sqlgen:end functions/internal/_route_expiry.sql
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
-- sqlgen:begin functions/internal/_send_validated.sql sha256:b9599350af7bb73e842450a1273c7384fc8784d2cc163526ca96e14911a9d838
create or replace function sb_internal._send_validated(
  caller name,
  conversation_handles uuid[],
  message_type text,
  bodies bytea[],
  is_text boolean,
  verdict boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  conversation uuid;
begin
  foreach conversation in array _send_validated.conversation_handles loop
    if _send_validated.verdict then
      perform sb_internal._send(_send_validated.caller, conversation, _send_validated.message_type,
        _send_validated.bodies, _send_validated.is_text, true);
    else
      perform sb_internal._invalid_body(e, _send_validated.message_type, t.validation)
         from sb_internal.endpoint as e
        cross join sb_internal.message_type as t
        where e.conversation_handle = conversation
          and t.name = _send_validated.message_type;
    end if;
  end loop;
end
$$;
comment on function sb_internal._send_validated(name, uuid[], text, bytea[], boolean, boolean) is
  'Second half of SEND for a message type with a validator, after the validator has run. The first half has checked everything else and holds the endpoint locks.';
revoke all on function sb_internal._send_validated(name, uuid[], text, bytea[], boolean, boolean) from public;
-- sqlgen:end functions/internal/_send_validated.sql
-- sqlgen:begin functions/internal/_set_activation.sql sha256:abe7b4b363b8319389374e0962d71d8410e2f2d0178240e1a5edeaac76f46fca
create or replace function sb_internal._set_activation(
  caller name,
  queue_id integer,
  activation_procedure text,
  max_queue_readers integer,
  activation_enabled boolean,
  execute_as name
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  q sb_internal.queue;
  is_first boolean;
begin
  select o.*
    into q
    from sb_internal.queue as o
   where o.queue_id = _set_activation.queue_id;
  if _set_activation.max_queue_readers not between 0 and 32767 then
    perform sb_internal._raise('22023', array['max_queue_readers must be between 0 and 32767']);
  end if;
  -- The first procedure makes activation, which is born switched on; a later one leaves the switch (R-046).
  is_first := q.activation_procedure is null;
  if _set_activation.activation_procedure is not null then
    q.activation_procedure := sb_internal._activation_procedure(_set_activation.activation_procedure);
  end if;
  q.execute_as := coalesce(_set_activation.execute_as, q.execute_as,
    case when q.activation_procedure is not null then q.owner end);
  q.max_readers := coalesce(_set_activation.max_queue_readers, q.max_readers,
    case when q.activation_procedure is not null then 1 end);
  q.is_activation_enabled := q.activation_procedure is not null
    and coalesce(_set_activation.activation_enabled, is_first or q.is_activation_enabled);

  if _set_activation.activation_procedure is not null or _set_activation.execute_as is not null then
    perform sb_internal._require_run_as(_set_activation.caller, q.execute_as);
  end if;
  if q.is_activation_enabled and q.has_activation_event then
    perform sb_internal._raise('S9717', array[q.name]);
  end if;
  update sb_internal.queue as o
     set activation_procedure = q.activation_procedure,
         max_readers = q.max_readers,
         is_activation_enabled = q.is_activation_enabled,
         execute_as = q.execute_as
   where o.queue_id = _set_activation.queue_id;
end
$$;
comment on function sb_internal._set_activation(name, integer, text, integer, boolean, name) is
  'Activation settings of a queue; null leaves one as it is.';
revoke all on function sb_internal._set_activation(name, integer, text, integer, boolean, name) from public;
-- sqlgen:end functions/internal/_set_activation.sql
-- sqlgen:begin functions/internal/_set_option.sql sha256:5f6db14f17bbb6f87426c3835efb1d0213cb4812d3ab3a79e4b5f270d0456e8f
create or replace function sb_internal._set_option(caller name, name text, value text)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  is_on boolean := case _set_option.value when 'on' then true when 'off' then false end;
begin
  perform sb_internal._require_admin(_set_option.caller, 'set options');
  perform sb_internal._lock_catalog();
  if _set_option.name = 'system_names' and _set_option.value in ('documented', 'sqlserver') then
    update sb_internal.broker as b
       set system_names = _set_option.value
     where b.singleton;
  elsif _set_option.name = 'honor_broker_priority' and is_on is not null then
    update sb_internal.broker as b
       set is_honor_broker_priority_on = is_on
     where b.singleton;
  elsif _set_option.name = 'validate_on_send' and is_on is not null then
    update sb_internal.broker as b
       set is_validate_on_send = is_on
     where b.singleton;
  elsif _set_option.name = 'poison_message_threshold' and _set_option.value ~ '^0*[1-9][0-9]{0,8}$' then
    update sb_internal.broker as b
       set poison_message_threshold = _set_option.value::integer
     where b.singleton;
    -- Who is one rollback away from the limit has changed: everybody has to look.
    perform setval(('sb_internal.queue_' || q.queue_id || '_poison_alarm')::regclass, 1),
            setval(('sb_internal.queue_' || q.queue_id || '_search')::regclass, 0)
       from sb_internal.queue as q;
  elsif _set_option.name in ('system_names', 'honor_broker_priority', 'validate_on_send', 'poison_message_threshold') then
    perform sb_internal._raise('22023', array[format('option %s does not take the value %s', _set_option.name,
      coalesce(_set_option.value, '(null)'))]);
  else
    perform sb_internal._raise('22023', array['there is no option ' || coalesce(_set_option.name, '(null)')]);
  end if;
  perform sb_internal._announce('option_set', 'option', _set_option.name);
end
$$;
comment on function sb_internal._set_option(name, text, text) is
  'Behind sb.set_option.';
revoke all on function sb_internal._set_option(name, text, text) from public;
-- sqlgen:end functions/internal/_set_option.sql
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
-- sqlgen:begin functions/internal/_settle.sql sha256:78659ebeb1800ca92aea430c025983fd863fa11c5a511060dd27f47f8c8fef70
-- Deliberately strict: with nothing to settle the call costs nothing.
-- There is no set clause for search_path: the validator runs under the sender's. The setting there is only keeps
-- the planner from reading this body at every SEND in order to inline it.
create or replace function sb_internal._settle(unsettled sb_internal.unsettled)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
  strict
  set check_function_bodies = off
begin atomic
  select sb_internal._send_validated(current_user, (_settle.unsettled).conversation_handles,
    (_settle.unsettled).message_type, (_settle.unsettled).bodies, (_settle.unsettled).is_text,
    sb_internal._run_validator((_settle.unsettled).validator, (_settle.unsettled).validation,
      (_settle.unsettled).bodies));
end;
comment on function sb_internal._settle(sb_internal.unsettled) is
  'Finishes a SEND that waits for a validator function, which runs here with the rights of the caller. Strict: without anything to settle it is not called.';
revoke all on function sb_internal._settle(sb_internal.unsettled) from public;
-- sqlgen:end functions/internal/_settle.sql
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
-- sqlgen:begin functions/internal/_switch_broker.sql sha256:dd355cd8b858b699a0b0f59b64c3391cfb106ebf7fe64e9808093203d875a451
create or replace function sb_internal._switch_broker(caller name, is_enabled boolean)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_switch_broker.caller,
    case when _switch_broker.is_enabled then 'enable the broker' else 'disable the broker' end);
  perform sb_internal._lock_catalog();
  update sb_internal.broker as b
     set is_broker_enabled = _switch_broker.is_enabled
   where b.singleton;
  if _switch_broker.is_enabled then
    perform sb_internal._deliver_now(null, null);
  end if;
  perform sb_internal._announce(case when _switch_broker.is_enabled then 'broker_enabled' else 'broker_disabled' end,
    'database', current_database());
end
$$;
comment on function sb_internal._switch_broker(name, boolean) is
  'Behind sb.enable_broker and sb.disable_broker.';
revoke all on function sb_internal._switch_broker(name, boolean) from public;
-- sqlgen:end functions/internal/_switch_broker.sql
-- sqlgen:begin functions/internal/_sync_privileges.sql sha256:8e5e7dc0d18327e70adaf8a31c59a084e2f9dc3d2739301bee97defa260f37af
create or replace function sb_internal._sync_privileges(roles name[])
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  role name;
  grantee text;
  grantee_oid oid;
  is_full boolean;
  is_any boolean;
  wanted oid[];
  list text;
begin
  foreach role in array _sync_privileges.roles loop
    grantee := case when role = 'public' then 'public' else quote_ident(role) end;
    grantee_oid := case when role = 'public' then 0 else to_regrole(grantee) end;
    -- A role that is gone has nothing; the owner of sb has everything.
    continue when grantee_oid is null
      or grantee_oid = (select n.nspowner from pg_namespace as n where n.nspname = 'sb');

    select exists (select 1 from sb_internal.broker as b where role = any (b.admins))
        or exists (select 1 from sb_internal.message_type as t where t.owner = role)
        or exists (select 1 from sb_internal.contract as c where c.owner = role)
        or exists (select 1 from sb_internal.queue as q where q.owner = role)
        or exists (select 1 from sb_internal.service as s where s.owner = role)
        or exists (select 1 from sb_internal.route as r where r.owner = role)
      into is_full;
    -- That the system's own contracts are for everybody gives nobody the verbs.
    select is_full
        or exists (
             select 1
               from sb_internal.contract as c
              where role = any (c.referencers)
                and c.service_contract_id >= 65536)
        or exists (select 1 from sb_internal.queue as q where role = any (q.receivers))
        or exists (select 1 from sb_internal.service as s where role = any (s.senders))
      into is_any;
    wanted := array(
      select g.routine::oid
        from sb_internal._grantable(is_full) as g (routine)
       where is_any);

    select string_agg(w.oid::regprocedure::text, ', ')
      into list
      from unnest(wanted) as w (oid)
      join pg_proc as p on p.oid = w.oid
     where not exists (select 1 from aclexplode(p.proacl) as a where a.grantee = grantee_oid);
    if list is not null then
      execute format('grant execute on function %s to %s', list, grantee);
    end if;
    select string_agg(p.oid::regprocedure::text, ', ')
      into list
      from pg_proc as p
     where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
       and p.oid <> all (wanted)
       and exists (select 1 from aclexplode(p.proacl) as a where a.grantee = grantee_oid);
    if list is not null then
      execute format('revoke execute on function %s from %s', list, grantee);
    end if;

    select string_agg(c.oid::regclass::text, ', ')
      into list
      from pg_class as c
     where c.relnamespace = 'sb'::regnamespace
       and c.relkind = 'v'
       and is_any <> exists (select 1 from aclexplode(c.relacl) as a where a.grantee = grantee_oid);
    if list is not null then
      execute format(case when is_any then 'grant select on %s to %s' else 'revoke select on %s from %s' end,
        list, grantee);
    end if;
    if is_any <> exists (
      select 1
        from pg_namespace as n
       cross join lateral aclexplode(n.nspacl) as a
       where n.nspname = 'sb'
         and a.grantee = grantee_oid)
    then
      execute format(case when is_any then 'grant usage on schema sb to %s' else 'revoke usage on schema sb from %s' end,
        grantee);
    end if;
  end loop;
end
$$;
comment on function sb_internal._sync_privileges(name[]) is
  'Brings the SQL privileges of roles in line with the rights they hold in the catalog: USAGE on sb, EXECUTE on what _grantable lists, SELECT on the views; nothing when they hold none. The caller holds the catalog lock, for PostgreSQL fails on privileges that two transactions change.';
revoke all on function sb_internal._sync_privileges(name[]) from public;
-- sqlgen:end functions/internal/_sync_privileges.sql
-- sqlgen:begin functions/internal/_system_namespace.sql sha256:6670067dc3c94d2cb0ea3b023c4edc25db03a4481ad8276da2223a86c0b69b81
create or replace function sb_internal._system_namespace()
  returns text
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    select case b.system_names
             when 'sqlserver' then 'http://schemas.microsoft.com/SQL/ServiceBroker/Error'
             else 'https://schemas.microsoft.com/SQL/ServiceBroker'
           end
      from sb_internal.broker as b
     where b.singleton);
end
$$;
comment on function sb_internal._system_namespace() is
  'Namespace of Error bodies under the option system_names.';
revoke all on function sb_internal._system_namespace() from public;
-- sqlgen:end functions/internal/_system_namespace.sql
-- sqlgen:begin functions/internal/_take.sql sha256:206db337f175f4c6b2dee4c621ff655504e7dc2b2875b67fb8a9bb248944834e
create or replace function sb_internal._take(
  conversation uuid,
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
  e record;
  m record;
  lowest bigint := (-1)::bigint;
  taken tid[] := '{}'::tid[];
  type_id integer;
  took_error boolean := false;
  took_end boolean := false;
begin
  select o.conversation_group_id as group_id, o.state, o.lifetime, o.priority, o.is_initiator,
         s.service_id, case b.system_names when 'sqlserver' then coalesce(s.sqlserver_name, s.name) else s.name end
           as service_name,
         o.service_contract_id, case b.system_names when 'sqlserver' then coalesce(k.sqlserver_name, k.name)
           else k.name end as contract_name,
         b.system_names,
         (select d.due_at
            from sb_internal.due as d
           where d.conversation_handle = _take.conversation
             and not d.is_lifetime) as timer,
         (select c.message_sequence_number
            from sb_internal.receive_cursor as c
           where c.conversation_handle = _take.conversation
           order by c.conversation_handle desc, c.message_sequence_number desc
           limit 1) as cursor,
         (select min(n.message_type_id)
            from sb_internal.message as n
           where n.conversation_handle = _take.conversation
             and n.message_type_id in (1, 2)) as control
    into e
    from sb_internal.endpoint as o
    join sb_internal.service as s on s.service_id = o.service_id
    left join sb_internal.contract as k on k.service_contract_id = o.service_contract_id
   cross join sb_internal.broker as b
   where o.conversation_handle = _take.conversation
     and b.singleton;
  if not found or e.state = 'DO' then
    return;
  end if;
  status := 0;
  priority := e.priority;
  conversation_group_id := e.group_id;
  conversation_handle := _take.conversation;
  service_name := e.service_name;
  service_id := e.service_id;
  service_contract_name := e.contract_name;
  service_contract_id := e.service_contract_id;

  -- Time first: a timer whose time has passed is a DialogTimer, before everything else of its dialog.
  if e.timer <= clock_timestamp() then
    delete from sb_internal.due as d
     where d.conversation_handle = _take.conversation
       and not d.is_lifetime;
    queuing_order := 0;
    message_sequence_number := -1;
    message_type_id := 5;
    select t.name, t.validation into message_type_name, validation
      from sb_internal._type_for_row(5, e.system_names) as t;
    message_body := null;
    message_enqueue_time := e.timer;
    max_messages := max_messages - 1;
    return next;
  end if;
  -- The same with the lifetime. A conversation that has ended or failed stays as it is.
  if e.lifetime <= clock_timestamp() and max_messages > 0 then
    delete from sb_internal.due as d
     where d.conversation_handle = _take.conversation
       and d.is_lifetime;
    if found and e.state = 'CO'
      and not exists (
        select 1
          from sb_internal.message as n
         where n.conversation_handle = _take.conversation
           and n.message_type_id in (1, 2)
           and (n.message_type_id = 1 or n.message_enqueue_time < e.lifetime))
    then
      update sb_internal.endpoint as o
         set state = 'ER'
       where o.conversation_handle = _take.conversation;
      queuing_order := 0;
      message_sequence_number := -1;
      message_type_id := 1;
      select t.name, t.validation into message_type_name, validation
        from sb_internal._type_for_row(1, e.system_names) as t;
      message_body := sb_internal._error_body(sb_internal._system_namespace(), -8489,
        'The dialog has exceeded its lifetime.');
      message_enqueue_time := e.lifetime;
      max_messages := max_messages - 1;
      return next;
    end if;
  end if;
  if max_messages <= 0 then
    return;
  end if;

  -- The cursor keeps the probe off the rows received before; an Error (-1) sits before all of them.
  if e.cursor is not null and e.control is distinct from 1 then
    lowest := e.cursor;
  end if;
  for m in
    select n.ctid, n.queuing_order, n.message_sequence_number, n.message_type_id, n.message_body,
           n.message_enqueue_time
      from sb_internal.message as n
     where n.conversation_handle = _take.conversation
       and n.message_sequence_number >= lowest
     order by n.message_sequence_number
     limit max_messages
  loop
    if type_id is distinct from m.message_type_id then
      type_id := m.message_type_id;
      select t.name, t.validation into message_type_name, validation
        from sb_internal._type_for_row(type_id, e.system_names) as t;
      message_type_id := type_id;
      took_error := took_error or type_id = 1;
      took_end := took_end or type_id = 2;
    end if;
    queuing_order := m.queuing_order;
    message_sequence_number := m.message_sequence_number;
    message_body := m.message_body;
    message_enqueue_time := m.message_enqueue_time;
    taken := taken || m.ctid;
    return next;
  end loop;
  if taken = '{}' then
    return;
  end if;

  if _take.is_retained then
    insert into sb_internal.retained_message (queuing_order, message_sequence_number, message_enqueue_time, queue_id,
      message_type_id, conversation_handle, conversation_group_id, priority, message_body, status)
    select n.queuing_order, n.message_sequence_number, n.message_enqueue_time, n.queue_id, n.message_type_id,
           n.conversation_handle, e.group_id, n.priority, n.message_body, 0
      from sb_internal.message as n
     where n.ctid = any (taken);
  end if;
  delete from sb_internal.message as n
   where n.ctid = any (taken);

  -- What the peer did to this conversation becomes this side's own state when it is handed out. By what was
  -- handed out: it may have arrived after the look at the top.
  if took_error or took_end then
    update sb_internal.endpoint as o
       set state = case when took_error then 'ER' when o.state = 'CO' then 'DI' else o.state end
     where o.conversation_handle = _take.conversation;
    if e.lifetime is not null then
      delete from sb_internal.due as d
       where d.conversation_handle = _take.conversation
         and d.is_lifetime;
    end if;
  end if;
  if message_sequence_number - coalesce(e.cursor, 0) >= 64 then
    perform sb_internal._advance_cursor(_take.conversation, e.cursor, _take.message_sequence_number + 1);
  end if;
end
$$;
comment on function sb_internal._take(uuid, bigint, boolean) is
  'Takes what a conversation has ready, at most max_messages, in the order of processing: DialogTimer, Error, then by sequence number. The caller holds the group lock.';
revoke all on function sb_internal._take(uuid, bigint, boolean) from public;
-- sqlgen:end functions/internal/_take.sql
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
-- sqlgen:begin functions/internal/_terminate.sql sha256:4e92838d46e3ba857df34dfd3931aa9f70d18d0ac965365d67dceadd5553395c
create or replace function sb_internal._terminate(
  conversation_handle uuid,
  code integer,
  description text
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint := sb_internal._lock_conversation(_terminate.conversation_handle);
begin
  -- Also for a side in DO, whose own word to the peer is still waiting to leave and goes with it.
  perform sb_internal._error_endpoint(e.peer_handle, _terminate.code, _terminate.description);
  perform sb_internal._forget(e, false);
end
$$;
comment on function sb_internal._terminate(uuid, integer, text) is
  'Ends one side on behalf of the broker (service or contract dropped): the peer gets an Error with the code, everything of this side goes. Takes the locks of _lock_conversation.';
revoke all on function sb_internal._terminate(uuid, integer, text) from public;
-- sqlgen:end functions/internal/_terminate.sql
-- sqlgen:begin functions/internal/_transmission_status.sql sha256:fd3b0945a5824202cf4ee17f333a7e579c55dadefa169de0f1e9f3a4b097c157
create or replace function sb_internal._transmission_status(conversation_handle uuid)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  e sb_internal.endpoint;
begin
  select o.*
    into e
    from sb_internal.endpoint as o
   where o.conversation_handle = _transmission_status.conversation_handle;
  if not found or not exists (
    select 1
      from sb_internal.transmission as t
     where t.conversation_handle = e.conversation_handle)
  then
    return '';
  end if;
  case sb_internal._effective_state(e.state, e.is_initiator, e.lifetime, e.conversation_handle)
    when 'ER' then
      return 'Held: an Error ended the conversation; end it here to drop what waits.';
    when 'DI' then
      return 'Held: the other side ended the conversation; end it here to drop what waits.';
    else
      null;
  end case;
  return coalesce(sb_internal._undeliverable(e.far_service, e.far_broker_instance), '');
end
$$;
comment on function sb_internal._transmission_status(uuid) is
  'Why the messages of the conversation wait in the transmission queue; empty when nothing is wrong (R-240). Decided when asked, never stored.';
revoke all on function sb_internal._transmission_status(uuid) from public;
-- sqlgen:end functions/internal/_transmission_status.sql
-- sqlgen:begin functions/internal/_type_for_row.sql sha256:9481c751999a8cd6e51944311241b7d7167a8a8895f4c86d3feaf2644d3e1842
create or replace function sb_internal._type_for_row(
  message_type_id integer,
  system_names text,
  out name text,
  out validation text
)
  returns record
  language plpgsql
  stable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  select case _type_for_row.system_names when 'sqlserver' then coalesce(t.sqlserver_name, t.name) else t.name end,
         case
           when t.validation = 'NONE' then 'N'
           when t.validation = 'EMPTY' then 'E'
           when t.validation in ('WELL_FORMED_XML', 'VALID_XML') then 'X'
           else 'J'
         end
    into _type_for_row.name, _type_for_row.validation
    from sb_internal.message_type as t
   where t.message_type_id = _type_for_row.message_type_id;
end
$$;
comment on function sb_internal._type_for_row(integer, text) is
  'Name and validation letter (N none, E empty, X XML, J JSON) of a message type as queue rows show them.';
revoke all on function sb_internal._type_for_row(integer, text) from public;
-- sqlgen:end functions/internal/_type_for_row.sql
-- sqlgen:begin functions/internal/_undeliverable.sql sha256:53b3a6e2499852e69d0200f0cbdd44f0c6725ab9d0e46ee8252e800fc3919e84
create or replace function sb_internal._undeliverable(service_name text, broker_instance text default null)
  returns text
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
declare
  address text;
  target record;
begin
  if not (select b.is_broker_enabled from sb_internal.broker as b where b.singleton) then
    return 'The broker is disabled in this database.';
  end if;
  address := sb_internal._route(_undeliverable.service_name, _undeliverable.broker_instance);
  if address is null then
    return 'No route matches the destination service "' || _undeliverable.service_name || '".';
  end if;
  if address <> 'LOCAL' then
    return 'Waiting to be transmitted to ' || address || '.';
  end if;
  select q.queue_id, q.name
    into target
    from sb_internal.service as s
    join sb_internal.queue as q on q.queue_id = s.queue_id
   where s.name = _undeliverable.service_name;
  if not found then
    return 'The destination service "' || _undeliverable.service_name || '" does not exist.';
  end if;
  if not sb_internal._queue_is_on(target.queue_id) then
    return 'The destination queue "' || target.name || '" is disabled.';
  end if;
  return null;
end
$$;
comment on function sb_internal._undeliverable(text, text) is
  'Why nothing can be delivered to the service now, in words; null when it can.';
revoke all on function sb_internal._undeliverable(text, text) from public;
-- sqlgen:end functions/internal/_undeliverable.sql
-- sqlgen:begin functions/internal/_validation.sql sha256:b50e5c70406992e83520039a3f567f68723035d69cec8cdc0a9ec9947a9d9909
create or replace function sb_internal._validation(
  caller name,
  validation text,
  validator regprocedure,
  schema jsonb,
  out validation_kind text,
  out validator_name text
)
  returns record
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  body_type regtype;
begin
  validation_kind := upper(_validation.validation);
  if validation_kind is null or validation_kind not in
    ('NONE', 'EMPTY', 'WELL_FORMED_XML', 'VALID_XML', 'WELL_FORMED_JSON', 'VALID_JSON')
  then
    perform sb_internal._raise('22023', array['validation ' || coalesce(_validation.validation, '(null)')
      || ' is none of NONE, EMPTY, WELL_FORMED_XML, VALID_XML, WELL_FORMED_JSON, VALID_JSON']);
  end if;
  body_type := case validation_kind
    when 'VALID_XML' then 'xml'::regtype
    when 'VALID_JSON' then 'jsonb'::regtype
  end;
  if body_type is null and (_validation.validator is not null or _validation.schema is not null) then
    perform sb_internal._raise('22023', array['validation ' || validation_kind || ' takes no validator and no schema']);
  elsif validation_kind = 'VALID_XML' and (_validation.validator is null or _validation.schema is not null) then
    perform sb_internal._raise('22023', array['validation VALID_XML needs a validator and takes no schema']);
  elsif validation_kind = 'VALID_JSON' and num_nonnulls(_validation.validator, _validation.schema) <> 1 then
    perform sb_internal._raise('22023', array['validation VALID_JSON needs either a validator or a schema']);
  end if;
  if _validation.schema is not null then
    perform sb_internal._json_schema_check(_validation.schema);
  end if;
  if _validation.validator is null then
    return;
  end if;

  perform sb_internal._require_admin(_validation.caller, 'set a validator');
  select format('%I.%I', n.nspname, p.proname)
    into validator_name
    from pg_proc as p
    join pg_namespace as n on n.oid = p.pronamespace
   where p.oid = _validation.validator
     and p.prokind = 'f'
     and not p.proretset
     and p.prorettype = 'boolean'::regtype
     and p.pronargs = 1
     and p.proargtypes[0] = body_type
     and not starts_with(n.nspname, 'pg_temp_');
  if not found then
    perform sb_internal._raise('22023', array[format(
      'validator %s is not a permanent function (%s) returns boolean', _validation.validator, body_type)]);
  end if;
end
$$;
comment on function sb_internal._validation(name, text, regprocedure, jsonb) is
  'Checks that validation, validator and schema fit together; returns them as they are stored, the validator as quoted schema.name. Only an admin may set a validator. Errors: 22023, 42501.';
revoke all on function sb_internal._validation(name, text, regprocedure, jsonb) from public;
-- sqlgen:end functions/internal/_validation.sql
-- sqlgen:begin functions/internal/_visible.sql sha256:b3c1dd6b0c68be458acbc1f6a4678abb5dce8b42247a4d44ae05640d828d1db2
create or replace function sb_internal._visible(caller name, kind text)
  returns integer[]
  language plpgsql
  stable
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  case _visible.kind
    when 'queue' then
      return array(
        select q.queue_id
          from sb_internal.queue as q
         where sb_internal._may(_visible.caller, q.owner, q.receivers));
    when 'service' then
      return array(
        select s.service_id
          from sb_internal.service as s
          join sb_internal.queue as q on q.queue_id = s.queue_id
         where sb_internal._may(_visible.caller, s.owner, s.senders || q.owner || q.receivers));
    when 'contract' then
      return array(
        select c.service_contract_id
          from sb_internal.contract as c
         where sb_internal._may(_visible.caller, c.owner, c.referencers));
    when 'message type' then
      return array(
        select t.message_type_id
          from sb_internal.message_type as t
         where t.message_type_id < 65536
            or sb_internal._may(_visible.caller, t.owner, '{}')
         union
        select m.message_type_id
          from sb_internal.contract_message as m
         where m.service_contract_id = any (sb_internal._visible(_visible.caller, 'contract')));
    when 'route' then
      return array(
        select r.route_id
          from sb_internal.route as r
         where sb_internal._may(_visible.caller, r.owner, '{}'));
    when 'broker priority' then
      return array(
        select p.priority_id
          from sb_internal.conversation_priority as p
         where sb_internal._is_admin(_visible.caller));
  end case;
end
$$;
comment on function sb_internal._visible(name, text) is
  'Ids of the objects that a role sees in the views: what it owns or has a right on; services also through their queue, message types through a contract; broker priorities, which nobody owns, only as an admin. One call a query, so that rights are not checked once a row.';
revoke all on function sb_internal._visible(name, text) from public;
-- sqlgen:end functions/internal/_visible.sql
-- sqlgen:begin functions/internal/_waiting.sql sha256:323f2bc6442e5ede023a8b833f2072b9cc69c6dd62824431c2941c09fe2d5ced
create or replace function sb_internal._waiting(
  caller name,
  queue_name text,
  is_start boolean
)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  q record;
begin
  select o.queue_id, o.name, o.owner, o.receivers
    into q
    from sb_internal.queue as o
   where o.name = _waiting.queue_name;
  if not found then
    perform sb_internal._require_name(_waiting.queue_name, 'queue', 128);
    perform sb_internal._raise('S0208', array[_waiting.queue_name]);
  end if;
  if not sb_internal._may(_waiting.caller, q.owner, q.receivers) then
    perform sb_internal._raise('42501', array[_waiting.caller::text, 'receive from queue ' || q.name]);
  end if;
  if not _waiting.is_start then
    perform pg_advisory_unlock_shared(8420, q.queue_id);
    return;
  end if;
  -- A sender holds the lock exclusively for a microsecond; waiting for it in the lock queue would make
  -- that sender notify nobody.
  while not pg_try_advisory_lock_shared(8420, q.queue_id) loop
    perform pg_sleep(0.0001);
  end loop;
end
$$;
comment on function sb_internal._waiting(name, text, boolean) is
  'Raises or lowers the waiting flag of a queue: a shared session advisory lock, which counts waiters and dies with the session.';
revoke all on function sb_internal._waiting(name, text, boolean) from public;
-- sqlgen:end functions/internal/_waiting.sql
-- sqlgen:begin functions/internal/_wake.sql sha256:fe9a9b9b40c83051746fbc269f839eb6349162d5d7b0577f7feff529dc426bb6
create or replace function sb_internal._wake(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- The waiting flag is a shared advisory lock of whoever sleeps. One expression: a cancel between two
  -- statements would leave the lock with this session for good.
  if not (pg_try_advisory_lock(8420, _wake.queue_id) and pg_advisory_unlock(8420, _wake.queue_id)) then
    perform pg_notify('sb_queue_' || _wake.queue_id, '');
  end if;
end
$$;
comment on function sb_internal._wake(integer) is
  'Notifies the waiters of a queue, if there are any. To be called after the insert: a waiter looks once more after raising its flag.';
revoke all on function sb_internal._wake(integer) from public;
-- sqlgen:end functions/internal/_wake.sql
-- sqlgen:begin functions/internal/_write_poison_limits.sql sha256:de4f93bf337efd6031d26bb2184eb382d24a1460f3985885c81e8f507c1ca711
create or replace function sb_internal._write_poison_limits()
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._poison_disable(q.queue_id)
     from sb_internal.queue as q
    where q.is_enabled
      and not sb_internal._queue_is_on(q.queue_id);
end
$$;
comment on function sb_internal._write_poison_limits() is
  'Writes down every queue whose poison limit is reached as off.';
revoke all on function sb_internal._write_poison_limits() from public;
-- sqlgen:end functions/internal/_write_poison_limits.sql
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
-- sqlgen:begin functions/internal/_xml_is_well_formed.sql sha256:88b70ce2a5d4a294b96315ec76ac61d04b17f716eeb2d11e501b5631a4cfd360
-- The content is parsed inside an element. That makes a fragment a document, so one function serves
-- both whatever xmloption says; and a DOCTYPE, which may stand only before the root element,
-- becomes a syntax error at its first character, so that no entity is ever declared, let alone
-- expanded, while the same characters inside a comment or CDATA section stay harmless. Content
-- cannot leave the element: after its end tag our own end tag would be a second one.
create or replace function sb_internal._xml_is_well_formed(
  body bytea,
  is_text boolean
)
  returns boolean
  language plpgsql
  immutable
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  -- NULL, what cannot be decoded, has to make the whole NULL: not concat.
  return coalesce(
    xml_is_well_formed_document(
      '<x>'
      || sb_internal._xml_decode(_xml_is_well_formed.body, _xml_is_well_formed.is_text)
      || '</x>'
    ),
    false
  );
end
$$;
comment on function sb_internal._xml_is_well_formed(bytea, boolean) is
  'Whether a body is a well-formed XML document or fragment without a DOCTYPE, as SQL Server''s xml type accepts it; is_text as in _xml_decode. What is beyond the limits of libxml (256 levels; 10 MB in one text node may be too much) is not well formed. The parser builds a tree: 100 MB of tiny elements take 10 s and 3.5 GB. Raises nothing, except 0A000 (feature_not_supported) on a server built without libxml.';
revoke all on function sb_internal._xml_is_well_formed(bytea, boolean) from public;
-- sqlgen:end functions/internal/_xml_is_well_formed.sql
-- sqlgen:begin functions/body/body_json.sql sha256:e6fbcd02f0a5153438f8bdc6b0c1a55fe0ab515d50a97c234a812ecc0a44d1c7
create or replace function sb.body_json(message_body bytea)
  returns jsonb
  language sql
  immutable
  parallel safe
  security invoker
begin atomic
  select pg_catalog.convert_from(
    case
      when pg_catalog.substr(body_json.message_body, 1, 3) = '\xefbbbf'::bytea
        then pg_catalog.substr(body_json.message_body, 4)
      else body_json.message_body
    end,
    'UTF8'
  )::jsonb;
end;
comment on function sb.body_json(bytea) is
  'The body as jsonb: it is read as UTF-8, a byte order mark is left out. 22021 when it is not UTF-8, 22P02 when it is not JSON, 22P05 when it is JSON that jsonb cannot hold (\u0000).';
revoke all on function sb.body_json(bytea) from public;
-- sqlgen:end functions/body/body_json.sql
-- sqlgen:begin functions/body/body_text.sql sha256:ad906eb2c1b45810321300b80065570c8a9d36e461d4975fe883e2e687307f95
create or replace function sb.body_text(message_body bytea)
  returns text
  language sql
  immutable
  parallel safe
  security invoker
begin atomic
  select pg_catalog.convert_from(
    case
      when pg_catalog.substr(body_text.message_body, 1, 3) = '\xefbbbf'::bytea
        then pg_catalog.substr(body_text.message_body, 4)
      else body_text.message_body
    end,
    'UTF8'
  );
end;
comment on function sb.body_text(bytea) is
  'The body as text: it is read as UTF-8, a byte order mark is left out. 22021 when it is not UTF-8.';
revoke all on function sb.body_text(bytea) from public;
-- sqlgen:end functions/body/body_text.sql
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
-- sqlgen:begin functions/state/drop_state_table.sql sha256:24b8b784e09d6eb200f2208dd6b5428c8b5ab58e8788222123df74f02810b1c5
create or replace function sb.drop_state_table(table_name text, if_exists boolean default false)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_state_table(drop_state_table.table_name, drop_state_table.if_exists);
end;
comment on function sb.drop_state_table(text, boolean) is
  'Drops a table made by create_state_table, with the caller''s rights. Error SB002 when it is not a state table.';
revoke all on function sb.drop_state_table(text, boolean) from public;
-- sqlgen:end functions/state/drop_state_table.sql
-- sqlgen:begin functions/state/get_state.sql sha256:67dafae7b70023f7d840c5520e54df77d056a8c10741409f267d604eb012fdba
create or replace function sb.get_state(conversation_group_id uuid)
  returns jsonb
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._get_state(current_user, get_state.conversation_group_id);
end;
comment on function sb.get_state(uuid) is
  'The state kept for a conversation group by set_state; null when there is none. Needs receive on the group''s queue. Takes no lock: get or receive from the group first (R-399). Errors: S8420, S8436, 42501.';
revoke all on function sb.get_state(uuid) from public;
-- sqlgen:end functions/state/get_state.sql
-- sqlgen:begin functions/state/set_state.sql sha256:ca931f4cd1283a31ba54cf89956d7740b317684b6173fa17f5762aaafa4fbbcb
create or replace function sb.set_state(conversation_group_id uuid, state jsonb)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._set_state(current_user, set_state.conversation_group_id, set_state.state);
end;
comment on function sb.set_state(uuid, jsonb) is
  'Keeps a jsonb value for a conversation group, null removes it; it goes when the group''s last conversation ends. Locks the group, waiting for it. Needs receive on the group''s queue. Errors: S8420, S8436, 42501.';
revoke all on function sb.set_state(uuid, jsonb) from public;
-- sqlgen:end functions/state/set_state.sql
-- sqlgen:begin functions/verbs/begin_conversation_timer.sql sha256:fba544595d760da9eb7ff6078cf25d3fca25ff8294324faa206d62614be9201b
create or replace function sb.begin_conversation_timer(conversation_handle uuid, timeout interval)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._begin_conversation_timer(current_user, begin_conversation_timer.conversation_handle,
    begin_conversation_timer.timeout);
end;
comment on function sb.begin_conversation_timer(uuid, interval) is
  'BEGIN CONVERSATION TIMER: after timeout (> 0) this side receives one DialogTimer message. One timer a side: a new call replaces it (R-230). Needs no running process. Locks the group. Errors: S8418, S8426, S8458 already ended, S8410 beyond the lifetime, 22023, 42501.';
revoke all on function sb.begin_conversation_timer(uuid, interval) from public;
-- sqlgen:end functions/verbs/begin_conversation_timer.sql
-- sqlgen:begin functions/verbs/begin_dialog.sql sha256:e1cfe94c573283285eace1e531ad4bbbb78bb725c43e130f1a30c1a08d7ecbb5
create or replace function sb.begin_dialog(
  from_service text,
  to_service text,
  on_contract text default 'DEFAULT',
  broker_instance text default null,
  related_conversation uuid default null,
  related_conversation_group uuid default null,
  lifetime interval default null,
  encryption boolean default true
)
  returns uuid
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._begin_dialog(current_user, begin_dialog.from_service, begin_dialog.to_service,
    begin_dialog.on_contract, begin_dialog.broker_instance, begin_dialog.related_conversation,
    begin_dialog.related_conversation_group, begin_dialog.lifetime);
end;
comment on function sb.begin_dialog(text, text, text, text, uuid, uuid, interval, boolean) is
  'BEGIN DIALOG: begins a dialog from a service of this database to a service that need not exist yet, and returns the conversation handle of the initiator. Nothing is sent (R-146). related_conversation or related_conversation_group puts it into a group, which is locked, waiting if need be; a group id not in use is created with that id. lifetime: an interval, null for no limit. encryption is accepted and has no effect inside one database. Needs receive on the queue of from_service and references on the contract. Errors: S8423 from_service, S8425 contract, S8426 related conversation, S9610 group of another service, S8411 lifetime, 22023 both related arguments, 42501, 42602.';
revoke all on function sb.begin_dialog(text, text, text, text, uuid, uuid, interval, boolean) from public;
-- sqlgen:end functions/verbs/begin_dialog.sql
-- sqlgen:begin functions/verbs/cancel_conversation_timer.sql sha256:5011f16cdf8cf2c8958ce8a494ee322492d8e42cba6a0fd900b575e2372013f8
create or replace function sb.cancel_conversation_timer(conversation_handle uuid)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._cancel_conversation_timer(current_user, cancel_conversation_timer.conversation_handle);
end;
comment on function sb.cancel_conversation_timer(uuid) is
  'Cancels the timer of this side, if one is set. No counterpart in SQL Server. Locks and errors as begin_conversation_timer.';
revoke all on function sb.cancel_conversation_timer(uuid) from public;
-- sqlgen:end functions/verbs/cancel_conversation_timer.sql
-- sqlgen:begin functions/verbs/end_conversation.sql sha256:66b69c167f39182b50dfffd36effe06080f28e1f86f9b2456ff8f11538ddc136
create or replace function sb.end_conversation(
  conversation_handle uuid,
  error_code integer default null,
  error_description text default null,
  cleanup boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._end_conversation(current_user, end_conversation.conversation_handle, end_conversation.error_code,
    end_conversation.error_description, end_conversation.cleanup);
end;
comment on function sb.end_conversation(uuid, integer, text, boolean) is
  'END CONVERSATION: ends this side and removes its unread messages, timer and, with the last conversation of the group, the group and its state. The peer gets an EndDialog after all that was sent before; with error_code (> 0) and error_description (at most 3000 characters) it gets an Error instead, and what has not left is dropped; with cleanup it is told nothing. When the peer has already ended or an error came, nothing is sent. Works while queues are off. Locks the group, then the conversation; waits for them. Errors: S8418, S8426, S8427 already ended, S8419, S8424, 22023, 42501.';
revoke all on function sb.end_conversation(uuid, integer, text, boolean) from public;
-- sqlgen:end functions/verbs/end_conversation.sql
-- sqlgen:begin functions/verbs/get_conversation_group.sql sha256:4ae4930cd48dc357b68575584d34dee0e2044367d075515d957b701846f72f49
create or replace function sb.get_conversation_group(queue_name text, timeout interval default null)
  returns uuid
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._get_conversation_group(current_user, get_conversation_group.queue_name,
    get_conversation_group.timeout);
end;
comment on function sb.get_conversation_group(text, interval) is
  'GET CONVERSATION GROUP: locks the group that receive would take next, to the end of the transaction, and returns its id; null when there is none (within the timeout, see receive). Removes nothing. Errors: S0208, S9617, 42501.';
revoke all on function sb.get_conversation_group(text, interval) from public;
-- sqlgen:end functions/verbs/get_conversation_group.sql
-- sqlgen:begin functions/verbs/get_transmission_status.sql sha256:d56f4542f782be916008648a9f8fc102505f36e0f657907e645a9bbbf8c8445a
create or replace function sb.get_transmission_status(conversation_handle uuid)
  returns text
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._get_transmission_status(current_user, get_transmission_status.conversation_handle);
end;
comment on function sb.get_transmission_status(uuid) is
  'GET_TRANSMISSION_STATUS: why messages of the conversation wait in the transmission queue, in words; empty when nothing is wrong or the handle is unknown (R-240). Takes no locks.';
revoke all on function sb.get_transmission_status(uuid) from public;
-- sqlgen:end functions/verbs/get_transmission_status.sql
-- sqlgen:begin functions/verbs/move_conversation.sql sha256:786d4ee38735fc19eb1a1a416137f31035a12d1b7e7d7e60daf8e3c1d77a9f43
create or replace function sb.move_conversation(conversation_handle uuid, conversation_group_id uuid)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._move_conversation(current_user, move_conversation.conversation_handle,
    move_conversation.conversation_group_id);
end;
comment on function sb.move_conversation(uuid, uuid) is
  'MOVE CONVERSATION: puts this side of a conversation into another existing group of the same service. Locks both groups, in id order, and the conversation; waits for them. A group left empty goes. Errors: S8418, S8420, S8426, S8436 no such group, S8439 group of another service, S8438 already ended, 42501.';
revoke all on function sb.move_conversation(uuid, uuid) from public;
-- sqlgen:end functions/verbs/move_conversation.sql
-- sqlgen:begin functions/verbs/multicast.sql sha256:0db3ff1974cafe45cb88eae284b9759c46ebd04f144e8914d95c9d8c1fcb20c5
create or replace function sb.multicast(
  conversation_handles uuid[],
  message_type text,
  message_body bytea
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._multicast(current_user, multicast.conversation_handles,
    multicast.message_type, multicast.message_body));
end;
comment on function sb.multicast(uuid[], text, bytea) is
  'SEND of one message on several conversations: all or none. Conversations are locked in handle order. Errors: SB001 a handle listed twice; else as send.';
revoke all on function sb.multicast(uuid[], text, bytea) from public;
-- sqlgen:end functions/verbs/multicast.sql
-- sqlgen:begin functions/verbs/receive.sql sha256:1965d070e8b141693d338f8681d1dbe5655ddc45d26d6a6050b07bf913e20530
-- Stable is not what this function is, but what lets the planner put its body in place of the call: a
-- volatile set-returning SQL function is parsed, planned and started again at every call, at several
-- times the cost of the receive itself. It is safe here: a function that returns a set is never
-- evaluated by the planner, and what runs is _receive, which is volatile.
create or replace function sb.receive(
  queue_name text,
  max_messages integer default null,
  for_conversation uuid default null,
  for_group uuid default null,
  timeout interval default null
)
  returns table (status smallint, priority smallint, queuing_order bigint, conversation_group_id uuid,
    conversation_handle uuid, message_sequence_number bigint, service_name text, service_id integer,
    service_contract_name text, service_contract_id integer, message_type_name text, message_type_id integer,
    validation text, message_body bytea, message_enqueue_time timestamptz)
  language sql
  stable
  parallel unsafe
  security invoker
begin atomic
  select r.status, r.priority, r.queuing_order, r.conversation_group_id, r.conversation_handle,
         r.message_sequence_number, r.service_name, r.service_id, r.service_contract_name, r.service_contract_id,
         r.message_type_name, r.message_type_id, r.validation, r.message_body, r.message_enqueue_time
    from sb_internal._receive(current_user, receive.queue_name, receive.max_messages, receive.for_conversation,
      receive.for_group, receive.timeout) as r;
end;
comment on function sb.receive(text, integer, uuid, uuid, interval) is
  'RECEIVE: removes and returns ready messages of one conversation group, in the order in which they must be processed: conversations by priority, within one DialogTimer, Error, then by sequence number (R-175, R-179, R-180). max_messages null: all of the group. The group stays locked to the end of the transaction; groups held by others are skipped. for_conversation or for_group names what to receive from and waits for its lock. timeout: null or zero does not wait for messages, negative waits without limit; a waiting call polls inside the server and holds back vacuum: clients had better LISTEN. Needs receive on the queue. Errors: S0208 queue, S9617 queue disabled, S8426 conversation, S8436 group, 22023 arguments, 42501.';
revoke all on function sb.receive(text, integer, uuid, uuid, interval) from public;
-- sqlgen:end functions/verbs/receive.sql
-- sqlgen:begin functions/verbs/send.sql sha256:6d938a9a987d9481f20bf8bb74dbdbade192e9e1c0ca88bea9efc91bfef55086
create or replace function sb.send(conversation_handle uuid, message_type text default 'DEFAULT')
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type, null, false));
end;
comment on function sb.send(uuid, text) is
  'SEND without a body, see send(uuid, text, bytea).';
revoke all on function sb.send(uuid, text) from public;

create or replace function sb.send(
  conversation_handle uuid,
  message_type text,
  message_body bytea
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type,
    array[send.message_body], false));
end;
comment on function sb.send(uuid, text, bytea) is
  'SEND: sends a message on a conversation, in the caller''s transaction. Goes straight into the target queue when it can, else waits in sb.transmission_queue; that is no error (R-163, R-164). A zero-length body arrives as null. Locks the conversation, not its group: waits for another SEND, MOVE or END on the same conversation, never for a reader. Needs receive on the queue of the sending service. Errors: S8418 and S8426 handle, S8429 state, S8428, S8431, S8432 and S8434 message type, S8433 null body, S8459 over 268435456 bytes, S9618 own queue off with retention, S9615 and S8430 validation under the option validate_on_send, 42501.';
revoke all on function sb.send(uuid, text, bytea) from public;

create or replace function sb.send(
  conversation_handle uuid,
  message_type text,
  message_body text
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type,
    array[pg_catalog.convert_to(send.message_body, 'UTF8')], true));
end;
comment on function sb.send(uuid, text, text) is
  'SEND of text, stored as UTF-8; see send(uuid, text, bytea).';
revoke all on function sb.send(uuid, text, text) from public;

create or replace function sb.send(
  conversation_handle uuid,
  message_type text,
  message_body json
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type,
    array[pg_catalog.convert_to(send.message_body::text, 'UTF8')], true));
end;
comment on function sb.send(uuid, text, json) is
  'SEND of json, stored as its text in UTF-8; see send(uuid, text, bytea).';
revoke all on function sb.send(uuid, text, json) from public;

create or replace function sb.send(
  conversation_handle uuid,
  message_type text,
  message_body jsonb
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type,
    array[pg_catalog.convert_to(send.message_body::text, 'UTF8')], true));
end;
comment on function sb.send(uuid, text, jsonb) is
  'SEND of jsonb, stored as its text in UTF-8; see send(uuid, text, bytea).';
revoke all on function sb.send(uuid, text, jsonb) from public;

create or replace function sb.send(
  conversation_handle uuid,
  message_type text,
  message_body xml
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send.conversation_handle, send.message_type,
    array[pg_catalog.convert_to(pg_catalog.textin(pg_catalog.xml_out(send.message_body)), 'UTF8')], true));
end;
comment on function sb.send(uuid, text, xml) is
  'SEND of xml, stored as its text in UTF-8; see send(uuid, text, bytea).';
revoke all on function sb.send(uuid, text, xml) from public;
-- sqlgen:end functions/verbs/send.sql
-- sqlgen:begin functions/verbs/send_batch.sql sha256:e861a05c556b45c2eb26b1efe92cd4e7bf606913037cf3658bb38a77e1239212
create or replace function sb.send_batch(
  conversation_handle uuid,
  message_type text,
  message_bodies bytea[]
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._settle(sb_internal._send(current_user, send_batch.conversation_handle, send_batch.message_type,
    coalesce(send_batch.message_bodies, array[null::bytea]), false));
end;
comment on function sb.send_batch(uuid, text, bytea[]) is
  'SEND of several messages of one type on one conversation in one step, in the order of the array: much cheaper than one by one. An invalid one among them fails the whole batch. Errors and locks as send.';
revoke all on function sb.send_batch(uuid, text, bytea[]) from public;
-- sqlgen:end functions/verbs/send_batch.sql
-- sqlgen:begin functions/verbs/start_waiting.sql sha256:c4d4d1b25ba6a7e0b2c1e986a8320ba08d311eb031c16917376958b46586043e
create or replace function sb.start_waiting(queue_name text)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._waiting(current_user, start_waiting.queue_name, true);
end;
comment on function sb.start_waiting(text) is
  'Announces that this session LISTENs for the queue (channel sb_queue_<queue_id>) and is about to sleep: senders notify only then. Look once more after the call, then sleep, then call stop_waiting. Held by the session, not the transaction: not for pooled connections. Needs receive on the queue. Errors: S0208, 42501.';
revoke all on function sb.start_waiting(text) from public;
-- sqlgen:end functions/verbs/start_waiting.sql
-- sqlgen:begin functions/verbs/stop_waiting.sql sha256:71df92322c3a18c8535ad0403a5bd1b964179b80f160507286366f009b9e1fc7
create or replace function sb.stop_waiting(queue_name text)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._waiting(current_user, stop_waiting.queue_name, false);
end;
comment on function sb.stop_waiting(text) is
  'Takes the announcement of start_waiting back.';
revoke all on function sb.stop_waiting(text) from public;
-- sqlgen:end functions/verbs/stop_waiting.sql
-- sqlgen:begin functions/ddl/alter_broker_priority.sql sha256:637a93d4b5e0e3aa8f2e42b75c48a08d914a7cd0d5d35ca6cbd706be73b59a55
create or replace function sb.alter_broker_priority(
  name text,
  contract_name text default null,
  local_service_name text default null,
  remote_service_name text default null,
  priority_level integer default null
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_broker_priority(
    current_user, alter_broker_priority.name, alter_broker_priority.contract_name,
    alter_broker_priority.local_service_name, alter_broker_priority.remote_service_name,
    alter_broker_priority.priority_level
  );
end;
comment on function sb.alter_broker_priority(text, text, text, text, integer) is
  'ALTER BROKER PRIORITY: null leaves a criterion as it is; endpoints that exist keep what they have (R-100, R-101). Admins only. Errors: 42501, 42704, S8423, 42710, 22023. Locks: the catalog.';
revoke all on function sb.alter_broker_priority(text, text, text, text, integer) from public;
-- sqlgen:end functions/ddl/alter_broker_priority.sql
-- sqlgen:begin functions/ddl/alter_message_type.sql sha256:cad332fcd8009e1be0fac587f18aca742b6d038f3ecff28fee232dbeb145b455
create or replace function sb.alter_message_type(
  name text,
  validation text default null,
  validator regprocedure default null,
  schema jsonb default null
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_message_type(
    current_user, alter_message_type.name, alter_message_type.validation,
    alter_message_type.validator, alter_message_type.schema
  );
end;
comment on function sb.alter_message_type(text, text, regprocedure, jsonb) is
  'ALTER MESSAGE TYPE: null leaves a setting as it is; validation NONE clears validator and schema, a validator replaces a schema and the other way round. Messages already sent are not validated again (R-026, R-027). For the owner and admins; a validator for admins only. Errors: 42501, 42704, 22023, S9663 system type. Locks: the catalog; senders are not blocked.';
revoke all on function sb.alter_message_type(text, text, regprocedure, jsonb) from public;
-- sqlgen:end functions/ddl/alter_message_type.sql
-- sqlgen:begin functions/ddl/alter_queue.sql sha256:9ce107b2d8c094b092cf149e6bda1bfe086fd286c0207612e6d8ad3f58143800
create or replace function sb.alter_queue(
  name text,
  enabled boolean default null,
  retention boolean default null,
  activation_procedure text default null,
  max_queue_readers integer default null,
  activation_enabled boolean default null,
  execute_as name default null,
  poison_message_handling boolean default null,
  drop_activation boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_queue(
    current_user, alter_queue.name, alter_queue.enabled, alter_queue.retention,
    alter_queue.activation_procedure, alter_queue.max_queue_readers, alter_queue.activation_enabled,
    alter_queue.execute_as, alter_queue.poison_message_handling, alter_queue.drop_activation
  );
end;
comment on function sb.alter_queue(text, boolean, boolean, text, integer, boolean, name, boolean, boolean) is
  'ALTER QUEUE: null leaves a setting as it is. enabled true forgets counted rollbacks and delivers what waits; false stops enqueue and receive (R-049 to R-052). The first activation_procedure switches activation on unless told otherwise, a later one leaves that switch alone (R-046); drop_activation erases all activation settings (R-045). retention affects later messages only. For the owner and admins; what runs as a role, by members of that role. Errors: 42501, S0208, 22023, S9613, S9614, S9653, S9742, S9717 activation beside a QUEUE_ACTIVATION notification (R-063), S9663. Locks: the catalog, the queue row; conversations with skip locked.';
revoke all on function sb.alter_queue(text, boolean, boolean, text, integer, boolean, name, boolean, boolean) from public;
-- sqlgen:end functions/ddl/alter_queue.sql
-- sqlgen:begin functions/ddl/alter_route.sql sha256:e06013ea8e3e2cb448f7038cec2e6cd070308a5a83636d8e0bb34b5775d141f9
create or replace function sb.alter_route(
  name text,
  address text default null,
  service_name text default null,
  broker_instance text default null,
  lifetime interval default null,
  mirror_address text default null
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_route(
    current_user, alter_route.name, alter_route.address, alter_route.service_name,
    alter_route.broker_instance, alter_route.lifetime, alter_route.mirror_address
  );
end;
comment on function sb.alter_route(text, text, text, text, interval, text) is
  'ALTER ROUTE: null leaves a setting as it is, so that a wildcard never comes back; lifetime counts from now and revives an expired route (R-084, R-085). For the owner and admins. Errors: 42501, 42704 and those of sb.create_route. Locks: the catalog.';
revoke all on function sb.alter_route(text, text, text, text, interval, text) from public;
-- sqlgen:end functions/ddl/alter_route.sql
-- sqlgen:begin functions/ddl/alter_service.sql sha256:d69f75e5ac5ca84545fb78be6c23b90d144ecc843042fa28efc29cebd8082669
create or replace function sb.alter_service(
  name text,
  queue_name text default null,
  add_contracts text[] default '{}',
  drop_contracts text[] default '{}'
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_service(
    current_user, alter_service.name, alter_service.queue_name, alter_service.add_contracts,
    alter_service.drop_contracts
  );
end;
comment on function sb.alter_service(text, text, text[], text[]) is
  'ALTER SERVICE. queue_name moves the service with all its messages and timers; refused while either queue is off. drop_contracts stops new conversations only (R-072, R-073). For the owner and admins; the new queue must be the caller''s too, and a contract one that he may reference. Errors: 42501, S8423, S0208, 42704 no such contract, 42710 contract listed already, S8404, S8493 nothing to change (R-071), S9617 queue off, S9663. Locks: the catalog; a move of messages waits for every transaction that has touched messages and holds off new ones until it commits.';
revoke all on function sb.alter_service(text, text, text[], text[]) from public;
-- sqlgen:end functions/ddl/alter_service.sql
-- sqlgen:begin functions/ddl/create_broker_priority.sql sha256:d6a9ee45f549c5b702bf2387bb5967c440479ffa247669ef93d322b1a0162edd
create or replace function sb.create_broker_priority(
  name text,
  contract_name text default null,
  local_service_name text default null,
  remote_service_name text default null,
  priority_level integer default 5,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_broker_priority(
    current_user, create_broker_priority.name, create_broker_priority.contract_name,
    create_broker_priority.local_service_name, create_broker_priority.remote_service_name,
    create_broker_priority.priority_level, create_broker_priority.if_not_exists
  );
end;
comment on function sb.create_broker_priority(text, text, text, text, integer, boolean) is
  'CREATE BROKER PRIORITY: priority 1 to 10 of endpoints created later that match; null is ANY (R-096 to R-100). Admins only. Errors: 42501, 42602 name, 42710 the name or the same three criteria exist, 42704 no such contract, S8423 no such local service, 22023 level. Locks: the catalog.';
revoke all on function sb.create_broker_priority(text, text, text, text, integer, boolean) from public;
-- sqlgen:end functions/ddl/create_broker_priority.sql
-- sqlgen:begin functions/ddl/create_contract.sql sha256:a4bb4f558248f1d6f5b869f7b7f5ffe87ad9bd5d123e0bd3c90a55437a87257c
create or replace function sb.create_contract(
  name text,
  sent_by_initiator text[] default '{}',
  sent_by_target text[] default '{}',
  sent_by_any text[] default '{}',
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_contract(
    current_user, create_contract.name, create_contract.sent_by_initiator,
    create_contract.sent_by_target, create_contract.sent_by_any, create_contract.if_not_exists
  );
end;
comment on function sb.create_contract(text, text[], text[], text[], boolean) is
  'CREATE CONTRACT: which side may send which message types; it never changes afterwards (R-029 to R-033). Admins only. Errors: 42501, 42602 name, 42710 exists, 42704 no such message type, S8403 type listed twice, S8492 nothing for the initiator to send, S9663 a type that comes on every conversation anyway. Locks: the catalog.';
revoke all on function sb.create_contract(text, text[], text[], text[], boolean) from public;
-- sqlgen:end functions/ddl/create_contract.sql
-- sqlgen:begin functions/ddl/create_event_notification.sql sha256:46c7ab363e9c5e6c2a87e5bccaecc2bac21f6c5a7e2da4699f5d28c945b20124
create or replace function sb.create_event_notification(
  name text,
  queue_name text,
  event text,
  to_service text,
  broker_instance text default null,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_event_notification(
    current_user, create_event_notification.name, create_event_notification.queue_name,
    create_event_notification.event, create_event_notification.to_service,
    create_event_notification.broker_instance, create_event_notification.if_not_exists
  );
end;
comment on function sb.create_event_notification(text, text, text, text, text, boolean) is
  'CREATE EVENT NOTIFICATION on a queue: QUEUE_ACTIVATION or BROKER_QUEUE_DISABLED, as messages to a service that accepts the contract PostEventNotification, on one dialog that lives until the notification is dropped (R-108 to R-112). Names are unique per queue. Admins only. Errors: 42501, 42602 names, 42710 exists, S0208, 22023 event, S8413, S9718 the queue has activation enabled (R-063), S9663. Locks: the catalog, the queue row.';
revoke all on function sb.create_event_notification(text, text, text, text, text, boolean) from public;
-- sqlgen:end functions/ddl/create_event_notification.sql
-- sqlgen:begin functions/ddl/create_message_type.sql sha256:313f9f023fd6193f13ed1abf539cf5bd3414a2264582f0a1e18f9bdac1a85e34
create or replace function sb.create_message_type(
  name text,
  validation text default 'NONE',
  validator regprocedure default null,
  schema jsonb default null,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_message_type(
    current_user, create_message_type.name, create_message_type.validation,
    create_message_type.validator, create_message_type.schema, create_message_type.if_not_exists
  );
end;
comment on function sb.create_message_type(text, text, regprocedure, jsonb, boolean) is
  'CREATE MESSAGE TYPE. validation: NONE, EMPTY, WELL_FORMED_XML, VALID_XML (needs validator, a function (xml) returns boolean), WELL_FORMED_JSON, VALID_JSON (needs validator, a function (jsonb) returns boolean, or schema, a JSON schema). A validator runs with the rights of whoever sends. Admins only. Errors: 42501, 42602 name, 42710 exists, 22023 arguments that do not fit together or a schema keyword that is not supported (R-018 to R-020). Locks: the catalog.';
revoke all on function sb.create_message_type(text, text, regprocedure, jsonb, boolean) from public;
-- sqlgen:end functions/ddl/create_message_type.sql
-- sqlgen:begin functions/ddl/create_queue.sql sha256:a0cd05f50e1f4515fe7f5262dcf0382071ebe7eefd3f7c7e936cf65f784a249f
create or replace function sb.create_queue(
  name text,
  enabled boolean default true,
  retention boolean default false,
  activation_procedure text default null,
  max_queue_readers integer default null,
  activation_enabled boolean default true,
  execute_as name default null,
  poison_message_handling boolean default true,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_queue(
    current_user, create_queue.name, create_queue.enabled, create_queue.retention,
    create_queue.activation_procedure, create_queue.max_queue_readers,
    create_queue.activation_enabled, create_queue.execute_as, create_queue.poison_message_handling,
    create_queue.if_not_exists
  );
end;
comment on function sb.create_queue(text, boolean, boolean, text, integer, boolean, name, boolean, boolean) is
  'CREATE QUEUE. activation_procedure: schema.name of a function or procedure without arguments, run by the activator as execute_as (null: the queue''s owner) in at most max_queue_readers (null: 1) sessions (R-040 to R-044). Whoever names a role must be a member of it. Admins only. Errors: 42501, 42602 name, 42710 exists, 22023, S9613 no such role, S9614, S9653, S9742 procedure missing, with arguments, temporary. Locks: the catalog.';
revoke all on function sb.create_queue(text, boolean, boolean, text, integer, boolean, name, boolean, boolean) from public;
-- sqlgen:end functions/ddl/create_queue.sql
-- sqlgen:begin functions/ddl/create_route.sql sha256:222790706b75df0a36e9758cc0a3ac9b299e7aee4c11b62b52195f5a56244512
create or replace function sb.create_route(
  name text,
  address text,
  service_name text default null,
  broker_instance text default null,
  lifetime interval default null,
  mirror_address text default null,
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_route(
    current_user, create_route.name, create_route.address, create_route.service_name,
    create_route.broker_instance, create_route.lifetime, create_route.mirror_address,
    create_route.if_not_exists
  );
end;
comment on function sb.create_route(text, text, text, text, interval, text, boolean) is
  'CREATE ROUTE. address: LOCAL, or remote://<server>, a connection named in the activator''s configuration; null service_name and broker_instance match any (R-078 to R-083). Admins only. Errors: 42501, 42602 name, 42710 exists, S9659, S9660, S9661, S9662, S9743, S9744, S9746, S9747, 22023. Locks: the catalog.';
revoke all on function sb.create_route(text, text, text, text, interval, text, boolean) from public;
-- sqlgen:end functions/ddl/create_route.sql
-- sqlgen:begin functions/ddl/create_service.sql sha256:d138adc0d376a4fa40b3ff46a90acfa04bfcc6e927621878f2cf4f3aabfd8f20
create or replace function sb.create_service(
  name text,
  queue_name text,
  contracts text[] default '{}',
  if_not_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._create_service(
    current_user, create_service.name, create_service.queue_name, create_service.contracts,
    create_service.if_not_exists
  );
end;
comment on function sb.create_service(text, text, text[], boolean) is
  'CREATE SERVICE on a queue. contracts: those it accepts as target, DEFAULT only when listed; without any it can only initiate (R-066 to R-069). Delivers at once what waits for it. Admins only. Errors: 42501, 42602 name, 42710 exists, S0208 no such queue, 42704 no such contract, S8404 contract listed twice, S9663. Locks: the catalog; conversations with skip locked.';
revoke all on function sb.create_service(text, text, text[], boolean) from public;
-- sqlgen:end functions/ddl/create_service.sql
-- sqlgen:begin functions/ddl/drop_broker_priority.sql sha256:1c130185318dfa869cd0bd4323b40efa235ebc8161f72ea49e9bf2274ea6a504
create or replace function sb.drop_broker_priority(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_broker_priority(
    current_user, drop_broker_priority.name, drop_broker_priority.if_exists
  );
end;
comment on function sb.drop_broker_priority(text, boolean) is
  'DROP BROKER PRIORITY: endpoints that exist keep what they have (R-106). Admins only. Errors: 42501, 42704. Locks: the catalog.';
revoke all on function sb.drop_broker_priority(text, boolean) from public;
-- sqlgen:end functions/ddl/drop_broker_priority.sql
-- sqlgen:begin functions/ddl/drop_contract.sql sha256:a8793d8b862f9abd88ff26e4526abdbaf828e4cf73d5a316b7c80595d2af37c0
create or replace function sb.drop_contract(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_contract(current_user, drop_contract.name, drop_contract.if_exists);
end;
comment on function sb.drop_contract(text, boolean) is
  'DROP CONTRACT. Conversations that still follow it end with an error: their initiator side goes, the target side gets Error -8487; a side whose initiator is elsewhere goes itself and tells the peer (R-039). For the owner and admins. Errors: 42501, 42704, S3716 listed by a service or a broker priority (R-038), S9663. Locks: the catalog, then the endpoint table against new dialogs, then groups and endpoints of these conversations, all at once or none.';
revoke all on function sb.drop_contract(text, boolean) from public;
-- sqlgen:end functions/ddl/drop_contract.sql
-- sqlgen:begin functions/ddl/drop_event_notification.sql sha256:4bcc44f6f1b69715bcab5d37159d0e8fe5b376ba72f22a6525c5d1c5d048ab2e
create or replace function sb.drop_event_notification(
  name text,
  queue_name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_event_notification(
    current_user, drop_event_notification.name, drop_event_notification.queue_name,
    drop_event_notification.if_exists
  );
end;
comment on function sb.drop_event_notification(text, text, boolean) is
  'DROP EVENT NOTIFICATION: its dialog ends, the subscriber gets EndDialog (R-110). For the owner of the queue and admins. Errors: 42501, S0208 no such queue, 42704 no such notification. Locks: the catalog, the queue row, the notification, then its dialog.';
revoke all on function sb.drop_event_notification(text, text, boolean) from public;
-- sqlgen:end functions/ddl/drop_event_notification.sql
-- sqlgen:begin functions/ddl/drop_message_type.sql sha256:0642002958ce391477723314b5cc535ed3ca5a8f56d1f55eb0e68892c7810d6b
create or replace function sb.drop_message_type(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_message_type(
    current_user, drop_message_type.name, drop_message_type.if_exists
  );
end;
comment on function sb.drop_message_type(text, boolean) is
  'DROP MESSAGE TYPE. For the owner and admins. Errors: 42501, 42704, S3716 in use by a contract (R-028), S9663 system type. Locks: the catalog.';
revoke all on function sb.drop_message_type(text, boolean) from public;
-- sqlgen:end functions/ddl/drop_message_type.sql
-- sqlgen:begin functions/ddl/drop_queue.sql sha256:1b9844c4a298fc21b3b04f4b035b44c0354dcc3e432fe8944878707333379a28
create or replace function sb.drop_queue(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_queue(current_user, drop_queue.name, drop_queue.if_exists);
end;
comment on function sb.drop_queue(text, boolean) is
  'DROP QUEUE, with its event notifications, whose subscribers get EndDialog (R-060, R-110). For the owner and admins. Errors: 42501, S0208, S3716 used by a service, S9663. Locks: the catalog, the queue row. Waits for nobody who receives.';
revoke all on function sb.drop_queue(text, boolean) from public;
-- sqlgen:end functions/ddl/drop_queue.sql
-- sqlgen:begin functions/ddl/drop_route.sql sha256:9501a9263ef75ad36dac54643bf7deb9c8240d39802e2b944458f0047265fc91
create or replace function sb.drop_route(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_route(current_user, drop_route.name, drop_route.if_exists);
end;
comment on function sb.drop_route(text, boolean) is
  'DROP ROUTE: always allowed; messages that used it wait for another (R-086). For the owner and admins. Errors: 42501, 42704. Locks: the catalog.';
revoke all on function sb.drop_route(text, boolean) from public;
-- sqlgen:end functions/ddl/drop_route.sql
-- sqlgen:begin functions/ddl/drop_service.sql sha256:fa5394dccac571cb76fa95065005c2e1d38a062c178a0b98f48694c7c5352fd9
create or replace function sb.drop_service(
  name text,
  if_exists boolean default false
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._drop_service(current_user, drop_service.name, drop_service.if_exists);
end;
comment on function sb.drop_service(text, boolean) is
  'DROP SERVICE with its conversations and messages; the peer of each gets Error -8470 (R-076). For the owner and admins. Errors: 42501, S8423, S3716 named as local service by a broker priority (R-075), S9663. Locks: the catalog, then service row, groups and endpoints, all at once or none: waits for transactions that use them, holding nothing meanwhile.';
revoke all on function sb.drop_service(text, boolean) from public;
-- sqlgen:end functions/ddl/drop_service.sql
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
-- sqlgen:begin functions/admin/alter_authorization.sql sha256:5eb2aa990c40d47f9b2db377bf4462fb2a60202b5b4d7548f81597d3ed0e2584
create or replace function sb.alter_authorization(
  kind text,
  name text,
  new_owner name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._alter_authorization(
    current_user, alter_authorization.kind, alter_authorization.name, alter_authorization.new_owner
  );
end;
comment on function sb.alter_authorization(text, text, name) is
  'ALTER AUTHORIZATION: gives a message_type, contract, queue, service or route to another role, which also gets what it needs to call the verbs. The caller must own the object, or be an admin, and be a member of the new owner (R-010). Errors: 42501, 22023 kind, 42704, S0208, S8423, S9663. Locks: the catalog.';
revoke all on function sb.alter_authorization(text, text, name) from public;
-- sqlgen:end functions/admin/alter_authorization.sql
-- sqlgen:begin functions/admin/deliver.sql sha256:8cd59207a516fae27ce2855c48688284cad048fcd86b055bde2b2c5d307306a1
create or replace function sb.deliver(queue_name text default null)
  returns bigint
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._deliver_queue(current_user, deliver.queue_name);
end;
comment on function sb.deliver(text) is
  'Moves on what waits in the transmission queue and can be delivered, for one queue or all, and returns how many messages. Skips conversations that are locked. For admins. Errors: S0208, 42501.';
revoke all on function sb.deliver(text) from public;
-- sqlgen:end functions/admin/deliver.sql
-- sqlgen:begin functions/admin/disable_broker.sql sha256:4981a49923285b8c9c2347865ade118250d0fd4ac97fbb0cc2bd4e52b731257a
create or replace function sb.disable_broker()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._switch_broker(current_user, false);
end;
comment on function sb.disable_broker() is
  'ALTER DATABASE SET DISABLE_BROKER: what is sent waits in the transmission queue, what has arrived can still be received; DDL works (R-119). Admins only. Errors: 42501. Locks: the catalog.';
revoke all on function sb.disable_broker() from public;
-- sqlgen:end functions/admin/disable_broker.sql
-- sqlgen:begin functions/admin/enable_broker.sql sha256:55293e01cd3315baa7c5aa6541480889e04eb3bbb34de96cc78c3e765535441d
create or replace function sb.enable_broker()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._switch_broker(current_user, true);
end;
comment on function sb.enable_broker() is
  'ALTER DATABASE SET ENABLE_BROKER: messages are delivered again, those that wait at once; the broker instance stays (R-118). Admins only. Errors: 42501. Locks: the catalog; conversations with skip locked.';
revoke all on function sb.enable_broker() from public;
-- sqlgen:end functions/admin/enable_broker.sql
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
-- sqlgen:begin functions/admin/grant_admin.sql sha256:f8ed8e2fb8f22f025e7320405d3cdbe71105281c61ee1cae51b5e86e401f8932
create or replace function sb.grant_admin(role name)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_admin(current_user, grant_admin.role, true);
end;
comment on function sb.grant_admin(name) is
  'Makes a role an admin: it may run every DDL verb and sees and ends everything, as the owner of sb does; members of the role inherit that. Admins only. Errors: 42501, 42704 no such role, 22023 public. Locks: the catalog.';
revoke all on function sb.grant_admin(name) from public;
-- sqlgen:end functions/admin/grant_admin.sql
-- sqlgen:begin functions/admin/grant_receive.sql sha256:1831f1722c95d8f0c9f611990683f8f7794065e75165f2ada524d334004c948d
create or replace function sb.grant_receive(
  queue_name text,
  role name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_access(
    current_user, 'receive', grant_receive.queue_name, grant_receive.role, true
  );
end;
comment on function sb.grant_receive(text, name) is
  'Lets the role receive from the queue, begin dialogs from its services and use their conversations (R-374); public is everybody. Also gives what is needed to call the verbs. For the owner of the queue and admins. Errors: 42501, S0208, 42704 no such role, S9663. Locks: the catalog.';
revoke all on function sb.grant_receive(text, name) from public;
-- sqlgen:end functions/admin/grant_receive.sql
-- sqlgen:begin functions/admin/grant_references.sql sha256:2017346e918c2eaf59f76f583c0ff0ed340100a959d3ac5a76858de0280f9c65
create or replace function sb.grant_references(
  contract_name text,
  role name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_access(
    current_user, 'references', grant_references.contract_name, grant_references.role, true
  );
end;
comment on function sb.grant_references(text, name) is
  'Lets the role use the contract: begin dialogs on it, add it to services of its own (R-372, R-374); public is everybody. Also gives what is needed to call the verbs. For the owner of the contract and admins. Errors: 42501, 42704 no such contract or role, S9663. Locks: the catalog.';
revoke all on function sb.grant_references(text, name) from public;
-- sqlgen:end functions/admin/grant_references.sql
-- sqlgen:begin functions/admin/grant_send.sql sha256:5b0743c9b6f12d3162ce782ebaecd73246600dad8d1060ace9e9ef763d11e9ca
create or replace function sb.grant_send(
  service_name text,
  role name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_access(
    current_user, 'send', grant_send.service_name, grant_send.role, true
  );
end;
comment on function sb.grant_send(text, name) is
  'Lets services owned by the role begin dialogs with the service and send to it (R-374); public is everybody. Also gives what is needed to call the verbs. For the owner of the service and admins. Errors: 42501, S8423, 42704 no such role, S9663. Locks: the catalog.';
revoke all on function sb.grant_send(text, name) from public;
-- sqlgen:end functions/admin/grant_send.sql
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
-- sqlgen:begin functions/admin/new_broker.sql sha256:4c1d4993131a33a01cbef5fe5bb200aafb11b8b43cffaebdc89f45f052ae7b79
create or replace function sb.new_broker()
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._new_broker(current_user);
end;
comment on function sb.new_broker() is
  'ALTER DATABASE SET NEW_BROKER: a new broker instance, enabled; every conversation with its messages is gone without a word to anybody (R-120). Admins only. Errors: 42501. Locks: the catalog, then all messaging tables: waits until no transaction uses them and holds off new ones until commit.';
revoke all on function sb.new_broker() from public;
-- sqlgen:end functions/admin/new_broker.sql
-- sqlgen:begin functions/admin/revoke_admin.sql sha256:f0afbab136297c6b39b607bec619f651f224f174663490e1957bcac32495fd44
create or replace function sb.revoke_admin(role name)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_admin(current_user, revoke_admin.role, false);
end;
comment on function sb.revoke_admin(name) is
  'Takes sb.grant_admin back; nothing happens when the role is no admin. Admins only. Errors: 42501, 42704 no such role. Locks: the catalog.';
revoke all on function sb.revoke_admin(name) from public;
-- sqlgen:end functions/admin/revoke_admin.sql
-- sqlgen:begin functions/admin/revoke_receive.sql sha256:c9fb895fb9a0f7ac8a4ac473cd556b3eee5bf425c38e63a9737771a293c12b00
create or replace function sb.revoke_receive(
  queue_name text,
  role name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_access(
    current_user, 'receive', revoke_receive.queue_name, revoke_receive.role, false
  );
end;
comment on function sb.revoke_receive(text, name) is
  'Takes sb.grant_receive back, and with its last right all that a role needs to call the verbs. For the owner of the queue and admins. Errors: 42501, S0208, 42704 no such role, S9663. Locks: the catalog.';
revoke all on function sb.revoke_receive(text, name) from public;
-- sqlgen:end functions/admin/revoke_receive.sql
-- sqlgen:begin functions/admin/revoke_references.sql sha256:6f3bb88ff3e711f3af68333cce6bea5d8ba5d0b522d78e0d8c9cc4518ab7760e
create or replace function sb.revoke_references(
  contract_name text,
  role name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_access(
    current_user, 'references', revoke_references.contract_name, revoke_references.role, false
  );
end;
comment on function sb.revoke_references(text, name) is
  'Takes sb.grant_references back, and with its last right all that a role needs to call the verbs. For the owner of the contract and admins. Errors: 42501, 42704 no such contract or role, S9663. Locks: the catalog.';
revoke all on function sb.revoke_references(text, name) from public;
-- sqlgen:end functions/admin/revoke_references.sql
-- sqlgen:begin functions/admin/revoke_send.sql sha256:cb777c2abb189e041df5e3b7dc8a34047eb2cf6c08847515d6030f661b76b88a
create or replace function sb.revoke_send(
  service_name text,
  role name
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._change_access(
    current_user, 'send', revoke_send.service_name, revoke_send.role, false
  );
end;
comment on function sb.revoke_send(text, name) is
  'Takes sb.grant_send back, and with its last right all that a role needs to call the verbs. Conversations that exist go on. For the owner of the service and admins. Errors: 42501, S8423, 42704 no such role, S9663. Locks: the catalog.';
revoke all on function sb.revoke_send(text, name) from public;
-- sqlgen:end functions/admin/revoke_send.sql
-- sqlgen:begin functions/admin/set_option.sql sha256:d184688582e8a7b86754562c27f77089f37d436933b107cc9db68090620e1d19
create or replace function sb.set_option(
  name text,
  value text
)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._set_option(current_user, set_option.name, set_option.value);
end;
comment on function sb.set_option(text, text) is
  'Sets an option of the broker (view sb.options): system_names documented|sqlserver, honor_broker_priority on|off, validate_on_send on|off, poison_message_threshold 1 or more. Admins only. Errors: 42501, 22023 no such option or value. Locks: the catalog.';
revoke all on function sb.set_option(text, text) from public;
-- sqlgen:end functions/admin/set_option.sql
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
-- sqlgen:begin functions/activation/_activation_scan.sql sha256:dfb7f98657ddb0adbdac9ccb0f2140e20e8d3ffd98df477bdaec2a722b17e8e5
create or replace function sb_internal._activation_scan(caller name, queue_ids integer[])
  returns table (queue_id integer, is_on boolean, has_ready boolean, due_in double precision, receives bigint)
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
  set enable_seqscan = off
  set enable_bitmapscan = off
  set jit = off
as $$
declare
  is_enabled boolean;
  is_broker_enabled boolean;
begin
  perform sb_internal._require_admin(_activation_scan.caller, 'run an activator');
  foreach queue_id in array _activation_scan.queue_ids loop
    select q.is_enabled, b.is_broker_enabled
      into is_enabled, is_broker_enabled
      from sb_internal.queue as q
      join sb_internal.broker as b on b.singleton
     where q.queue_id = _activation_scan.queue_id;
    continue when not found;

    is_on := sb_internal._queue_is_on(_activation_scan.queue_id);
    if is_enabled and not is_on then
      -- The poison limit is reached, and readers that roll back cannot write that down.
      perform sb_internal._poison_disable(_activation_scan.queue_id);
    end if;
    is_on := is_on and is_broker_enabled;
    receives := coalesce(sb_internal._cell(_activation_scan.queue_id, 'poison_position'), 0);

    select extract(epoch from min(o.due_at) - sb_internal._now())::double precision
      into due_in
      from sb_internal.broker as b
     cross join unnest(b.priority_levels) as l (priority)
     cross join lateral (
       select d.due_at
         from sb_internal.due as d
        where d.queue_id = _activation_scan.queue_id
          and d.priority = l.priority
        order by d.due_at
        limit 1) as o
     where b.singleton;
    has_ready := is_on and (
      coalesce(due_in <= 0, false)
      or exists (
        select 1
          from sb_internal.message as m
         where m.queue_id = _activation_scan.queue_id));
    return next;
  end loop;
end
$$;
comment on function sb_internal._activation_scan(name, integer[]) is
  'A look at queues, behind sb.activation_scan.';
revoke all on function sb_internal._activation_scan(name, integer[]) from public;
-- sqlgen:end functions/activation/_activation_scan.sql
-- sqlgen:begin functions/activation/_back_off_group.sql sha256:9191f076a9d835a4c8ea7eb80aaa128dd31f3032c134550938e6df9d93d20bb6
create or replace function sb_internal._back_off_group(caller name, conversation_group_id uuid)
  returns interval
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  failed_at timestamptz := sb_internal._now();
  delay interval;
  failed integer;
begin
  perform sb_internal._require_admin(_back_off_group.caller, 'back off a conversation group');
  -- Failures of long ago are not held against a group that has worked since.
  insert into sb_internal.group_backoff as b (conversation_group_id, not_before, failures)
  values (_back_off_group.conversation_group_id, failed_at, 1)
  on conflict on constraint group_backoff_pkey do update
     set failures = case when b.not_before < failed_at - interval '1 minute' then 1 else b.failures + 1 end
  returning b.failures into failed;
  delay := least(30, 0.1 * power(2, least(failed, 10) - 1)) * (0.9 + 0.2 * random()) * interval '1 second';
  update sb_internal.group_backoff as b
     set not_before = failed_at + delay
   where b.conversation_group_id = _back_off_group.conversation_group_id;
  return delay;
end
$$;
comment on function sb_internal._back_off_group(name, uuid) is
  'Back-off of a group behind sb.back_off_group.';
revoke all on function sb_internal._back_off_group(name, uuid) from public;
-- sqlgen:end functions/activation/_back_off_group.sql
-- sqlgen:begin functions/activation/_clear_back_off.sql sha256:69586e56225d30d796f6ed108d09b448ef7dc4a48d4f87e864499483a8ca6395
create or replace function sb_internal._clear_back_off(caller name, conversation_group_id uuid)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_clear_back_off.caller, 'back off a conversation group');
  delete from sb_internal.group_backoff as b
   where b.conversation_group_id = _clear_back_off.conversation_group_id;
end
$$;
comment on function sb_internal._clear_back_off(name, uuid) is
  'End of back-off behind sb.clear_back_off.';
revoke all on function sb_internal._clear_back_off(name, uuid) from public;
-- sqlgen:end functions/activation/_clear_back_off.sql
-- sqlgen:begin functions/activation/_held_readers.sql sha256:ef53cd6aefcb6fe7f797b0b5354d6e3df982bb086d0e6d7644f6c1255c5834ae
create or replace function sb_internal._held_readers()
  returns table (queue_id integer, slot integer)
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  return query
    select ((k.key >> 15) & 2147483647)::integer, (k.key & 32767)::integer
      from pg_locks as l
     cross join lateral (select (l.classid::bigint << 32) | l.objid::bigint as key) as k
     where l.locktype = 'advisory'
       and l.objsubid = 1
       and l.database = (select d.oid from pg_database as d where d.datname = current_database())
       and l.granted
       and k.key >> 48 = 21314;
end
$$;
comment on function sb_internal._held_readers() is
  'The reader slots that are taken right now, over all activators. Reads the whole lock table: not for hot paths.';
revoke all on function sb_internal._held_readers() from public;
-- sqlgen:end functions/activation/_held_readers.sql
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
-- sqlgen:begin functions/activation/_queue_writers.sql sha256:eed2043ddd1036e276379ad7d2e53fb9fd1b560d60ae08aae6d239ecd3ca5821
create or replace function sb_internal._queue_writers(caller name)
  returns text[]
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
begin
  perform sb_internal._require_admin(_queue_writers.caller, 'run an activator');
  return array(
    select distinct l.virtualtransaction
      from pg_locks as l
     where l.locktype = 'relation'
       and l.database = (select d.oid from pg_database as d where d.datname = current_database())
       and l.relation in ('sb_internal.message'::regclass, 'sb_internal.due'::regclass)
       and l.mode in ('RowExclusiveLock', 'ShareRowExclusiveLock')
       and l.granted
       and l.pid is distinct from pg_backend_pid());
end
$$;
comment on function sb_internal._queue_writers(name) is
  'The fence of the waiting flag, behind sb.queue_writers.';
revoke all on function sb_internal._queue_writers(name) from public;
-- sqlgen:end functions/activation/_queue_writers.sql
-- sqlgen:begin functions/activation/_reader_slot.sql sha256:7d68e838df856e63600690c5442ed7c8a94b6534fba7e098f93f2b9d0df9409b
-- A reader's slot is an advisory lock in the single-bigint key space: 16 bits say that the lock is ours
-- ('SB'), then queue and slot. Class 8420 of the two-integer space is the waiting flag.
create or replace function sb_internal._reader_slot(queue_id integer, slot integer)
  returns bigint
  language sql
  immutable
  parallel safe
  security invoker
begin atomic
  select (21314::bigint operator(pg_catalog.<<) 48)
    operator(pg_catalog.|) (_reader_slot.queue_id::bigint operator(pg_catalog.<<) 15)
    operator(pg_catalog.|) _reader_slot.slot::bigint;
end;
comment on function sb_internal._reader_slot(integer, integer) is
  'Advisory lock key of one reader slot of a queue.';
revoke all on function sb_internal._reader_slot(integer, integer) from public;
-- sqlgen:end functions/activation/_reader_slot.sql
-- sqlgen:begin functions/activation/_report_activation.sql sha256:7b22b59ede84dc69751b02674e11bd96160d8d1b1e56d8bc53a4b1938d75fb31
create or replace function sb_internal._report_activation(caller name, activator text, tasks jsonb, monitors jsonb)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security definer
  set search_path = pg_catalog, pg_temp
as $$
declare
  reported_at timestamptz := sb_internal._now();
begin
  perform sb_internal._require_admin(_report_activation.caller, 'run an activator');

  delete from sb_internal.activated_task as t
   where t.activator = _report_activation.activator
     and t.pid <> all (array(
           select r.pid
             from jsonb_to_recordset(_report_activation.tasks) as r (pid integer)));
  insert into sb_internal.activated_task as t (pid, queue_id, procedure_name, execute_as, activator, started_at)
  select r.pid, r.queue_id, r.procedure_name, r.execute_as, _report_activation.activator,
         reported_at - r.age * interval '1 second'
    from jsonb_to_recordset(_report_activation.tasks)
           as r (pid integer, queue_id integer, procedure_name text, execute_as name, age double precision)
    join sb_internal.queue as q on q.queue_id = r.queue_id
   order by r.pid
  on conflict on constraint activated_task_pkey do update
     set queue_id = excluded.queue_id,
         procedure_name = excluded.procedure_name,
         execute_as = excluded.execute_as,
         activator = excluded.activator,
         started_at = excluded.started_at;

  -- In id order, for two activators may report at once. That this one has nothing to do does not make a
  -- queue inactive on which another one's readers are busy.
  insert into sb_internal.queue_monitor as m (queue_id, state, last_empty_rowset_time, last_activated_time)
  select r.queue_id, r.state, reported_at - r.empty_age * interval '1 second', reported_at - r.activated_age * interval '1 second'
    from jsonb_to_recordset(_report_activation.monitors)
           as r (queue_id integer, state text, empty_age double precision, activated_age double precision)
    join sb_internal.queue as q on q.queue_id = r.queue_id
   where not q.has_activation_event
     and (r.state <> 'INACTIVE'
       or r.queue_id not in (select h.queue_id from sb_internal._held_readers() as h))
   order by r.queue_id
  on conflict on constraint queue_monitor_pkey do update
     set state = excluded.state,
         last_empty_rowset_time = greatest(m.last_empty_rowset_time, excluded.last_empty_rowset_time),
         last_activated_time = greatest(m.last_activated_time, excluded.last_activated_time);
end
$$;
comment on function sb_internal._report_activation(name, text, jsonb, jsonb) is
  'What an activator does, behind sb.report_activation.';
revoke all on function sb_internal._report_activation(name, text, jsonb, jsonb) from public;
-- sqlgen:end functions/activation/_report_activation.sql
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
-- sqlgen:begin functions/activation/activation_scan.sql sha256:433eaed67a46b5b2a6c688a69bd323ced04e4ed30dc9bc375d879150b96ebb0b
create or replace function sb.activation_scan(queue_ids integer[])
  returns table (queue_id integer, is_on boolean, has_ready boolean, due_in double precision, receives bigint)
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select s.queue_id, s.is_on, s.has_ready, s.due_in, s.receives
    from sb_internal._activation_scan(current_user, activation_scan.queue_ids) as s;
end;
comment on function sb.activation_scan(integer[]) is
  'For activators: whether queues are on (and the broker is, R-314), have any ready row at all (locked ones included, and what time has made due), in how many seconds the next timer or lifetime is due, and a counter that moves with every receive of messages while poison handling is on. Writes down, and announces, that the poison limit switched a queue off. Admins only. Locks: rows of queues to switch off, with skip locked.';
revoke all on function sb.activation_scan(integer[]) from public;
-- sqlgen:end functions/activation/activation_scan.sql
-- sqlgen:begin functions/activation/back_off_group.sql sha256:0b7bcb13a7115833d9f9970e1c3c08b62068b947ed867f83fe3781a672dec0e1
create or replace function sb.back_off_group(conversation_group_id uuid)
  returns interval
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._back_off_group(current_user, back_off_group.conversation_group_id);
end;
comment on function sb.back_off_group(uuid) is
  'For activators: the group''s handler failed; receive without for_… leaves the group alone for the time returned: 0.1 s, doubling with each failure to 30 s, with jitter. To be called outside the transaction that failed, and before that gives the group free. Admins only. Locks: the group''s back-off row.';
revoke all on function sb.back_off_group(uuid) from public;
-- sqlgen:end functions/activation/back_off_group.sql
-- sqlgen:begin functions/activation/clear_back_off.sql sha256:c411373278115219fd7bce4746bbd06ac1ccde20085bd24219848e3ac2e2cd3e
create or replace function sb.clear_back_off(conversation_group_id uuid)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._clear_back_off(current_user, clear_back_off.conversation_group_id);
end;
comment on function sb.clear_back_off(uuid) is
  'For activators: a handler of the group succeeded after failures; its back-off begins anew. Admins only. Locks: the group''s back-off row.';
revoke all on function sb.clear_back_off(uuid) from public;
-- sqlgen:end functions/activation/clear_back_off.sql
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
-- sqlgen:begin functions/activation/queue_writers.sql sha256:91a23cb28cb41b840b6bd22fa6b8d21a8e7802853b0cb900ff6f2f279a3e55f3
create or replace function sb.queue_writers()
  returns text[]
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._queue_writers(current_user);
end;
comment on function sb.queue_writers() is
  'For activators: the transactions that have written messages or timers and not ended yet. Those that were here when a waiting flag went up may have missed it; when none of them is left, whatever comes notifies. Admins only. Locks: none.';
revoke all on function sb.queue_writers() from public;
-- sqlgen:end functions/activation/queue_writers.sql
-- sqlgen:begin functions/activation/report_activation.sql sha256:744123f9a247ef9da249b48556b0acb44996e5e6f3c1bbad68659334a68b4aaa
create or replace function sb.report_activation(activator text, tasks jsonb, monitors jsonb)
  returns void
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._report_activation(current_user, report_activation.activator, report_activation.tasks,
    report_activation.monitors);
end;
comment on function sb.report_activation(text, jsonb, jsonb) is
  'For activators: replaces what sb.dm_broker_activated_tasks shows of this activator by tasks ([{pid, queue_id, procedure_name, execute_as, age}], age in seconds) and brings sb.dm_broker_queue_monitors up to date with monitors ([{queue_id, state, empty_age, activated_age}]). For show only. Admins only. Locks: those rows.';
revoke all on function sb.report_activation(text, jsonb, jsonb) from public;
-- sqlgen:end functions/activation/report_activation.sql
-- sqlgen:begin functions/activation/take_reader.sql sha256:289dcfa1e5cfe84889de14b7b4063c8a709a0ae25516a84ef502ea3d86743e66
create or replace function sb.take_reader(
  queue_id integer,
  max_readers integer default null,
  for_session boolean default false
)
  returns boolean
  language sql
  volatile
  parallel unsafe
  security invoker
begin atomic
  select sb_internal._take_reader(current_user, take_reader.queue_id, take_reader.max_readers, take_reader.for_session);
end;
comment on function sb.take_reader(integer, integer, boolean) is
  'For activators: takes one of the queue''s reader slots until the transaction ends (or, for_session, until the session ends or unlocks all), false when all are taken. The queue''s max_queue_readers is the limit over all activators (R-324); max_readers may lower it, and is the limit where the queue has none. Admins only. Locks: an advisory lock, never waited for.';
revoke all on function sb.take_reader(integer, integer, boolean) from public;
-- sqlgen:end functions/activation/take_reader.sql
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
-- sqlgen:begin views/conversation_groups.sql sha256:45051ae6f8d4ef816ff0f9ba202c2f48bc4750f4cc79a611ced93c24649036a1
create or replace view sb.conversation_groups
  with (security_barrier = true)
as
select g.conversation_group_id,
       g.service_id,
       g.service_id < 65536 as is_system
  from sb.conversation_group as g
  join sb_internal.service as s on s.service_id = g.service_id
 where s.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.conversation_groups is
  'Conversation groups of services whose queue the reader may receive from.';
-- sqlgen:end views/conversation_groups.sql
-- sqlgen:begin views/conversation_priorities.sql sha256:593657f654f26aeb24567710ddfa70ca409809e0d7621019d2228acd2c3de50a
create or replace view sb.conversation_priorities
  with (security_barrier = true)
as
select p.priority_id,
       p.name,
       p.service_contract_id,
       p.local_service_id,
       p.remote_service_name,
       p.priority
  from sb_internal.conversation_priority as p
 where p.priority_id = any ((select sb_internal._visible(current_user, 'broker priority'))::integer[]);
comment on view sb.conversation_priorities is
  'Broker priorities, null for ANY; for admins, since nobody owns a priority (R-107).';
-- sqlgen:end views/conversation_priorities.sql
-- sqlgen:begin views/conversation_state.sql sha256:b6b084b8d957a02d3a9866e586de566842dc03748ca22b0659be8879fc008bb0
create or replace view sb.conversation_state
  with (security_barrier = true)
as
select t.conversation_group_id,
       t.state
  from sb_internal.state as t
  join sb.conversation_group as g on g.conversation_group_id = t.conversation_group_id
  join sb_internal.service as s on s.service_id = g.service_id
 where s.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.conversation_state is
  'The built-in state table, one row for each conversation group that has state, of services whose queue the reader may receive from. Written by sb.set_state.';
-- sqlgen:end views/conversation_state.sql
-- sqlgen:begin views/dm_broker_activated_tasks.sql sha256:441ab69bdc8bb13af2dc9421032f32c24b08e0cb4110b104b42fe4194f09e670
create or replace view sb.dm_broker_activated_tasks
  with (security_barrier = true)
as
select t.pid as spid,
       t.queue_id,
       q.name as queue_name,
       t.procedure_name,
       t.execute_as,
       t.activator,
       t.started_at
  from sb_internal.activated_task as t
  join sb_internal.queue as q on q.queue_id = t.queue_id
 where exists (
         select 1
           from pg_catalog.pg_stat_get_activity(t.pid) as a
          where a.datid = (
                  select d.oid
                    from pg_catalog.pg_database as d
                   where d.datname = pg_catalog.current_database())
            -- Hidden, hence null, from a reader without rights on that session.
            and (a.backend_start is null or a.backend_start <= t.started_at))
   and q.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.dm_broker_activated_tasks is
  'What activators run right now, of queues that the reader may receive from; spid is the pid of the backend.';
-- sqlgen:end views/dm_broker_activated_tasks.sql
-- sqlgen:begin views/dm_broker_queue_monitors.sql sha256:902a31a3b202870e266fac5190e70a463275b96e57fc6f0cab0c69a1bd812d8d
create or replace view sb.dm_broker_queue_monitors
  with (security_barrier = true)
as
select (select d.oid::integer
          from pg_catalog.pg_database as d
         where d.datname = pg_catalog.current_database()) as database_id,
       q.queue_id,
       coalesce(m.state, 'INACTIVE') as state,
       m.last_empty_rowset_time,
       m.last_activated_time,
       (select pg_catalog.count(*)::integer
          from pg_catalog.pg_locks as l
         where l.locktype = 'advisory'
           and l.classid = 8420
           and l.objid::bigint = q.queue_id
           and l.objsubid = 2
           and l.mode = 'ShareLock'
           and l.granted
           and l.database = (
             select d.oid
               from pg_catalog.pg_database as d
              where d.datname = pg_catalog.current_database())) as tasks_waiting,
       q.name as queue_name
  from sb_internal.queue as q
  left join sb_internal.queue_monitor as m on m.queue_id = q.queue_id
 cross join sb_internal.broker as b
 where b.is_broker_enabled
   and (q.is_activation_enabled or q.has_activation_event)
   and q.queue_id = any ((select sb_internal._queues_on())::integer[])
   and q.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.dm_broker_queue_monitors is
  'State of activation of queues with activation or a QUEUE_ACTIVATION notification, while they and the broker are on (R-314): INACTIVE, NOTIFIED or RECEIVES_OCCURRING. tasks_waiting counts sessions that announced with sb.start_waiting that they sleep.';
-- sqlgen:end views/dm_broker_queue_monitors.sql
-- sqlgen:begin views/options.sql sha256:f59b1b87b6d71268233f8295e103833654f3886b9dbe33299fedcd48bdf9d5b2
create or replace view sb.options
  with (security_barrier = true)
as
select o.name,
       o.value,
       o.default_value,
       o.description
  from sb_internal.broker as b
 cross join lateral (
   values
     ('system_names', b.system_names, 'documented',
       'documented: system names begin with https:// as in the documentation; sqlserver: with http:// as in the product'),
     ('honor_broker_priority', case when b.is_honor_broker_priority_on then 'on' else 'off' end, 'off',
       'on: what waits in the transmission queue is delivered by priority'),
     ('validate_on_send', case when b.is_validate_on_send then 'on' else 'off' end, 'off',
       'on: SEND of an invalid body fails; off: both sides of the conversation get an Error'),
     ('poison_message_threshold', b.poison_message_threshold::text, '5',
       'how many receiving transactions that roll back in a row switch a queue off')
 ) as o (name, value, default_value, description);
comment on view sb.options is
  'The options of the broker; sb.set_option sets them.';
-- sqlgen:end views/options.sql
-- sqlgen:begin views/queue_messages.sql sha256:f09ebfea87b70e12275c81571097b853bd61895758dc52a7f71d84118dc0b0f8
create or replace view sb.queue_messages
  with (security_barrier = true)
as
select q.name as queue_name,
       m.status,
       m.priority,
       m.queuing_order,
       m.conversation_group_id,
       m.conversation_handle,
       m.message_sequence_number,
       case b.system_names when 'sqlserver' then coalesce(s.sqlserver_name, s.name) else s.name end as service_name,
       s.service_id,
       case b.system_names when 'sqlserver' then coalesce(c.sqlserver_name, c.name) else c.name end
         as service_contract_name,
       m.service_contract_id,
       case b.system_names when 'sqlserver' then coalesce(t.sqlserver_name, t.name) else t.name end
         as message_type_name,
       m.message_type_id,
       case
         when t.validation = 'NONE' then 'N'
         when t.validation = 'EMPTY' then 'E'
         when t.validation in ('WELL_FORMED_XML', 'VALID_XML') then 'X'
         else 'J'
       end as validation,
       m.message_body,
       m.message_enqueue_time
  from sb_internal.queue as q
  join lateral (
    -- An orphan, whose endpoint is gone, is no message.
    select 1::smallint as status, e.priority, r.queuing_order, e.conversation_group_id,
           r.conversation_handle, r.message_sequence_number, e.service_id, e.service_contract_id,
           r.message_type_id, r.message_body, r.message_enqueue_time
      from sb_internal.message as r
      join sb_internal.endpoint as e on e.conversation_handle = r.conversation_handle
     where r.queue_id = q.queue_id
       and e.state <> 'DO'
     union all
    select r.status, r.priority, r.queuing_order, e.conversation_group_id,
           r.conversation_handle, r.message_sequence_number, e.service_id, e.service_contract_id,
           r.message_type_id, r.message_body, r.message_enqueue_time
      from sb_internal.retained_message as r
      join sb_internal.endpoint as e on e.conversation_handle = r.conversation_handle
     where r.queue_id = q.queue_id
     union all
    -- What time has made due is ready like a message that arrived.
    select 1::smallint, e.priority, 0::bigint, e.conversation_group_id,
           d.conversation_handle, -1::bigint, e.service_id, e.service_contract_id,
           case when d.is_lifetime then 1 else 5 end,
           case when d.is_lifetime then sb_internal._lifetime_error() end, d.due_at
      from sb_internal.due as d
      join sb_internal.endpoint as e on e.conversation_handle = d.conversation_handle
     where d.queue_id = q.queue_id
       and d.due_at <= pg_catalog.clock_timestamp()
       and e.state <> 'DO'
       and (not d.is_lifetime
         or e.state = 'CO'
         and not exists (
           select 1
             from sb_internal.message as r
            where r.conversation_handle = d.conversation_handle
              and r.message_type_id in (1, 2)
              and (r.message_type_id = 1 or r.message_enqueue_time < d.due_at)))
  ) as m on true
  join sb_internal.service as s on s.service_id = m.service_id
  left join sb_internal.contract as c on c.service_contract_id = m.service_contract_id
  left join sb_internal.message_type as t on t.message_type_id = m.message_type_id
 cross join sb_internal.broker as b
 where q.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.queue_messages is
  'Every queue''s messages, without taking them or any lock, of queues that the reader may receive from. status: 1 ready, 0 received and retained, 3 retained copy of a message sent. A timer or lifetime that is due shows as the message it is, queuing_order 0.';
-- sqlgen:end views/queue_messages.sql
-- sqlgen:begin views/queue_statistics.sql sha256:441eb48d69e1f58833882e8b3453a20802efb12121bd1ed5064573c3239e8da3
create or replace view sb.queue_statistics
  with (security_barrier = true)
as
select s.queue_name,
       s.queue_id,
       s.is_on,
       s.ready_messages,
       s.is_estimate,
       s.blocked_groups,
       s.oldest_ready_age,
       s.transmission_backlog,
       s.consecutive_rollbacks,
       s.last_receive_time,
       s.last_empty_rowset_time,
       s.last_activated_time
  from sb_internal._queue_statistics(current_user) as s;
comment on view sb.queue_statistics is
  'One row for each queue that the reader may receive from, cheap enough to read every second. ready_messages is exact below 10,000 and an estimate of the planner from there on (is_estimate), locked groups included; blocked_groups are those kept back after a failure; transmission_backlog counts what waits for services of the queue, up to 10,000; consecutive_rollbacks nears poison_message_threshold; last_receive_time is when somebody last looked for messages, within a second or so.';
-- sqlgen:end views/queue_statistics.sql
-- sqlgen:begin views/routes.sql sha256:beeb08b12e17fdd24f7960467f7ffeb2cdb24cd9bca5692af2062bf260ea50cc
create or replace view sb.routes
  with (security_barrier = true)
as
select r.name,
       r.route_id,
       pg_catalog.to_regrole(pg_catalog.quote_ident(r.owner))::oid::integer as principal_id,
       r.remote_service_name,
       r.broker_instance,
       r.lifetime,
       r.address,
       r.mirror_address,
       r.owner
  from sb_internal.route as r
 where r.route_id = any ((select sb_internal._visible(current_user, 'route'))::integer[]);
comment on view sb.routes is
  'Routes that the reader owns. lifetime is when the route expires, null for never; an expired one stays here and is not used (R-084).';
-- sqlgen:end views/routes.sql
-- sqlgen:begin views/service_contract_message_usages.sql sha256:454673132ca3e94a5bc474673d1c14cd41a17b6d3c9f2cacac665e22ab75f758
create or replace view sb.service_contract_message_usages
  with (security_barrier = true)
as
select m.service_contract_id,
       m.message_type_id,
       m.is_sent_by_initiator,
       m.is_sent_by_target
  from sb_internal.contract_message as m
 where m.service_contract_id = any ((select sb_internal._visible(current_user, 'contract'))::integer[]);
comment on view sb.service_contract_message_usages is
  'Which side may send which message type, of contracts that the reader owns or may reference; both true is SENT BY ANY.';
-- sqlgen:end views/service_contract_message_usages.sql
-- sqlgen:begin views/service_contract_usages.sql sha256:4b8849dd231f270421bc7991c2c5e1537d9399dda7b080d299101572a37815c1
create or replace view sb.service_contract_usages
  with (security_barrier = true)
as
select c.service_id,
       c.service_contract_id
  from sb_internal.service_contract as c
 where c.service_id = any ((select sb_internal._visible(current_user, 'service'))::integer[]);
comment on view sb.service_contract_usages is
  'The contracts that services accept as target, of services that the reader sees in sb.services.';
-- sqlgen:end views/service_contract_usages.sql
-- sqlgen:begin views/service_contracts.sql sha256:e432f525e5d928c19f8d364c6589e799ed68410e5d7e0f4345c210b332607cdf
create or replace view sb.service_contracts
  with (security_barrier = true)
as
select case b.system_names when 'sqlserver' then coalesce(c.sqlserver_name, c.name) else c.name end as name,
       c.service_contract_id,
       pg_catalog.to_regrole(pg_catalog.quote_ident(c.owner))::oid::integer as principal_id,
       c.owner
  from sb_internal.contract as c
 cross join sb_internal.broker as b
 where c.service_contract_id = any ((select sb_internal._visible(current_user, 'contract'))::integer[]);
comment on view sb.service_contracts is
  'Contracts that the reader owns or may reference; the system''s are for everybody.';
-- sqlgen:end views/service_contracts.sql
-- sqlgen:begin views/service_message_types.sql sha256:7dc5ebfdd7b5fcfa5cfa9570b382d8f93bcac1ceeec05981a9b8e3b396549a61
create or replace view sb.service_message_types
  with (security_barrier = true)
as
select case b.system_names when 'sqlserver' then coalesce(t.sqlserver_name, t.name) else t.name end as name,
       t.message_type_id,
       pg_catalog.to_regrole(pg_catalog.quote_ident(t.owner))::oid::integer as principal_id,
       case
         when t.validation = 'NONE' then 'N'
         when t.validation = 'EMPTY' then 'E'
         when t.validation in ('WELL_FORMED_XML', 'VALID_XML') then 'X'
         else 'J'
       end as validation,
       case
         when t.validation in ('WELL_FORMED_XML', 'VALID_XML') then 'XML'
         when t.validation in ('WELL_FORMED_JSON', 'VALID_JSON') then 'JSON'
         else t.validation
       end as validation_desc,
       t.owner,
       t.validation as validation_kind,
       t.validator,
       t.schema
  from sb_internal.message_type as t
 cross join sb_internal.broker as b
 where t.message_type_id = any ((select sb_internal._visible(current_user, 'message type'))::integer[]);
comment on view sb.service_message_types is
  'Message types: system types, those the reader owns, and those of contracts he may reference. validation is N, E, X or, beyond SQL Server, J for JSON; validation_kind is what was asked for. principal_id is the owner''s oid, null when that role is gone.';
-- sqlgen:end views/service_message_types.sql
-- sqlgen:begin views/service_queue_usages.sql sha256:fcb1eb583c9c51b259fec7b1cadeaea562a30f1c9a9f18813b9d33614fb5d61c
create or replace view sb.service_queue_usages
  with (security_barrier = true)
as
select s.service_id,
       s.queue_id as service_queue_id
  from sb_internal.service as s
 where s.service_id = any ((select sb_internal._visible(current_user, 'service'))::integer[]);
comment on view sb.service_queue_usages is
  'The queue of each service that the reader sees in sb.services.';
-- sqlgen:end views/service_queue_usages.sql
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
-- sqlgen:begin views/services.sql sha256:bf84ed3f2997cbb200784ee95fd31f10cfe8f5c6237ed083aff3bb16537e59f9
create or replace view sb.services
  with (security_barrier = true)
as
select case b.system_names when 'sqlserver' then coalesce(s.sqlserver_name, s.name) else s.name end as name,
       s.service_id,
       pg_catalog.to_regrole(pg_catalog.quote_ident(s.owner))::oid::integer as principal_id,
       s.queue_id as service_queue_id,
       s.owner
  from sb_internal.service as s
 cross join sb_internal.broker as b
 where s.service_id = any ((select sb_internal._visible(current_user, 'service'))::integer[]);
comment on view sb.services is
  'Services that the reader owns, may send to, or whose queue he may receive from.';
-- sqlgen:end views/services.sql
-- sqlgen:begin views/transmission_queue.sql sha256:3a35e4aada30fbbb5ad0778539c7751aaf618baa189ee8d8762cb52e62883295
create or replace view sb.transmission_queue
  with (security_barrier = true)
as
select t.conversation_handle,
       t.to_service_name,
       e.far_broker_instance as to_broker_instance,
       case b.system_names when 'sqlserver' then coalesce(s.sqlserver_name, s.name) else s.name end as from_service_name,
       case b.system_names when 'sqlserver' then coalesce(c.sqlserver_name, c.name) else c.name end
         as service_contract_name,
       t.enqueue_time,
       t.message_sequence_number,
       case b.system_names when 'sqlserver' then coalesce(y.sqlserver_name, y.name) else y.name end as message_type_name,
       t.message_type_id = 1 as is_conversation_error,
       t.message_type_id = 2 as is_end_of_dialog,
       t.message_body,
       sb_internal._transmission_status(t.conversation_handle) as transmission_status,
       e.priority
  from sb_internal.transmission as t
  join sb_internal.endpoint as e on e.conversation_handle = t.conversation_handle
  join sb_internal.service as s on s.service_id = e.service_id
  left join sb_internal.contract as c on c.service_contract_id = e.service_contract_id
  left join sb_internal.message_type as y on y.message_type_id = t.message_type_id
 cross join sb_internal.broker as b
 where s.queue_id = any ((select sb_internal._visible(current_user, 'queue'))::integer[]);
comment on view sb.transmission_queue is
  'Messages that wait to be delivered, of conversations of services whose queue the reader may receive from. transmission_status says why, for the whole conversation (R-242).';
-- sqlgen:end views/transmission_queue.sql
-- sqlgen:begin triggers/service_status.sql sha256:498b9b253dbd3c863dd117b65da21688764e9161f19bde51f06caa27e6236de1
create or replace trigger broker_status
  after insert or update on sb_internal.broker
  for each row execute function sb_internal._refresh_service_status();

create or replace trigger queue_status
  after update on sb_internal.queue
  for each row execute function sb_internal._refresh_service_status();

create or replace trigger service_status
  after insert or update on sb_internal.service
  for each row execute function sb_internal._refresh_service_status();
-- sqlgen:end triggers/service_status.sql
-- sqlgen:begin seed/builtin.sql sha256:eb1c2a68fa4f8bb35f98e3d8a6bfb9932dbf131d2663f727edab02b01d026039
-- What every broker is born with (R-011 to R-017). May run again at any time: it adds what is missing and
-- leaves alone what was changed, so a dropped AutoCreatedLocal stays dropped.
do $$
declare
  documented constant text := 'https://schemas.microsoft.com/SQL/';
  sqlserver constant text := 'http://schemas.microsoft.com/SQL/';
begin
  perform sb_internal._lock_catalog();
  insert into sb_internal.broker (singleton)
  values (true)
      on conflict on constraint broker_pkey do nothing;
  if found then
    insert into sb_internal.route (route_id, name, owner, address)
    values (pg_catalog.nextval('sb_internal.route_id'), 'AutoCreatedLocal', current_user, 'LOCAL');
  end if;

  insert into sb_internal.message_type (message_type_id, name, sqlserver_name, owner, validation)
  values
    (1, documented || 'ServiceBroker/Error', sqlserver || 'ServiceBroker/Error', current_user, 'WELL_FORMED_XML'),
    (2, documented || 'ServiceBroker/EndDialog', sqlserver || 'ServiceBroker/EndDialog', current_user, 'EMPTY'),
    (4, documented || 'Notifications/EventNotification', sqlserver || 'Notifications/EventNotification',
      current_user, 'WELL_FORMED_XML'),
    (5, documented || 'ServiceBroker/DialogTimer', sqlserver || 'ServiceBroker/DialogTimer', current_user, 'EMPTY'),
    (14, 'DEFAULT', null, current_user, 'NONE')
      on conflict on constraint message_type_pkey do nothing;

  insert into sb_internal.contract (service_contract_id, name, sqlserver_name, owner, referencers)
  values
    (2, documented || 'Notifications/PostEventNotification', sqlserver || 'Notifications/PostEventNotification',
      current_user, '{public}'),
    (6, 'DEFAULT', null, current_user, '{public}')
      on conflict on constraint contract_pkey do nothing;
  insert into sb_internal.contract_message (service_contract_id, message_type_name, message_type_id, validation,
    is_sent_by_initiator, is_sent_by_target)
  values
    (2, documented || 'Notifications/EventNotification', 4, 'WELL_FORMED_XML', true, false),
    (6, 'DEFAULT', 14, 'NONE', true, true)
      on conflict on constraint contract_message_pkey do nothing;

  insert into sb_internal.queue (queue_id, name, owner, is_system)
  values (2, 'EventNotificationErrorsQueue', current_user, true)
      on conflict on constraint queue_pkey do nothing;
  insert into sb_internal.queue_monitor (queue_id)
  values (2)
      on conflict on constraint queue_monitor_pkey do nothing;
  perform sb_internal._queue_sequences(2);
  insert into sb_internal.service (service_id, name, sqlserver_name, owner, queue_id)
  values (2, documented || 'Notifications/EventNotificationService',
    sqlserver || 'Notifications/EventNotificationService', current_user, 2)
      on conflict on constraint service_pkey do nothing;
end
$$;
-- sqlgen:end seed/builtin.sql
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
insert into sb_internal.meta(version, name) values (2, 'functions');
-- sqlgen:done
