package sbroker_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/pgsbroker/sbroker/sbroker"
)

// A whole application: objects, a request, its answer, and both sides ending.
func Example() {
	pool, done := database()
	defer done()
	ctx := context.Background()

	// Set up; it may run again.
	check(sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
		for _, name := range []sbroker.MessageTypeName{"//expenses/report", "//expenses/answer"} {
			err := b.CreateMessageType(ctx, sbroker.MessageType{
				Name: name, Validation: sbroker.ValidationWellFormedJSON, IfNotExists: true,
			})
			if err != nil {
				return err
			}
		}
		err := b.CreateContract(ctx, sbroker.Contract{
			Name:            "//expenses",
			SentByInitiator: []sbroker.MessageTypeName{"//expenses/report"},
			SentByTarget:    []sbroker.MessageTypeName{"//expenses/answer"},
			IfNotExists:     true,
		})
		if err != nil {
			return err
		}
		for _, queue := range []sbroker.QueueName{"ClerkQueue", "ApproverQueue"} {
			if err := b.CreateQueue(ctx, sbroker.Queue{Name: queue, IfNotExists: true}); err != nil {
				return err
			}
		}
		err = b.CreateService(ctx, sbroker.Service{Name: "//clerk", Queue: "ClerkQueue", IfNotExists: true})
		if err != nil {
			return err
		}
		return b.CreateService(ctx, sbroker.Service{
			Name: "//approver", Queue: "ApproverQueue",
			Contracts: []sbroker.ContractName{"//expenses"}, IfNotExists: true,
		})
	}))

	type report struct{ Amount int }

	// The clerk hands in a report.
	check(sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
		h, err := b.BeginDialog(ctx, sbroker.Dialog{From: "//clerk", To: "//approver", Contract: "//expenses"})
		if err != nil {
			return err
		}
		return b.SendJSON(ctx, h, "//expenses/report", report{Amount: 120})
	}))

	// The approver answers and ends his side.
	check(sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
		messages, err := b.Receive(ctx, "ApproverQueue", sbroker.ReceiveOptions{Max: 1})
		if err != nil || len(messages) == 0 {
			return err
		}
		var r report
		if err := messages[0].JSON(&r); err != nil {
			return err
		}
		fmt.Println("approver: asked for", r.Amount)
		h := messages[0].Conversation
		if err := b.SendJSON(ctx, h, "//expenses/answer", "approved"); err != nil {
			return err
		}
		return b.End(ctx, h)
	}))

	// The clerk reads the answer and ends hers when told that the other side has ended.
	check(sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
		messages, err := b.Receive(ctx, "ClerkQueue", sbroker.ReceiveOptions{})
		if err != nil {
			return err
		}
		for _, m := range messages {
			switch m.Kind() {
			case sbroker.KindApplication:
				fmt.Println("clerk:", m.Text())
			case sbroker.KindEndDialog:
				fmt.Println("clerk: end of dialog")
				if err := b.End(ctx, m.Conversation); err != nil {
					return err
				}
			}
		}
		return nil
	}))
	// Output:
	// approver: asked for 120
	// clerk: "approved"
	// clerk: end of dialog
}

// Everything through b.With(tx), and b.DB() in RunTx, is one transaction with the caller's own statements.
func ExampleBroker_With() {
	pool, done := database("with")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	tx := must(pool.Begin(ctx))
	h := must(b.With(tx).BeginDialog(ctx, sbroker.Dialog{From: "with", To: "with"}))
	check(b.With(tx).SendText(ctx, h, sbroker.DefaultMessageType, "hello"))
	check(tx.Rollback(ctx))

	err := b.SendText(ctx, h, sbroker.DefaultMessageType, "hello again")
	fmt.Println(errors.Is(err, sbroker.CodeConversationNotFound))
	// Output: true
}

