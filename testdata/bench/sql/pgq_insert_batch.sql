select count(pgq.insert_event('bench', 'DEFAULT', :body::text)) from generate_series(1, 100);
