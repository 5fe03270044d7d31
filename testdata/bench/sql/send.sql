-- A client sends on one open dialog for 100 transactions, then on another one.
\if :left = 0
\set n random(1, 1000)
select d.handle::text as handle from bench.dialog as d where d.service = 'WorkService' and d.n = :n \gset
\set left 100
\endif
\set left :left - 1
select sb.send(:handle::uuid, 'DEFAULT', :body::bytea);
