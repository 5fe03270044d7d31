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
