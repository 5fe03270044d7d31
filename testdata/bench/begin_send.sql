select sb.send(sb.begin_dialog('BenchClient', 'BenchServer'), 'DEFAULT', :body::bytea);
