with m as materialized (select * from pgmq.read('sbroker_bench', 30, 100)),
  d as (select pgmq.delete('sbroker_bench', array(select m.msg_id from m)))
select (select count(*) from d), m.* from m;
