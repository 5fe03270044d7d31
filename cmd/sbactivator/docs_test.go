package main

import (
	"encoding/csv"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

const root = "../.."

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// documents is every page that users read.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(root, "docs/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal("no pages in docs: ", err)
	}
	list := []string{"README.md", "sql/README.md"}
	for _, page := range pages {
		list = append(list, "docs/"+filepath.Base(page))
	}
	return list
}

// blocks returns the fenced blocks of a language, in order.
func blocks(text, language string) []string {
	var list []string
	for _, m := range regexp.MustCompile("(?sm)^```([a-z]*)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		if m[1] == language {
			list = append(list, m[2])
		}
	}
	return list
}

// trimLines removes what is not seen: spaces at the ends of lines, empty lines at the end.
func trimLines(text string) string {
	return strings.TrimRight(regexp.MustCompile(`(?m) +$`).ReplaceAllString(text, ""), "\n")
}

// The session in README.md prints what README.md says, in fewer than 30 lines.
func TestReadmeSession(t *testing.T) {
	t.Parallel()
	db := pgtest.Empty(t)
	psql, err := exec.LookPath("psql")
	if errors.Is(err, exec.ErrNotFound) {
		psql = newestPsql()
	}
	if psql == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("there is no psql")
		}
		t.Skip("there is no psql")
	}
	run := func(input string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), psql, append(args, db.URL())...)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "PGCLIENTENCODING=UTF8", "LC_ALL=C", "PSQLRC=", "PSQL_PAGER=")
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("psql: %v\n%s", err, out)
		}
		return string(out)
	}
	readme := readFile(t, "README.md")
	session := blocks(readme, "sql")[0]
	if n := strings.Count(session, "\n"); n >= 30 {
		t.Errorf("the session has %d lines", n)
	}
	if out := run("", "-X", "-q", "-f", "sql/sbroker.sql"); out != "" {
		t.Errorf("installing printed %s", out)
	}
	if got, want := trimLines(run(session, "-X")), trimLines(blocks(readme, "")[0]); got != want {
		t.Errorf("printed:\n%s\nREADME.md says:\n%s", got, want)
	}
}

// newestPsql looks where servers are looked for as well.
func newestPsql() string {
	if runtime.GOOS == "windows" {
		return ""
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/psql") // the pattern is a constant
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// The shop that README.md sets up, with roles of other names.
type shop struct {
	db    *pgtest.DB
	names map[string]string // from those in README.md
	owner *pgx.Conn
	order string // the last block
}

// readmeShop does what README.md says about installing.
func readmeShop(t *testing.T) *shop {
	t.Helper()
	db := pgtest.Empty(t)
	s := &shop{db: db, names: map[string]string{"shopdb": db.Name}}
	for _, name := range []string{"shop_owner", "shop_reader", "shop_app", "sbactivator"} {
		s.names[name] = db.CreateRole(t, name)
	}
	list := blocks(readFile(t, "README.md"), "psql")
	if len(list) != 3 {
		t.Fatalf("%d blocks", len(list))
	}
	made := regexp.MustCompile(`(?m)^create role .*\n`)
	if n := len(made.FindAllString(list[0], -1)); n != len(s.names)-1 {
		t.Fatalf("%d roles", n)
	}
	s.run(t, db.Superuser(t), made.ReplaceAllString(list[0], "")) // CreateRole has made them
	if code, _, stderr := execute(t, "migrate", "up", "--database-url", s.url("shop_owner")); code != exitDone {
		t.Fatalf("exit code %d, %s", code, stderr)
	}
	s.owner = db.ConnAs(t, s.names["shop_owner"])
	s.run(t, s.owner, list[1])
	s.order = list[2]
	return s
}

func (s *shop) url(role string) string { return s.db.URLAs(s.names[role]) }

func (s *shop) run(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	name := regexp.MustCompile(`\b(shopdb|shop_owner|shop_reader|shop_app|sbactivator)\b`)
	sql = name.ReplaceAllStringFunc(sql, func(word string) string { return s.names[word] })
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%v:\n%s", err, sql)
	}
}

// awaitOrders returns when that has been ordered, and nothing is left of the conversations.
func (s *shop) awaitOrders(t *testing.T, log *pgtest.Buffer, want ...string) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		items := pgtest.Strings(t, s.owner, "select o.item from shop.orders as o order by o.item")
		left := pgtest.Strings(t, s.owner, "select e.state_desc from sb.conversation_endpoints as e")
		if slices.Equal(items, want) && len(left) == 0 {
			return
		}
		if len(items) > len(want) || time.Since(start) > 30*time.Second {
			t.Fatalf("ordered: %q, endpoints: %q\n%s", items, left, log)
		}
	}
}

