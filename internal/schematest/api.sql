-- What callers may rely on, as sections of lines, from the catalogs.
with entry (section, place, line) as (
  select 'functions',
         row_number() over (order by p.proname collate "C", pg_get_function_arguments(p.oid) collate "C"),
         format('%s(%s) returns %s', p.proname, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid))
    from pg_proc as p
   where p.pronamespace = 'sb'::regnamespace
   union all
  select 'views',
         row_number() over (order by c.relname collate "C", a.attnum),
         format('%s.%s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod))
    from pg_class as c
    join pg_attribute as a on a.attrelid = c.oid
   where c.relnamespace = 'sb'::regnamespace
     and c.relkind = 'v'
     and a.attnum > 0
   union all
  select 'options (default)',
         row_number() over (order by o.name collate "C"),
         format('%s (%s)', o.name, o.default_value)
    from sb.options as o
   union all
  -- Notifications are sent by plpgsql functions only, whose text is in the catalog.
  select 'notification channels',
         row_number() over (order by n.channel collate "C"),
         n.channel
    from (
      select distinct m.part[1] || case when m.part[2] is not null then '<queue_id>' else '' end
        from pg_proc as p
       cross join lateral regexp_matches(p.prosrc, 'pg_notify\(''([^'']*)''\s*(\|\|)?', 'g') as m (part)
       where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
    ) as n (channel)
)
select e.section,
       e.line
  from entry as e
 order by array_position(array['functions', 'views', 'options (default)', 'notification channels'], e.section),
          e.place
