select * from pgmq.send('sbroker_bench', jsonb_build_object('body', :body::text));
