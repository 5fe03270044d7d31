//go:build linux

package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// fill sends so many messages on as many dialogs to desk, and as many to bench.
const fill = `
with sent as (
  insert into public.sent (handle, n)
  select sb.begin_dialog('client', service), 1 from generate_series(1, $1::integer), unnest(array['desk', 'bench']) as service
  returning handle, n)
select sb.send(handle, 'DEFAULT', handle || ' ' || n) from sent`

// handled is true when all that was sent is handled.
const handled = `
select count(*) = (select count(*) from public.sent) from public.ledger where queue in ('desk', 'client')`

// An activator that works in this process leaves neither goroutines nor connections behind, whenever it is ended.
//
//nolint:paralleltest // the goroutines of others would be taken for its own
func TestNothingLeft(t *testing.T) {
	s := newStage(t)
	s.exec(openShop)
	s.exec(fmt.Sprintf("grant insert on public.ledger to %s", s.login))
	for range 6 {
		s.exec(fill, 20)
		before := goleak.IgnoreCurrent()
		a, err := activator.New(activator.Config{DatabaseURL: s.url(s.login)})
		if err != nil {
			t.Fatal(err)
		}
		a.HandleFunc("bench", func(ctx context.Context, b *activator.Batch) error {
			time.Sleep(5 * time.Millisecond)
			for _, m := range b.Messages {
				_, err := b.Tx.Exec(ctx, `
insert into public.ledger (queue, handle, n, worker, began, until)
values ('client', split_part($1, ' ', 1)::uuid, split_part($1, ' ', 2)::integer, 'go', now(), clock_timestamp())`, m.Text())
				if err != nil {
					return err
				}
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(400))*time.Millisecond)
		if err := a.Run(ctx); err != nil {
			t.Error(err)
		}
		cancel()
		if err := goleak.Find(before); err != nil {
			t.Error(err)
		}
		s.noneLeft(t.TempDir())
	}
	s.none("twice", "select handle, n from public.ledger group by 1, 2 having count(*) > 1")
	s.none("neither handled nor waiting", `
select handle, n from public.sent
except select handle, n from public.ledger
except select split_part(sb.body_text(message_body), ' ', 1)::uuid, 1 from sb.queue_messages`)
}

// SIGTERM under load: every process finishes what it is at and ends well, in time, and leaves no connection, lock, or process
// behind; the next ones take on the rest. A second signal ends a process at once, and its handlers with it; so does kill -9.
func TestTermination(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.exec(openShop)
	dir := t.TempDir()
	settings := clerkSettings(t, dir, 2, "bench")
	for range 3 {
		s.exec(fill, 60)
		activators := []*process{s.start(settings), s.start(settings)}
		s.eventually("they are at work", "select count(*) > 0 from public.ledger where at > clock_timestamp() - interval '0.2 s'")
		for _, p := range activators {
			p.signal(syscall.SIGTERM)
		}
		began := time.Now()
		for _, p := range activators {
			p.ends(began)
		}
		s.noneLeft(dir)
	}
	last := s.start(settings)
	s.eventually("the rest is handled", handled)
	last.stop()
	(&fire{stage: s}).checkBooks()

	for _, end := range []func(p *process){
		(*process).kill,
		func(p *process) {
			p.signal(syscall.SIGTERM)
			pgtest.Eventually(t, time.Minute, func() bool { return strings.Contains(p.log.String(), "stopping") })
			p.signal(syscall.SIGTERM)
			<-p.done
		},
	} {
		s.exec(fill, 1)
		p := s.start(settings, "LINGER="+filepath.Join(t.TempDir(), "once"), "LINGER_FOR=1m")
		s.eventually("a clerk is at it", `
select exists (select from pg_stat_activity where datname = current_database() and application_name like 'sbactivator %'
  and state = 'idle in transaction' and xact_start < clock_timestamp() - interval '0.5 s')`)
		began := time.Now()
		end(p)
		s.noneLeft(dir)
		if took := time.Since(began); took > atMost(5*time.Second) {
			t.Errorf("ended after %v", took)
		}
	}
	last = s.start(settings)
	s.eventually("the rest is handled", handled)
	last.stop()
	(&fire{stage: s}).checkBooks()
}