// What README.md says about installing leads to activation procedures at work, which leave no conversation behind.
func TestReadmeInstall(t *testing.T) {
	t.Parallel()
	s := readmeShop(t)
	activator := startProcess(t, "run", "--database-url", s.url("sbactivator"))
	app := s.db.ConnAs(t, s.names["shop_app"])
	s.run(t, app, s.order)
	s.awaitOrders(t, activator.log, "chair")
	s.run(t, app, strings.Replace(s.order, `"item"`, `"itme"`, 1))
	s.run(t, app, strings.Replace(s.order, "chair", "table", 1))
	s.awaitOrders(t, activator.log, "chair", "table")
	if got := activator.log.String(); !strings.Contains(got, "order not taken: no item") {
		t.Errorf("nothing in the log about an order without an item:\n%s", got)
	}
}

// The programs in README.md are those in examples, and do what it says.
func TestReadmeGo(t *testing.T) {
	t.Parallel()
	var (
		list     = blocks(readFile(t, "README.md"), "go")
		programs = []string{"order", "take-orders"}
		bin      = t.TempDir()
	)
	if len(list) != len(programs) {
		t.Fatalf("%d blocks of Go", len(list))
	}
	for i, name := range programs {
		if list[i] != readFile(t, "examples/"+name+"/main.go") {
			t.Errorf("examples/%s/main.go is not what README.md shows", name)
		}
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin+string(filepath.Separator), "./examples/...")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	s := readmeShop(t)
	readme := strings.Join(strings.Fields(readFile(t, "README.md")), " ")
	off := regexp.MustCompile("`(select sb.alter_queue\\('OrderQueue', drop_activation[^`]*)`").FindStringSubmatch(readme)
	if off == nil {
		t.Fatal("README.md does not say how to switch activation off")
	}
	s.run(t, s.owner, off[1])
	log := &pgtest.Buffer{}
	handler := exec.CommandContext(t.Context(), filepath.Join(bin, "take-orders"), s.url("sbactivator"))
	handler.Stderr = log
	if err := handler.Start(); err != nil {
		t.Fatal(err)
	}
	for _, item := range []string{"chair", "", "table"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "order"), s.url("shop_app"), item).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	s.awaitOrders(t, log, "chair", "table")
	if err := handler.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := handler.Wait(); err != nil {
		t.Errorf("%v\n%s", err, log)
	}
}

