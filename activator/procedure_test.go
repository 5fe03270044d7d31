package activator_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pgsbroker/sbroker/activator"
)

// echo is the body of a function or procedure that answers one message per call and ends the dialog.
const echo = `
declare
  m record;
begin
  select r.* into m from sb.receive('server', max_messages => 1) as r;
  if not found then
    return;
  end if;
  insert into public.seen (body, role) values (sb.body_text(m.message_body), current_user);
  perform sb.send(m.conversation_handle, 'DEFAULT', 're: ' || sb.body_text(m.message_body));
  perform sb.end_conversation(m.conversation_handle);
end`

// activate gives the queue an activation procedure with the body, and a table public.seen for it.
func (s *stage) activate(kind, body string, readers int) (executor string) {
	s.t.Helper()
	executor = s.executor("server")
	s.exec(`create schema app`)
	s.exec(fmt.Sprintf(`grant usage on schema app to %s`, executor))
	s.superuser(`create table public.seen (body text, role text, at timestamptz default clock_timestamp(), pid int default pg_backend_pid())`)
	s.superuser(fmt.Sprintf(`grant select, insert on public.seen to %s, %s`, executor, s.db.Owner))
	s.replace(kind, body)
	s.exec(`select sb.alter_queue('server', activation_procedure => 'app.handle', max_queue_readers => $1, execute_as => $2)`,
		readers, executor)
	return executor
}

// replace creates or replaces the activation procedure.
func (s *stage) replace(kind, body string) {
	s.t.Helper()
	returns := ""
	if kind == "function" {
		returns = "returns void"
	}
	s.exec(fmt.Sprintf("create or replace %s app.handle() %s language plpgsql as $$%s$$", kind, returns, body))
}

func (s *stage) seen() int { return value[int](s, "select count(*) from public.seen") }

// Rules
func TestFunction(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	executor := s.activate("function", echo, 2)
	for i := range 20 {
		s.send(fmt.Sprint(i))
	}
	s.start(s.config())
	s.eventually("all that was there before are handled", func() bool { return s.seen() == 20 })
	s.send("late")
	s.eventually("one that comes later is handled", func() bool { return s.seen() == 21 })
	if n := value[int](s, "select count(*) from public.seen where role = $1", executor); n != 21 {
		t.Errorf("%d of 21 ran as %s", n, executor)
	}
	s.idle("server")
	if n := value[int](s, "select count(*) from sb.queue_messages where queue_name = 'client'"); n != 42 {
		t.Errorf("%d answers and ends, want 42", n)
	}
}

// A procedure may commit, and loop as long as there is something.
// Rules
func TestProcedure(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	executor := s.activate("procedure", `
declare
  m record;
begin
  loop
    select r.* into m from sb.receive('server', max_messages => 1) as r;
    exit when not found;
    insert into public.seen (body, role) values (sb.body_text(m.message_body), current_user);
    perform sb.end_conversation(m.conversation_handle);
    commit;
  end loop;
end`, 2)
	s.start(s.config())
	for i := range 20 {
		s.send(fmt.Sprint(i))
	}
	s.eventually("all are handled", func() bool { return s.seen() == 20 })
	if n := value[int](s, "select count(*) from public.seen where role = $1", executor); n != 20 {
		t.Errorf("%d of 20 ran as %s", n, executor)
	}
	s.eventually("inactive", func() bool {
		return value[string](s, "select state from sb.dm_broker_queue_monitors where queue_name = 'server'") == "INACTIVE"
	})
	s.eventually("no reader slot is held by an idle session", func() bool {
		return value[int](s, "select count(*) from pg_locks where locktype = 'advisory' and objsubid = 1") == 0
	})
}

// What a procedure says is in the log, with queue and procedure; what it returns is nowhere.
// Rules
func TestProcedureOutput(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate("function", `
begin
  raise notice 'search_path is %', current_setting('search_path');
  raise warning 'beware';
  perform from sb.receive('server');
end`, 1)
	cfg := s.config()
	log := &captured{}
	cfg.Logger = log.logger()
	s.start(cfg)
	s.send("x")
	for _, want := range []string{
		`level=INFO msg="search_path is \"$user\", public" queue=server procedure=app.handle severity=NOTICE`,
		`level=WARN msg=beware queue=server procedure=app.handle severity=WARNING`,
	} {
		s.eventually(want, func() bool { return strings.Contains(log.String(), want) })
	}
}

