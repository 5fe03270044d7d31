select count(*) from pgmq.send_batch('sbroker_bench', array_fill(jsonb_build_object('body', :body::text), array[100]));
