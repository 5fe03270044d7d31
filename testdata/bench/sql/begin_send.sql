select sb.send(sb.begin_dialog('Client', 'WorkService'), 'DEFAULT', :body::bytea);
