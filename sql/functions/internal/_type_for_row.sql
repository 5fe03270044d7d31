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