// RunTx begins, commits, and begins again when the error deserves it.
func ExampleRunTx() {
	pool, done := database("runtx")
	defer done()
	ctx := context.Background()
	must(pool.Exec(ctx, `create table orders (id integer primary key)`))

	check(sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
		// The order and its message exist together or not at all.
		if _, err := b.DB().Exec(ctx, `insert into orders (id) values (7)`); err != nil {
			return err
		}
		h, err := b.BeginDialog(ctx, sbroker.Dialog{From: "runtx", To: "runtx"})
		if err != nil {
			return err
		}
		return b.SendText(ctx, h, sbroker.DefaultMessageType, "order 7")
	}))

	messages := must(sbroker.New(pool).Receive(ctx, "runtx", sbroker.ReceiveOptions{}))
	fmt.Println(messages[0].Text())
	// Output: order 7
}

// Bodies are bytes, text, JSON, or nothing at all.
func ExampleBroker_Send() {
	pool, done := database("send")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "send", To: "send"}))
	check(b.Send(ctx, h, sbroker.DefaultMessageType, []byte{0, 1, 2}))
	check(b.SendText(ctx, h, sbroker.DefaultMessageType, "tête-à-tête"))
	check(b.SendJSON(ctx, h, sbroker.DefaultMessageType, map[string]int{"amount": 120}))
	check(b.SendEmpty(ctx, h, sbroker.DefaultMessageType))

	for _, m := range must(b.Receive(ctx, "send", sbroker.ReceiveOptions{})) {
		fmt.Printf("%d %q\n", m.SequenceNumber, m.Body)
	}
	// Output:
	// 0 "\x00\x01\x02"
	// 1 "tête-à-tête"
	// 2 "{\"amount\":120}"
	// 3 ""
}

// Many messages of one conversation in one round trip.
func ExampleBroker_SendBatch() {
	pool, done := database("batch")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "batch", To: "batch"}))
	check(b.SendBatch(ctx, h, sbroker.DefaultMessageType, [][]byte{[]byte("a"), []byte("b"), []byte("c")}))

	for _, m := range must(b.Receive(ctx, "batch", sbroker.ReceiveOptions{Max: 2})) {
		fmt.Println(m.Text())
	}
	// Output:
	// a
	// b
}

// One message for several subscribers.
func ExampleBroker_Multicast() {
	pool, done := database("publisher", "multicast")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	first := must(b.BeginDialog(ctx, sbroker.Dialog{From: "publisher", To: "multicast"}))
	second := must(b.BeginDialog(ctx, sbroker.Dialog{From: "publisher", To: "multicast"}))
	check(b.Multicast(ctx, []sbroker.Handle{first, second}, sbroker.DefaultMessageType, []byte("news")))

	for range 2 { // each subscription is a group of its own
		fmt.Println(must(b.Receive(ctx, "multicast", sbroker.ReceiveOptions{}))[0].Text())
	}
	// Output:
	// news
	// news
}

// A side that cannot go on tells the other why.
func ExampleBroker_EndWithError() {
	pool, done := database("asker", "refuser")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "asker", To: "refuser"}))
	check(b.SendText(ctx, h, sbroker.DefaultMessageType, "cost center 99"))

	request := must(b.Receive(ctx, "refuser", sbroker.ReceiveOptions{}))[0]
	check(b.EndWithError(ctx, request.Conversation, 99, "unknown cost center"))

	m := must(b.Receive(ctx, "asker", sbroker.ReceiveOptions{}))[0]
	info := must(m.ErrorInfo())
	fmt.Println(m.Kind(), info.Code, info.Description, info.ByBroker())
	check(b.End(ctx, m.Conversation))
	// Output: Error 99 unknown cost center false
}

// EndCleanup forgets a conversation whose peer will never answer.
func ExampleBroker_EndCleanup() {
	pool, done := database("cleanup")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "cleanup", To: "//gone"}))
	check(b.SendText(ctx, h, sbroker.DefaultMessageType, "anybody?"))
	fmt.Println(must(b.TransmissionStatus(ctx, h)) != "")
	check(b.EndCleanup(ctx, h))
	fmt.Println(errors.Is(b.End(ctx, h), sbroker.CodeConversationNotFound))
	// Output:
	// true
	// true
}

