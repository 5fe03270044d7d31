set local lock_timeout = '10s';
set local client_min_messages = warning;

drop schema sb cascade;
drop type sb_internal.unsettled;

-- sb_internal stays: the migration tool keeps its version table there.
do $$
declare
  relation record;
begin
  for relation in
    select c.oid::regclass as name, c.relkind
      from pg_catalog.pg_class as c
     where c.relnamespace = 'sb_internal'::regnamespace
       and c.relkind in ('r', 'S')
       and c.relname <> 'schema_migrations'
  loop
    if pg_catalog.to_regclass(relation.name::text) is not null then
      execute pg_catalog.format('drop %s %s cascade',
        case relation.relkind when 'r' then 'table' else 'sequence' end, relation.name);
    end if;
  end loop;
end
$$;