// The manual lists all errors of the registry.
func TestManualErrors(t *testing.T) {
	t.Parallel()
	rows, err := csv.NewReader(strings.NewReader(readFile(t, "sql/errors.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	manual := readFile(t, "docs/manual.md")
	for _, row := range rows[1:] {
		if !strings.Contains(manual, "\n| "+row[0]+" | `"+row[1]+"` |") {
			t.Errorf("%s, %s is missing", row[0], row[1])
		}
	}
}

// The SQL in the pages runs, in the order of the pages, where what it presupposes is there.
func TestDocsSQL(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t)
	conn := db.Conn(t)
	roles := map[string]string{}
	for _, name := range []string{"sbactivator", "order_app", "shop_app", "order_reader"} {
		roles["'"+name+"'"] = "'" + db.CreateRole(t, name) + "'"
	}
	run := func(on *pgx.Conn, sql string) {
		t.Helper()
		for name, role := range roles {
			sql = strings.ReplaceAll(sql, name, role)
		}
		if _, err := on.Exec(t.Context(), sql); err != nil {
			t.Errorf("%v:\n%s", err, sql)
		}
	}
	for _, name := range []string{"'order_reader'", "'shop_app'"} {
		run(db.Superuser(t), "grant "+strings.Trim(roles[name], "'")+" to "+db.Owner)
	}
	run(conn, `
create schema app;
select sb.create_queue('ClerkQueue'), sb.create_queue('ApproverQueue'), sb.create_queue('OrderQueue');
select sb.create_contract('//expenses', sent_by_any => '{DEFAULT}');
select sb.create_service('//clerk', 'ClerkQueue');
select sb.create_service('//approver', 'ApproverQueue', '{//expenses}');
select sb.create_service('//orders', 'OrderQueue', '{DEFAULT}')`)
	for _, page := range documents(t) {
		for i, block := range blocks(readFile(t, page), "sql") {
			if page != "README.md" || i > 0 { // that one is TestReadmeSession's
				run(conn, block)
			}
		}
	}
	// Bodies of procedures are not looked into before they run.
	run(conn, `
create function app.take_order(handle uuid, body jsonb) returns void language plpgsql as $$
begin
  if body ->> 'item' is null then
    raise exception 'nothing ordered';
  end if;
  perform sb.send(handle, 'DEFAULT', 'done'), sb.end_conversation(handle);
end $$`)
	for _, procedure := range []string{"read_orders", "read_orders_carefully"} {
		run(conn, `
select sb.set_option('system_names', 'documented'),
  sb.create_message_type('//orders/Order', 'WELL_FORMED_JSON', if_not_exists => true),
  sb.create_contract('//orders/Contract', sent_by_initiator => '{//orders/Order}', sent_by_any => '{DEFAULT}', if_not_exists => true);
select sb.alter_service('//orders', add_contracts => '{//orders/Contract}')
 where not exists (select from sb.service_contract_usages as u join sb.service_contracts as c using (service_contract_id)
                    where c.name = '//orders/Contract');
do $$
declare
  h uuid := sb.begin_dialog('//clerk', '//orders', '//orders/Contract');
begin
  perform sb.send(h, '//orders/Order', '{"item": "chair"}'::jsonb);
end $$`)
		run(conn, "call app."+procedure+"()") // alone, for it commits
	}
	run(conn, `
do $$
declare
  h uuid := sb.begin_dialog('//clerk', '//orders', '//orders/Contract');
begin
  perform sb.send(h, '//orders/Order', '{}'::jsonb);
end $$`)
	run(conn, "call app.read_orders_carefully()")
	got := pgtest.Strings(t, conn, `
select coalesce(sb.error_description(m.message_body), sb.body_text(m.message_body))
  from sb.queue_messages as m
 where m.queue_name = 'ClerkQueue'
   and m.message_body is not null
 order by m.queuing_order`)
	if want := []string{"done", "done", "nothing ordered"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What the pages name exists: functions and views, error codes, and the pages that they link to.
func TestDocsNameWhatExists(t *testing.T) {
	t.Parallel()
	conn := pgtest.New(t).Superuser(t)
	names := pgtest.Strings(t, conn, `
select p.proname::text from pg_proc as p where p.pronamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)
union
select c.relname::text from pg_class as c where c.relnamespace in ('sb'::regnamespace, 'sb_internal'::regnamespace)`)
	registry := readFile(t, "sql/errors.csv")
	var (
		object  = regexp.MustCompile(`\b(?:sb|sb_internal)\.([a-z_]+)\b`)
		code    = regexp.MustCompile(`\bS\d{4}\b`)
		link    = regexp.MustCompile(`\]\(([^)]+)\)`)
		heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
		anchor  = regexp.MustCompile(`<a id="([^"]+)">`)
		notWord = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	)
	anchors := func(page string) []string {
		var list []string
		for _, m := range heading.FindAllStringSubmatch(readFile(t, page), -1) {
			list = append(list, strings.ReplaceAll(notWord.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
		}
		for _, m := range anchor.FindAllStringSubmatch(readFile(t, page), -1) {
			list = append(list, m[1])
		}
		return list
	}
	for _, page := range documents(t) {
		text := readFile(t, page)
		for _, m := range object.FindAllStringSubmatch(text, -1) {
			if strings.HasSuffix(m[1], "_") || slices.Contains(names, m[1]) {
				continue // a prefix, as in sb.grant_…, or a name that exists
			}
			t.Errorf("%s: there is no %s", page, m[0])
		}
		for _, c := range code.FindAllString(text, -1) {
			if c != "S9620" && !strings.Contains(registry, "\n"+c+",") { // said never to be raised
				t.Errorf("%s: %s is not in the registry", page, c)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target, anchor, _ := strings.Cut(m[1], "#")
			if strings.HasPrefix(target, "https://") {
				continue
			}
			file := page
			if target != "" {
				file = filepath.ToSlash(filepath.Join(filepath.Dir(page), target))
			}
			if _, err := os.Stat(filepath.Join(root, file)); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
			} else if anchor != "" && !slices.Contains(anchors(file), anchor) {
				t.Errorf("%s: %s has no heading for %s", page, file, m[1])
			}
		}
	}
}
