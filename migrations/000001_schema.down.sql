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
    select c.relname, c.relkind
      from pg_catalog.pg_class as c
     where c.relnamespace = 'sb_internal'::regnamespace
       and c.relkind in ('r', 'S')
       and c.relname <> 'schema_migrations'
  loop
    -- A table takes its sequences along.
    execute pg_catalog.format('drop %s if exists sb_internal.%I cascade',
      case relation.relkind when 'r' then 'table' else 'sequence' end, relation.relname);
  end loop;
end
$$;
