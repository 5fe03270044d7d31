delete from bench.plain
 where id = (select id from bench.plain order by id for update skip locked limit 1)
returning *;
