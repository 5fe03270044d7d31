select graphile_worker.add_job('bench', json_build_object('body', :body::text));
