delete from bench.plain
 where id = any (array(select id from bench.plain order by id for update skip locked limit 100))
returning *;
