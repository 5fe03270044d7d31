-- What the workloads work on: a plain table, two queues, and tools. All loops that time themselves do so inside the
-- server, call by call with the commit, so that neither the network nor the client is in it.
create schema bench;
create table bench.plain (
  id bigint generated always as identity primary key,
  body bytea not null
);
select sb.create_queue('Replies');
select sb.create_queue('Work');
select sb.create_queue('Other');
select sb.create_service('Client', 'Replies');
select sb.create_service('WorkService', 'Work', '{DEFAULT}');
select sb.create_service('FreeService', 'Work', '{DEFAULT}');
select sb.create_service('OtherService', 'Other', '{DEFAULT}');

-- Open dialogs from Client.
create table bench.dialog (
  service text not null,
  n integer not null,
  handle uuid not null,
  target uuid not null,
  primary key (service, n)
);
create unique index on bench.dialog (target);

create function bench.body() returns bytea language sql immutable
begin atomic select pg_catalog.decode(repeat('61', 200), 'hex'); end;

create function bench.since(started timestamptz) returns float8 language plpgsql as $$
begin
  return extract(epoch from clock_timestamp() - started) * 1e6;
end $$;

-- Begins a dialog and sends its first message.
create function bench.begin_send(service text) returns uuid language plpgsql as $$
declare
  handle constant uuid := sb.begin_dialog('Client', service);
begin
  perform sb.send(handle, 'DEFAULT', bench.body());
  return handle;
end $$;

-- Opens so many dialogs with a service; the message that opens each stays in the queue. in_one_group brings the
-- target's sides together.
create procedure bench.open(to_service text, quantity integer, in_one_group boolean default false)
  language plpgsql as $$
declare
  first constant integer := (select coalesce(max(d.n), 0) from bench.dialog as d where d.service = to_service);
  opened uuid;
  peer uuid;
  together uuid;
begin
  for i in 1..quantity loop
    opened := bench.begin_send(to_service);
    select e.peer_handle into peer from sb_internal.endpoint as e where e.conversation_handle = opened;
    insert into bench.dialog (service, n, handle, target) values (to_service, first + i, opened, peer);
    if in_one_group and together is null then
      select e.conversation_group_id into together from sb_internal.endpoint as e where e.conversation_handle = peer;
    elsif in_one_group then
      perform sb.move_conversation(peer, together);
    end if;
    if i % 1000 = 0 then
      commit;
    end if;
  end loop;
end $$;

-- Sends so many messages to a service. Its dialogs take turns, each time with so many.
create procedure bench.fill(to_service text, quantity integer, turn integer default 1) language plpgsql as $$
declare
  handles constant uuid[] :=
    array(select d.handle from bench.dialog as d where d.service = to_service order by d.n);
  bodies constant bytea[] := array_fill(bench.body(), array[turn]);
  handle uuid;
  sent integer := 0;
begin
  while sent < quantity loop
    foreach handle in array handles loop
      exit when sent >= quantity;
      perform sb.send_batch(handle, 'DEFAULT', bodies);
      sent := sent + turn;
      if sent % 10000 < turn then
        commit;
      end if;
    end loop;
    commit;
  end loop;
end $$;

-- Brings the queue of WorkService, or the plain table, to so many rows.
create procedure bench.top_up(quantity integer, turn integer default 1) language plpgsql as $$
declare
  missing constant integer := quantity - (select count(*) from sb_internal.message);
begin
  call bench.fill('WorkService', missing, turn);
end $$;
create procedure bench.top_up_plain(quantity integer) language plpgsql as $$
begin
  insert into bench.plain (body)
  select bench.body()
    from generate_series(1, quantity - (select count(*) from bench.plain));
end $$;

-- Receives one message at a time and sends one, so that the backlog stays what it is. How many microseconds each
-- receive took; one that received nothing goes on until something comes.
create procedure bench.receives(inout micros float8[], quantity integer, queue text, to_service text)
  language plpgsql as $$
declare
  handles constant uuid[] :=
    array(select d.handle from bench.dialog as d where d.service = to_service order by d.n);
  started timestamptz;
begin
  for i in 1..quantity loop
    started := clock_timestamp();
    loop
      perform r.queuing_order from sb.receive(queue, 1) as r;
      exit when found;
      commit;
      if clock_timestamp() > started + interval '10 s' then
        raise 'call % received nothing in 10 s', i;
      end if;
    end loop;
    commit;
    micros[i] := bench.since(started);
    perform sb.send(handles[1 + floor(random() * cardinality(handles))::integer], 'DEFAULT', bench.body());
    commit;
  end loop;
end $$;

-- Sends one message at a time on one dialog.
create procedure bench.sends(inout micros float8[], quantity integer, handle uuid) language plpgsql as $$
declare
  started timestamptz;
begin
  for i in 1..quantity loop
    started := clock_timestamp();
    perform sb.send(handle, 'DEFAULT', bench.body());
    commit;
    micros[i] := bench.since(started);
  end loop;
end $$;

-- Receives so many messages, one at a time.
create procedure bench.drain(inout micros float8[], quantity integer, queue text) language plpgsql as $$
declare
  started timestamptz;
begin
  for i in 1..quantity loop
    started := clock_timestamp();
    perform r.queuing_order from sb.receive(queue, 1) as r;
    if not found then
      raise 'call % received nothing', i;
    end if;
    commit;
    micros[i] := bench.since(started);
  end loop;
end $$;
