package activator_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"testing"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/sbroker"
)

// exampleTB lets pgtest serve an Example, which has no testing.T: what it does not implement panics.
type exampleTB struct {
	testing.TB
	cleanups []func()
}

func (*exampleTB) Helper()                           {}
func (*exampleTB) Context() context.Context          { return context.Background() }
func (e *exampleTB) Cleanup(fn func())               { e.cleanups = append(e.cleanups, fn) }
func (*exampleTB) Errorf(format string, args ...any) { log.Panicf(format, args...) }
func (*exampleTB) Fatalf(format string, args ...any) { log.Panicf(format, args...) }
func (*exampleTB) Fatal(args ...any)                 { log.Panic(args...) }
func (*exampleTB) Skip(args ...any)                  { log.Panic(args...) }

// exampleStage opens a database of its own for one example, with services "client" and "server".
func exampleStage() (s *stage, done func()) {
	tb := &exampleTB{}
	s = newStage(tb)
	return s, func() {
		for i := len(tb.cleanups) - 1; i >= 0; i-- { // last in, first out, as testing does
			tb.cleanups[i]()
		}
	}
}

// A service that adds up what it is sent, per conversation group, and answers with the sum.
func Example() {
	s, done := exampleStage()
	defer done()
	databaseURL := s.db.URLAs(s.role)

	a, err := activator.New(activator.Config{DatabaseURL: databaseURL})
	if err != nil {
		log.Fatal(err)
	}
	type account struct{ Sum int }
	a.HandleFunc("server", func(ctx context.Context, b *activator.Batch) error {
		state := activator.StateOf[account](b)
		current, _, err := state.Get(ctx)
		if err != nil {
			return err
		}
		for _, m := range b.Messages {
			switch m.Kind() {
			case sbroker.KindEndDialog, sbroker.KindError:
				if err := b.Broker.End(ctx, m.Conversation); err != nil {
					return err
				}
				return nil // and the state is gone
			case sbroker.KindApplication:
				var amount int
				if err := m.JSON(&amount); err != nil {
					// Another try will not mend it.
					if err := b.Broker.EndWithError(ctx, m.Conversation, 1, "not a number"); err != nil {
						return err
					}
					return nil
				}
				current.Sum += amount
				if err := b.Broker.SendJSON(ctx, m.Conversation, sbroker.DefaultMessageType, current.Sum); err != nil {
					return err
				}
			}
		}
		return state.Set(ctx, current)
	})

	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- a.Run(ctx) }()

	h := s.send("1", "2", "39")
	listener, err := sbroker.NewListener(sbroker.ListenerConfig{Connect: sbroker.ConnectTo(s.pool.Config().ConnConfig)})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		messages, err := listener.Receive(ctx, s.b, "client", sbroker.ReceiveOptions{Max: 1, Conversation: h})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(messages[0].Text())
	}
	if err := errors.Join(s.b.End(ctx, h), listener.Close(ctx)); err != nil {
		log.Fatal(err)
	}

	stop()
	fmt.Println("stopped:", <-stopped)
	// Output:
	// 1
	// 3
	// 42
	// stopped: <nil>
}

// Handlers for several queues, with options.
func ExampleActivator_Handle() {
	a, err := activator.New(activator.Config{DatabaseURL: "postgres://worker@db.example/app"})
	if err != nil {
		log.Fatal(err)
	}
	audit := activator.HandlerFunc(func(ctx context.Context, b *activator.Batch) error {
		for _, m := range b.Messages {
			_, err := b.Tx.Exec(ctx, "insert into audit (at, body) values ($1, $2)", m.EnqueuedAt, m.Text())
			if err != nil {
				return err // everything is undone, and tried again
			}
		}
		return nil
	})
	a.Handle("AuditQueue", audit, activator.HandlerOptions{Batch: 100, MaxQueueReaders: 2, AutoEnd: true})
	a.Handle("OldAuditQueue", audit, activator.HandlerOptions{MaxQueueReaders: 1})
	// Output:
}

// A handler in another language: a program that answers each line with one.
func ExampleExecHandler() {
	s, done := exampleStage()
	defer done()
	a, err := activator.New(activator.Config{DatabaseURL: s.db.URLAs(s.role)})
	if err != nil {
		log.Fatal(err)
	}
	a.Handle("server", activator.ExecHandler(activator.ExecOptions{Command: activator.Command{
		Args: []string{"/bin/sh", "-c", `
			while read -r request; do
			  handle=$(echo "$request" | sed 's/.*"conversation_handle":"\([^"]*\)".*/\1/')
			  echo '{"actions":[{"send":{"conversation_handle":"'$handle'","message_body":"hello"}}]}'
			done`},
	}}), activator.HandlerOptions{Batch: 1})

	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- a.Run(ctx) }()
	s.send("anybody there?")
	fmt.Println(s.answers(1))
	stop()
	fmt.Println("stopped:", <-stopped)
	// Output:
	// [hello]
	// stopped: <nil>
}

// A service behind a URL.
func ExampleHTTPHandler() {
	a, err := activator.New(activator.Config{DatabaseURL: "postgres://worker@db.example/app"})
	if err != nil {
		log.Fatal(err)
	}
	a.Handle("AuditQueue", activator.HTTPHandler(activator.HTTPOptions{
		URL: "https://audit.example/batch", Headers: map[string]string{"X-Team": "audit"},
	}), activator.HandlerOptions{Batch: 100})
	// Output:
}

// A program that receives by itself, with a login of its own.
func ExampleActivator_HandleProgram() {
	a, err := activator.New(activator.Config{DatabaseURL: "postgres://worker@db.example/app"})
	if err != nil {
		log.Fatal(err)
	}
	a.HandleProgram("LegacyQueue", activator.ProgramOptions{
		Command: activator.Command{
			Args: []string{"./legacy-reader"}, Env: map[string]string{"PGHOST": "db.example", "PGUSER": "legacy"},
		},
		MaxQueueReaders: 2,
	})
	// Output:
}

// Metrics come from an Observer.
func ExampleObserverFunc() {
	observer := activator.ObserverFunc(func(e activator.Event) {
		switch e := e.(type) {
		case activator.HandlerCalled:
			fmt.Println(e.Queue, e.Messages, e.Err)
		case activator.QueueDisabled:
			fmt.Println(e.Queue, "is off")
		}
	})
	observer.Observe(activator.HandlerCalled{Queue: "AuditQueue", Messages: 3})
	// Output: AuditQueue 3 <nil>
}
