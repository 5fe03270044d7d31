create or replace function sb_internal._look_again(queue_id integer)
  returns void
  language plpgsql
  volatile
  parallel unsafe
  security invoker
  set search_path = pg_catalog, pg_temp
as $$
begin
  if exists (
    select 1
      from sb_internal.message as m
     where m.queue_id = _look_again.queue_id)
  then
    perform sb_internal._arrived(_look_again.queue_id);
  end if;
end
$$;
comment on function sb_internal._look_again(integer) is
  'After DDL that makes messages ready which arrived before: what is due to arriving messages, waiters and notifications, is done for them now.';
revoke all on function sb_internal._look_again(integer) from public;
