select * from sb.receive('Work', 1);
