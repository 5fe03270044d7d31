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
