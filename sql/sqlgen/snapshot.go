package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	orderTxt      = "sql/order.txt"
	sumsFile      = "migrations/SHA256SUMS"
	plainSQL      = "sql/sbroker.sql"
	lockTimeout   = "set local lock_timeout = '10s';\n"
	generatedFrom = "-- sqlgen:generated from sql/ by sqlgen snapshot: edits between here and sqlgen:done are lost\n"
	generatedTo   = "-- sqlgen:done\n"
	// migrateLock is internal/migrate's advisory lock; a test there compares the two.
	migrateLock = "8314312785603818081"
)

// source is one file under sql/ in load order; path is relative to sql/.
type source struct {
	path string
	text string
}

func (s source) block() string {
	sum := sha256.Sum256([]byte(s.text))
	return fmt.Sprintf("-- sqlgen:begin %s sha256:%s\n%s-- sqlgen:end %s\n", s.path, hex.EncodeToString(sum[:]), s.text, s.path)
}

// sources reads order.txt and the files it names.
func (r repo) sources() ([]source, error) {
	order, err := os.ReadFile(r.abs(orderTxt))
	if err != nil {
		return nil, err
	}
	var entries []string
	for line := range strings.Lines(string(order)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			entries = append(entries, line)
		}
	}
	var paths []string
	for _, entry := range entries {
		folder, isFolder := strings.CutSuffix(entry, "/")
		if !isFolder {
			paths = append(paths, entry)
			continue
		}
		names, err := os.ReadDir(r.abs("sql/" + folder))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", orderTxt, err)
		}
		for _, name := range names {
			p := entry + name.Name()
			if path.Ext(p) == ".sql" && !slices.Contains(entries, p) {
				paths = append(paths, p)
			}
		}
	}
	var list []source
	var errs []error
	seen := map[string]bool{}
	for _, p := range paths {
		if seen[p] {
			errs = append(errs, fmt.Errorf("%s: %s is listed twice", orderTxt, p))
			continue
		}
		seen[p] = true
		b, err := os.ReadFile(r.abs("sql/" + p))
		switch text := string(b); {
		case err != nil:
			errs = append(errs, fmt.Errorf("%s: %w", orderTxt, err))
		case !strings.HasSuffix(text, "\n"):
			errs = append(errs, fmt.Errorf("sql/%s: the last line must end with a newline", p))
		case strings.Contains("\n"+text, "\n-- sqlgen:"):
			errs = append(errs, fmt.Errorf("sql/%s: a line begins with the generator's own marker", p))
		default:
			list = append(list, source{p, text})
		}
	}
	// A source that nobody lists would be dead code that looks alive.
	err = fs.WalkDir(os.DirFS(r.abs("sql")), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case p == "checks" || p == "sqlgen": // tests and their data
			return fs.SkipDir
		case path.Ext(p) == ".sql" && "sql/"+p != plainSQL && !seen[p]:
			errs = append(errs, fmt.Errorf("%s: %s is not listed", orderTxt, p))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, errors.Join(errs...)
}

// migration is a pair of files NNNNNN_name.{up,down}.sql.
type migration struct {
	version  int
	name     string
	released bool // listed in SHA256SUMS: frozen
	up, down string
}

func (m migration) file(direction string) string {
	return fmt.Sprintf("migrations/%06d_%s.%s.sql", m.version, m.name, direction)
}

var migrationRE = regexp.MustCompile(`^(\d{6})_([a-z0-9_]+)\.(up|down)\.sql$`)

