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
