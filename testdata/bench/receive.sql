select * from sb.receive('BenchQueue', 1);
