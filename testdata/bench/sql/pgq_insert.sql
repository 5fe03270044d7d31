select pgq.insert_event('bench', 'DEFAULT', :body::text);