// A procedure that never receives is not called in a hot loop; its replacement is called at once (B-02).
// Rules
func TestNeverReceives(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"function", "procedure"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.activate(kind, `begin insert into public.seen (body) values ('called'); end`, 3)
			s.start(s.config())
			for range 3 {
				s.send("x")
			}
			s.eventually("called", func() bool { return s.seen() > 0 })
			s.eventually("the state shows", func() bool {
				return value[string](s, "select state from sb.dm_broker_queue_monitors where queue_name = 'server'") == "NOTIFIED"
			})
			time.Sleep(time.Second)
			if n := s.seen(); n > 12 {
				t.Errorf("%d calls in about a second", n)
			}
			s.replace(kind, echo)
			s.eventually("received", func() bool {
				return value[int](s, "select count(*) from public.seen where body = 'x'") == 3
			})
		})
	}
}

// Receiving nothing once is no reason to warn: another reader's look may have been in the way.
func TestReceivesAtSecondCall(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate("function", `
begin
  insert into public.seen (body) values ('called');
  if nextval('app.calls') > 1 then
    perform from sb.receive('server');
  end if;
end`, 1)
	s.exec("create sequence app.calls")
	s.superuser("grant usage on sequence app.calls to public")
	cfg := s.config()
	log := &captured{}
	cfg.Logger = log.logger()
	s.start(cfg)
	s.send("x")
	s.idle("server")
	if text := log.String(); s.seen() < 2 || strings.Contains(text, "without receiving") {
		t.Errorf("%d calls, log:\n%s", s.seen(), text)
	}
}

// One that swallows its errors in a subtransaction is no better.
// Rules: R-336
func TestSwallowedError(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate("function", `
begin
  insert into public.seen (body) values ('called');
  begin
    perform from sb.receive('server');
    perform 1 / 0;
  exception when division_by_zero then
    null;
  end;
end`, 1)
	s.start(s.config())
	s.send("x")
	s.eventually("called again", func() bool { return s.seen() > 1 })
	time.Sleep(time.Second)
	if n := s.seen(); n > 12 {
		t.Errorf("%d calls in about a second", n)
	}
}

// A failing procedure backs off, and stops its queue at the fifth failure.
// Rules
func TestFailingProcedure(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"function", "procedure"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			s.activate(kind, `
begin
  perform from sb.receive('server');
  raise exception 'no';
end`, 1)
			cfg := s.config()
			log := &captured{}
			cfg.Logger = log.logger()
			began := time.Now()
			s.start(cfg)
			s.send("x")
			s.eventually("queue off", func() bool {
				return value[bool](s, "select not is_receive_enabled from sb.service_queues where name = 'server'")
			})
			if took := time.Since(began); took < time.Second || took > 15*time.Second {
				t.Errorf("disabled after %v, want about 1.5 s", took)
			}
			s.eventually("it is logged", func() bool { return strings.Contains(log.String(), "disabled") })
			if n := strings.Count(log.String(), "reader failed"); n != 5 {
				t.Errorf("%d failures logged, want 5:\n%s", n, log)
			}
			s.eventually("it is written down", func() bool {
				return !value[bool](s, "select is_enabled from sb_internal.queue where name = 'server'")
			})
		})
	}
}

// A superuser runs no SQL handlers.
func TestSuperuser(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.activate("function", echo, 1)
	cfg := s.config()
	cfg.DatabaseURL = s.db.URLAs("")
	log := &captured{}
	cfg.Logger = log.logger()
	called := make(chan struct{}, 1)
	s.start(cfg, func(a *activator.Activator) {
		a.HandleFunc("client", func(context.Context, *activator.Batch) error {
			called <- struct{}{}
			return nil
		})
	})
	s.send("x")
	s.exec(`select sb.create_queue('other'), sb.create_service('other', 'other', '{DEFAULT}')`)
	s.exec(`select sb.send(sb.begin_dialog('other', 'client'), 'DEFAULT', 'x')`)
	<-called // Go handlers are all right
	if !strings.Contains(log.String(), "a superuser runs no activation procedures") {
		t.Errorf("log:\n%s", log)
	}
	if s.seen() != 0 {
		t.Error("the procedure ran")
	}
}
