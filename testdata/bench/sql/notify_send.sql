-- What a queue without a waiting flag would do.
\if :left = 0
\set n random(1, 1000)
select d.handle::text as handle from bench.dialog as d where d.service = 'WorkService' and d.n = :n \gset
\set left 100
\endif
\set left :left - 1
begin;
select sb.send(:handle::uuid, 'DEFAULT', :body::bytea);
notify bench;
commit;