// A timer wakes the side that began it.
func ExampleBroker_BeginTimer() {
	pool, done := database("timer")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "timer", To: "timer"}))
	check(b.BeginTimer(ctx, h, time.Hour))
	check(b.BeginTimer(ctx, h, 10*time.Millisecond)) // replaces the first one

	listener := must(sbroker.NewListener(sbroker.ListenerConfig{
		Connect:      sbroker.ConnectTo(pool.Config().ConnConfig),
		PollInterval: 50 * time.Millisecond, // how late a timer may be seen without an activator
	}))
	defer func() { check(listener.Close(ctx)) }()
	m := must(listener.Receive(ctx, b, "timer", sbroker.ReceiveOptions{}))[0]
	fmt.Println(m.Kind(), m.Conversation == h)
	check(b.CancelTimer(ctx, h)) // nothing to cancel is no error
	// Output: DialogTimer true
}

// Conversations in one group are worked on by one reader at a time, with one state.
func ExampleBroker_Move() {
	pool, done := database("move", "movepeer")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	group := sbroker.GroupID{0xca, 0xfe}
	must(b.BeginDialog(ctx, sbroker.Dialog{From: "move", To: "movepeer", RelatedGroup: group}))
	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "move", To: "movepeer"}))
	check(b.Move(ctx, h, group))
	check(b.BeginTimer(ctx, h, time.Millisecond))
	time.Sleep(2 * time.Millisecond)

	m := must(b.Receive(ctx, "move", sbroker.ReceiveOptions{Group: group}))[0]
	fmt.Println(m.Group)
	// Output: cafe0000-0000-0000-0000-000000000000
}

// The outline of a reader with state: hold a group, load its state, take its messages one by one.
func ExampleBroker_GetConversationGroup() {
	pool, done := database("outline")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)
	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "outline", To: "outline"}))
	check(b.SendBatch(ctx, h, sbroker.DefaultMessageType, [][]byte{[]byte("3"), []byte("4")}))

	check(sbroker.RunTx(ctx, pool, func(ctx context.Context, b *sbroker.Broker) error {
		group, err := b.GetConversationGroup(ctx, "outline")
		if err != nil || group.IsZero() {
			return err
		}
		state := sbroker.StateOf[int](b)
		sum, _, err := state.Get(ctx, group)
		if err != nil {
			return err
		}
		for {
			messages, err := b.Receive(ctx, "outline", sbroker.ReceiveOptions{Group: group, Max: 1})
			if err != nil {
				return err
			}
			if len(messages) == 0 {
				fmt.Println("sum", sum)
				return state.Set(ctx, group, sum)
			}
			var n int
			if err := messages[0].JSON(&n); err != nil {
				return err
			}
			sum += n
		}
	}))
	// Output: sum 7
}

// State is typed JSON that belongs to a conversation group.
func ExampleState() {
	pool, done := database("state")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)
	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "state", To: "state"}))
	check(b.SendText(ctx, h, sbroker.DefaultMessageType, "x"))
	group := must(b.Receive(ctx, "state", sbroker.ReceiveOptions{}))[0].Group

	type progress struct{ Answers int }
	state := sbroker.StateOf[progress](b)
	_, found := must2(state.Get(ctx, group))
	fmt.Println(found)
	check(state.Set(ctx, group, progress{Answers: 2}))
	p, found := must2(state.Get(ctx, group))
	fmt.Println(p, found)
	check(state.Remove(ctx, group))
	_, found = must2(state.Get(ctx, group))
	fmt.Println(found)
	// Output:
	// false
	// {2} true
	// false
}

// A state table holds what State cannot: columns of its own, in the caller's schema.
func ExampleBroker_CreateStateTable() {
	pool, done := database()
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	check(b.CreateStateTable(ctx, sbroker.StateTable{
		Name: "expense_state", Columns: "amount numeric not null, approver text",
	}))
	var columns int
	check(pool.QueryRow(ctx, `
select count(*) from pg_catalog.pg_attribute
where attrelid = 'expense_state'::regclass and attnum > 0`).Scan(&columns))
	fmt.Println(columns)
	check(b.DropStateTable(ctx, "expense_state", sbroker.DropOptions{}))
	// Output: 3
}

