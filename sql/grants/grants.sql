-- The whole grant matrix. Nobody but the owner has anything, until a verb gives it:
--
--                         USAGE sb   EXECUTE                       SELECT views   tables, sequences, sb_internal
--   public                   -       -                                  -         -
--   role with a right        x       _grantable(false)                  x         -
--   owner of an object       x       _grantable(true)                   x         -
--   admin                    x       _grantable(true)                   x         -
--
-- Which role has what is catalog data; _sync_privileges turns it into privileges. It runs here too, so
-- that roles get the functions and views that a new version brings.
revoke all on schema sb, sb_internal from public;
revoke all on all tables in schema sb, sb_internal from public;
revoke all on all sequences in schema sb, sb_internal from public;
revoke all on all routines in schema sb, sb_internal from public;
do $$
begin
  perform sb_internal._lock_catalog();
  perform sb_internal._sync_all_privileges();
end
$$;
