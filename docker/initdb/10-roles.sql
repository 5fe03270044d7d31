-- The roles and the database of docker-compose.yml. The image runs this once, as superuser, when the
-- volume is new. For development: all roles have the same password.
\getenv password POSTGRES_PASSWORD
create role sbroker login password :'password';     -- owns the database, and sb in it
create role sbactivator login password :'password'; -- the activator logs in as it; "grants" makes it an admin of sb
create role app login password :'password';         -- for activation procedures to run as (execute_as), and for clients
grant app to sbroker, sbactivator;
create database sbroker owner sbroker;