// Receive with a wait: the listener sleeps on a connection of its own until the sender's commit wakes it.
func ExampleListener_Receive() {
	pool, done := database("listener")
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := sbroker.New(pool)
	listener := must(sbroker.NewListener(sbroker.ListenerConfig{Connect: sbroker.ConnectTo(pool.Config().ConnConfig)}))
	defer func() { check(listener.Close(ctx)) }()

	go func() {
		h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "listener", To: "listener"}))
		check(b.SendText(ctx, h, sbroker.DefaultMessageType, "wake up"))
	}()

	fmt.Println(must(listener.Receive(ctx, b, "listener", sbroker.ReceiveOptions{}))[0].Text())
	// Output: wake up
}

// A resident reader: wait, receive, work and commit, until told to stop.
func ExampleListener_Process() {
	pool, done := database("reader")
	defer done()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	b := sbroker.New(pool)
	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "reader", To: "reader"}))
	check(b.SendBatch(ctx, h, sbroker.DefaultMessageType, [][]byte{[]byte("one"), []byte("two"), []byte("stop")}))

	listener := must(sbroker.NewListener(sbroker.ListenerConfig{Connect: sbroker.ConnectTo(pool.Config().ConnConfig)}))
	defer func() { check(listener.Close(context.WithoutCancel(ctx))) }()
	for ctx.Err() == nil {
		err := listener.Process(ctx, pool, "reader", sbroker.ReceiveOptions{Max: 1},
			func(ctx context.Context, b *sbroker.Broker, messages []sbroker.Message) error {
				fmt.Println(messages[0].Text())
				if messages[0].Text() == "stop" {
					cancel()
				}
				return nil
			})
		if err != nil && ctx.Err() == nil {
			log.Panic(err)
		}
	}
	// Output:
	// one
	// two
	// stop
}

// Codes are compared, texts are shown.
func ExampleError() {
	pool, done := database()
	defer done()
	_, err := sbroker.New(pool).Receive(context.Background(), "NoSuchQueue", sbroker.ReceiveOptions{})

	fmt.Println(errors.Is(err, sbroker.CodeQueueNotFound))
	if e, ok := errors.AsType[*sbroker.Error](err); ok {
		fmt.Println(e.Op, string(e.Code), e.Code.SQLServerNumber())
	}
	// Output:
	// true
	// receive S0208 208
}

// A queue that is stopped keeps nobody from sending; what was sent waits.
func ExampleBroker_AlterQueue() {
	pool, done := database("stopped")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	check(b.AlterQueue(ctx, "stopped", sbroker.QueueChanges{Enabled: new(false)}))
	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "stopped", To: "stopped"}))
	check(b.SendText(ctx, h, sbroker.DefaultMessageType, "patience"))
	_, err := b.Receive(ctx, "stopped", sbroker.ReceiveOptions{})
	fmt.Println(errors.Is(err, sbroker.CodeQueueDisabled))

	check(b.AlterQueue(ctx, "stopped", sbroker.QueueChanges{Enabled: new(true)}))
	fmt.Println(must(b.Receive(ctx, "stopped", sbroker.ReceiveOptions{}))[0].Text())
	// Output:
	// true
	// patience
}

// Bodies of a message type can be checked against a JSON schema.
func ExampleBroker_CreateMessageType() {
	pool, done := database("schema")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)
	check(b.CreateMessageType(ctx, sbroker.MessageType{
		Name:       "//order",
		Validation: sbroker.ValidationValidJSON,
		Schema:     []byte(`{"type": "object", "required": ["id"]}`),
	}))
	check(b.CreateContract(ctx, sbroker.Contract{
		Name: "//orders", SentByInitiator: []sbroker.MessageTypeName{"//order"},
	}))
	check(b.AlterService(ctx, "schema", sbroker.ServiceChanges{AddContracts: []sbroker.ContractName{"//orders"}}))

	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "schema", To: "schema", Contract: "//orders"}))
	check(b.SendJSON(ctx, h, "//order", map[string]string{"name": "no id"}))
	info := must(must(b.Receive(ctx, "schema", sbroker.ReceiveOptions{}))[0].ErrorInfo())
	fmt.Println(info.Code)
	// Output: -9615
}

