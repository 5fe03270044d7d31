-- What the scripts work on: a plain table, and 1000 open dialogs from BenchClient to BenchServer.
create schema bench;
create table bench.plain (
  id bigint generated always as identity primary key,
  body bytea not null
);
select sb.create_queue('BenchReplies');
select sb.create_queue('BenchQueue');
select sb.create_service('BenchClient', 'BenchReplies');
select sb.create_service('BenchServer', 'BenchQueue', '{DEFAULT}');
create table bench.dialog as
select n, sb.begin_dialog('BenchClient', 'BenchServer') as handle
  from generate_series(1, 1000) as n;
alter table bench.dialog add primary key (n);
select count(sb.send(d.handle, 'DEFAULT', repeat('b', 200))) from bench.dialog as d;

-- Brings both queues to so many rows. The dialogs take turns, one message each time.
create procedure bench.fill(quantity integer) language plpgsql as $$
declare
  missing integer := quantity - (select count(*) from bench.plain);
begin
  insert into bench.plain (body)
  select convert_to(repeat('b', 200), 'UTF8')
    from generate_series(1, missing);
  missing := quantity - (select count(*) from sb_internal.message);
  for turn in 1..(missing + 999) / 1000 loop
    perform sb.send(d.handle, 'DEFAULT', convert_to(repeat('b', 200), 'UTF8'))
       from bench.dialog as d;
    commit;
  end loop;
end
$$;
