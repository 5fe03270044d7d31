//go:build linux

package proof

import (
	"errors"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// Through a pooler in transaction mode activators poll and run handlers, with everything that handlers are promised; what needs
// a session is refused. Without having been told, an activator says at once what is the matter.
func TestPooler(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec(openShop)
	url := pgtest.Pooler(t, s.url(s.login), 6) + "&default_query_exec_mode=exec"

	p := start(t, url)
	<-p.done
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) || exit.ExitCode() != 3 || !strings.Contains(p.log.String(), "through a pooler") {
		t.Errorf("%v: %s", p.err, p.log)
	}

	dir := t.TempDir()
	const interval = time.Second
	var activators []*process
	for range 2 {
		activators = append(activators, start(t, url, clerkSettings(t, dir, 2, "bench"), "SBACTIVATOR_DATABASE_POOLER=true",
			"SBACTIVATOR_ACTIVATION_POLL_INTERVAL="+interval.String()))
	}
	const answers = "select count(*) from sb.queue_messages where queue_name = 'client'"
	handles := pgtest.Strings(t, s.pool, "select sb.begin_dialog('client', 'bench') from generate_series(1, 8)")
	for n := range 5 {
		s.exec("select sb.send(h, 'DEFAULT', h || ' ' || $2::integer) from unnest($1::text[]::uuid[]) as h", handles, n)
		began := time.Now()
		s.eventually("answered", "select ("+answers+") = $1", len(handles)*(n+1))
		if took := time.Since(began); n > 0 && took > atMost(2*interval) { // they were ready
			t.Errorf("answered after %v", took)
		}
	}
	s.exec(askEach, []string{"desk"}) // which has a function
	s.none("listens", "select * from pg_stat_activity where datname = current_database() and application_name like 'sbactivator % listener'")
	s.none("waiting flag", "select l.* from pg_locks as l join pg_database as d on d.oid = l.database where d.datname = current_database() and l.classid = 8420")
	for _, p := range activators {
		if text := p.log.String(); !strings.Contains(text, "a pooler gives no session") || strings.Contains(text, "level=ERROR") {
			t.Errorf("log:\n%s", text)
		}
		address := regexp.MustCompile(`address=(\S+)`).FindStringSubmatch(p.log.String())[1]
		response, err := http.Get("http://" + address + "/readyz") //nolint:noctx // it answers soon
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			t.Errorf("ready: %d %s %v", response.StatusCode, body, err)
		}
	}
	for _, p := range activators {
		p.stop()
	}
	// A procedure by hand, which takes the answers into the books.
	s.exec("call app.client()")
	s.exec("insert into public.sent (handle, n) select handle, n from public.ledger where queue = 'client' order by id")
	s.none("out of order", `select * from (
		select handle, n, lag(n, 1, -1) over (partition by handle order by id) as before from public.ledger where queue = 'client') as o where n <> before + 1`)
	s.none("more than two readers", `
with calls as (select worker, began, max(until) as until from public.ledger where queue = 'bench' group by 1, 2)
select at, readers from (
  select at, sum(change) over (order by at, change) as readers
    from (select began as at, 1 as change from calls union all select until, -1 from calls) as changes) as o
 where readers > 2`)
	if n := value[int](s, answers); n > 0 {
		t.Errorf("%d answers left", n)
	}
	s.noClerks(dir)
}