// Conversations that match get a priority when they begin.
func ExampleBroker_CreateBrokerPriority() {
	pool, done := database("urgent", "ordinary", "office")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)
	check(b.CreateBrokerPriority(ctx, sbroker.BrokerPriority{
		Name: "urgent first", LocalService: "office", RemoteService: "urgent", Level: 9,
	}))

	for _, from := range []sbroker.ServiceName{"ordinary", "urgent"} {
		h := must(b.BeginDialog(ctx, sbroker.Dialog{From: from, To: "office"}))
		check(b.SendText(ctx, h, sbroker.DefaultMessageType, string(from)))
	}
	for range 2 {
		m := must(b.Receive(ctx, "office", sbroker.ReceiveOptions{}))[0]
		fmt.Println(m.Priority, m.Text())
	}
	// Output:
	// 9 urgent
	// 5 ordinary
}

// Rights are given per service, queue and contract.
func ExampleBroker_GrantReceive() {
	pool, done := database("granted")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)

	check(b.CreateContract(ctx, sbroker.Contract{
		Name: "//ours", SentByAny: []sbroker.MessageTypeName{sbroker.DefaultMessageType},
	}))

	check(b.GrantReceive(ctx, "granted", sbroker.Public))
	check(b.GrantSend(ctx, "granted", sbroker.Public))
	check(b.GrantReferences(ctx, "//ours", sbroker.Public))
	check(b.RevokeReferences(ctx, "//ours", sbroker.Public))
	check(b.RevokeSend(ctx, "granted", sbroker.Public))
	check(b.RevokeReceive(ctx, "granted", sbroker.Public))
	// Output:
}

// A service can hear that a queue needs a reader, or that it was switched off.
func ExampleBroker_CreateEventNotification() {
	pool, done := database("watched")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)
	check(b.CreateQueue(ctx, sbroker.Queue{Name: "watcher"}))
	check(b.CreateService(ctx, sbroker.Service{
		Name: "watcher", Queue: "watcher",
		Contracts: []sbroker.ContractName{"https://schemas.microsoft.com/SQL/Notifications/PostEventNotification"},
	}))
	check(b.CreateEventNotification(ctx, sbroker.EventNotification{
		Name: "work", Queue: "watched", Event: sbroker.EventQueueActivation, ToService: "watcher",
	}))

	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "watched", To: "watched"}))
	check(b.SendText(ctx, h, sbroker.DefaultMessageType, "work"))
	fmt.Println(must(b.Receive(ctx, "watcher", sbroker.ReceiveOptions{}))[0].Type)
	check(b.DropEventNotification(ctx, "work", "watched", sbroker.DropOptions{}))
	// Output: https://schemas.microsoft.com/SQL/Notifications/EventNotification
}

// Routes to other servers are stored; their messages wait for an activator that knows the server.
func ExampleBroker_CreateRoute() {
	pool, done := database("route")
	defer done()
	ctx := context.Background()
	b := sbroker.New(pool)
	check(b.CreateRoute(ctx, sbroker.Route{Name: "to warehouse", Address: "remote://warehouse", Service: "//warehouse"}))

	h := must(b.BeginDialog(ctx, sbroker.Dialog{From: "route", To: "//warehouse"}))
	check(b.SendText(ctx, h, sbroker.DefaultMessageType, "pick 7"))
	fmt.Println(must(b.TransmissionStatus(ctx, h)) != "")
	check(b.EndCleanup(ctx, h))
	check(b.DropRoute(ctx, "to warehouse", sbroker.DropOptions{}))
	// Output: true
}

// Options hold for the whole database.
func ExampleBroker_SetOption() {
	pool, done := database()
	defer done()
	b := sbroker.New(pool)
	check(b.SetOption(context.Background(), sbroker.OptionPoisonMessageThreshold, "5"))
	err := b.SetOption(context.Background(), "no_such_option", "1")
	fmt.Println(errors.Is(err, sbroker.CodeInvalidArgument))
	// Output: true
}
