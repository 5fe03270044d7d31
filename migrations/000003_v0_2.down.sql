set local lock_timeout = '10s';

-- sqlgen:generated from sql/ by sqlgen snapshot: edits between here and sqlgen:done are lost
delete from sb_internal.meta where version = 3;
-- sqlgen:done
