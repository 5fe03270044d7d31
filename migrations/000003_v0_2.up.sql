set local lock_timeout = '10s';

-- sqlgen:generated from sql/ by sqlgen snapshot: edits between here and sqlgen:done are lost
insert into sb_internal.meta(version, name) values (3, 'v0_2');
-- sqlgen:done
