set local lock_timeout = '10s';

-- sqlgen:generated from sql/ by sqlgen snapshot: edits between here and sqlgen:done are lost
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
      union all
      select 'routine', p.oid, p.oid::regprocedure::text
        from pg_catalog.pg_proc as p
       where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
      union all
      select 'trigger', t.oid, pg_catalog.format('%I on %s', t.tgname, t.tgrelid::regclass)
        from pg_catalog.pg_trigger as t
        join pg_catalog.pg_class as c on c.oid = t.tgrelid
       where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
         and not t.tgisinternal
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
delete from sb_internal.meta where version = 2;
-- sqlgen:done
