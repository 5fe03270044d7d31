insert into bench.plain (body) select unnest(array_fill(:body::bytea, array[100]));