// migrations reads the pairs in version order and checks the frozen ones against their sums.
func (r repo) migrations() ([]migration, error) {
	entries, err := os.ReadDir(r.abs("migrations"))
	if err != nil {
		return nil, err
	}
	byVersion := map[int]*migration{}
	texts := map[string]string{}
	for _, entry := range entries {
		if path.Ext(entry.Name()) != ".sql" {
			continue
		}
		m := migrationRE.FindStringSubmatch(entry.Name())
		if m == nil {
			return nil, fmt.Errorf("migrations/%s: the name is not NNNNNN_name.{up,down}.sql", entry.Name())
		}
		b, err := os.ReadFile(r.abs("migrations/" + entry.Name()))
		if err != nil {
			return nil, err
		}
		version, err := strconv.Atoi(m[1])
		if err != nil {
			return nil, err
		}
		if byVersion[version] == nil {
			byVersion[version] = &migration{version: version, name: m[2]}
		}
		mig := byVersion[version]
		if mig.name != m[2] {
			return nil, fmt.Errorf("migrations: version %d has two names, %s and %s", version, mig.name, m[2])
		}
		texts[entry.Name()] = string(b)
		if m[3] == "up" {
			mig.up = string(b)
		} else {
			mig.down = string(b)
		}
	}
	sums, err := r.read(sumsFile)
	if err != nil {
		return nil, err
	}
	var errs []error
	for line := range strings.Lines(string(sums)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return nil, fmt.Errorf("%s: %q is not a line of sha256sum", sumsFile, line)
		}
		sum, name := fields[0], strings.TrimPrefix(fields[1], "*")
		text, exists := texts[name]
		have := sha256.Sum256([]byte(text))
		if !exists || hex.EncodeToString(have[:]) != sum {
			errs = append(errs, fmt.Errorf("migrations/%s is released and must not change or go: write a new migration", name))
			continue
		}
		version, err := strconv.Atoi(migrationRE.FindStringSubmatch(name)[1])
		if err != nil {
			return nil, err
		}
		byVersion[version].released = true
	}
	var list []migration
	for version := 1; version <= len(byVersion); version++ {
		if byVersion[version] == nil {
			return nil, fmt.Errorf("migrations: version %d is missing", version)
		}
		list = append(list, *byVersion[version])
	}
	return list, errors.Join(errs...)
}

var blockRE = regexp.MustCompile(`(?ms)^-- sqlgen:begin (\S+) sha256:[0-9a-f]{64}\n(.*?)^-- sqlgen:end (\S+)\n|^-- sqlgen:drop (\S+)\n`)

// lastBlocks returns for each path the source of its last block in the given migrations, in the order in which the
// paths first came.
func lastBlocks(list []migration) []source {
	var last []source
	for _, m := range list {
		for _, b := range blockRE.FindAllStringSubmatch(m.up, -1) {
			i := at(b[1]+b[4], last) // one of the two is empty
			switch {
			case b[4] != "": // dropped
				last = slices.Delete(last, i, i+1)
			case i < 0:
				last = append(last, source{b[1], b[2]})
			default:
				last[i] = source{b[1], b[2]}
			}
		}
	}
	return last
}

// snapshotFiles generates the open migration and the plain SQL file.
func (r repo) snapshotFiles() (files, error) {
	sources, err := r.sources()
	if err != nil {
		return nil, err
	}
	list, err := r.migrations()
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, errors.New("migrations/000001_schema.up.sql is written by hand and must exist first")
	}
	// Version 1 holds what the sources stand on, so it never takes blocks itself.
	open := list[len(list)-1]
	if earlier := list[:len(list)-1]; open.released || open.version == 1 {
		open = migration{version: open.version + 1, name: "functions"}
	} else {
		list = earlier
	}
	c, err := compare(lastBlocks(list), sources)
	if err != nil {
		return nil, err
	}

	out := files{}
	if c.up != nil || c.gone != nil || open.up != "" {
		open.up = splice(open.up, upText(open, c))
		open.down = splice(open.down, downText(open, c))
		out[open.file("up")] = []byte(open.up)
		out[open.file("down")] = []byte(open.down)
	}
	if open.up != "" {
		list = append(list, open)
	}
	out[plainSQL] = plainText(list)
	return out, nil
}

// splice puts the generated region into a migration, keeping what is written by hand around it.
func splice(text, region string) string {
	region = generatedFrom + region + generatedTo
	if text == "" {
		return lockTimeout + "\n" + region
	}
	before, rest, found := strings.Cut(text, generatedFrom)
	if !found {
		return text + "\n" + region
	}
	_, after, _ := strings.Cut(rest, generatedTo)
	return before + region + after
}

func upText(m migration, c changes) string {
	var b strings.Builder
	b.WriteString(putAside(c.replaced))
	for _, s := range c.up {
		b.WriteString(s.block())
	}
	for _, s := range c.gone {
		fmt.Fprintf(&b, "-- sqlgen:drop %s\n", s.path)
	}
	if c.replaced != nil {
		b.WriteString(dropAside)
	}
	fmt.Fprintf(&b, "insert into sb_internal.meta(version, name) values (%d, '%s');\n", m.version, m.name)
	return b.String()
}

// downText puts back what the migration replaced or dropped, and drops what it added. The first
// snapshot has nothing to put back and empties the schemas of code.
func downText(m migration, c changes) string {
	var b strings.Builder
	if c.first {
		b.WriteString(dropAll)
	} else {
		b.WriteString(putAside(c.added))
		for _, s := range c.down {
			b.WriteString(s.block())
		}
		if c.added != nil {
			b.WriteString(dropAside)
		}
	}
	fmt.Fprintf(&b, "delete from sb_internal.meta where version = %d;\n", m.version)
	return b.String()
}

