with m as materialized (select * from pgmq.read('sbroker_bench', 30, 1))
select m.*, pgmq.delete('sbroker_bench', m.msg_id) from m;
