select count(*) from graphile_worker.add_jobs(array_fill(
  row('bench', json_build_object('body', :body::text), null, null, null, null, null, null)::graphile_worker.job_spec,
  array[100]));
