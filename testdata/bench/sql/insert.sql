insert into bench.plain (body) values (:body::bytea);