// dropAll drops all code, dropAside what was put aside.
var (
	dropAll   = dropObjects("", "", "")
	dropAside = dropObjects("c.relname", "p.proname", "t.tgname")
)

// dropObjects goes round until nothing is left, because views, functions and triggers depend on each other
// both ways. It never cascades: what somebody else built on sb stops it, and PostgreSQL names it. With the
// names of columns it drops only what putAside has renamed.
func dropObjects(view, routine, trigger string) string {
	only := func(name string) string {
		if name == "" {
			return ""
		}
		return "\n         and " + name + " like '%" + aside + "'"
	}
	return `do $$
declare
  _object record;
  _left integer;
  _before integer;
  _stuck boolean;
begin
  loop
    _left := 0;
    for _object in
      select 'view' as kind, c.oid, c.oid::regclass::text as name
        from pg_catalog.pg_class as c
       where c.relnamespace = 'sb'::regnamespace
         and c.relkind = 'v'` + only(view) + `
      union all
      select 'routine', p.oid, p.oid::regprocedure::text
        from pg_catalog.pg_proc as p
       where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)` + only(routine) + `
      union all
      select 'trigger', t.oid, pg_catalog.format('%I on %s', t.tgname, t.tgrelid::regclass)
        from pg_catalog.pg_trigger as t
        join pg_catalog.pg_class as c on c.oid = t.tgrelid
       where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
         and not t.tgisinternal` + only(trigger) + `
       order by oid desc
    loop
      begin
        execute pg_catalog.format('drop %s %s', _object.kind, _object.name);
      exception
        when dependent_objects_still_exist then
          if _stuck then
            raise;
          end if;
          _left := _left + 1;
      end;
    end loop;
    exit when _left = 0;
    _stuck := _left = _before;
    _before := _left;
  end loop;
end
$$;
`
}

// plainText strings all migrations together for people who have only psql, and leaves golang-migrate's
// version table as golang-migrate itself would.
func plainText(list []migration) []byte {
	var b bytes.Buffer
	b.WriteString(`-- Installs sb, Service Broker for PostgreSQL, with nothing but psql 14 or newer:
--
--   psql -X -f sbroker.sql "dbname=…"
--
-- Run it as the role that shall own sb; that role needs CREATE on the database, no more. It is one
-- transaction: it installs all or nothing, and refuses where sb exists already. Later versions come
-- by "sbactivator migrate up", which finds the version noted here.
--
-- Code generated by sqlgen from migrations/. DO NOT EDIT.
\set ON_ERROR_STOP on
begin;
set local client_min_messages = warning;
-- Waits for a running "sbactivator migrate".
do $$ begin perform pg_catalog.pg_advisory_xact_lock(` + migrateLock + `); end $$;
-- A statement of its own, for what the holder of the lock has committed is seen by the next one only.
do $$
declare
  installed text;
begin
  if pg_catalog.to_regnamespace('sb') is null then
    return;
  end if;
  begin
    execute 'select pg_catalog.max(m.version) from sb_internal.meta as m' into installed;
  exception when insufficient_privilege or undefined_table or invalid_schema_name then
    null; -- somebody else's
  end;
  raise exception using errcode = 'duplicate_schema', message = coalesce(
    'sb is already installed, version ' || installed || '; upgrade with sbactivator migrate up',
    'there is a schema sb already, which this role has not installed');
end $$;
do $$
begin
  if not pg_catalog.has_database_privilege(pg_catalog.current_database(), 'create') then
    raise exception using errcode = 'insufficient_privilege',
      message = pg_catalog.format('role %I may not create schemas in database %I', current_user, pg_catalog.current_database()),
      hint = pg_catalog.format('grant create on database %I to %I;', pg_catalog.current_database(), current_user);
  end if;
end $$;
create schema if not exists sb_internal;
create table sb_internal.schema_migrations (version bigint not null primary key, dirty boolean not null);
`)
	for _, m := range list {
		fmt.Fprintf(&b, "\n-- %s\n%s", m.file("up"), m.up)
	}
	fmt.Fprintf(&b, "\ninsert into sb_internal.schema_migrations(version, dirty) values (%d, false);\ncommit;\n", list[len(list)-1].version)
	return b.Bytes()
}
