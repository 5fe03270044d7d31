select * from sb.receive('Work', 100);
