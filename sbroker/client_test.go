package sbroker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/sbroker"
	"github.com/pgsbroker/sbroker/sbroker/sbrokertest"
)

// Every verb has to work in every query execution mode, through connection, pool and transaction, and
// through a pooler that forgets the session between calls.
func TestEveryVerbInEveryMode(t *testing.T) {
	t.Parallel()
	modes := []pgx.QueryExecMode{
		pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol,
	}
	for _, mode := range modes {
		t.Run(mode.String(), func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t)
			config, err := pgx.ParseConfig(db.URL())
			if err != nil {
				t.Fatal(err)
			}
			config.DefaultQueryExecMode = mode
			conn, err := pgx.ConnectConfig(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			everyVerb(t, sbroker.New(conn))
		})
	}
	t.Run("transaction", func(t *testing.T) {
		t.Parallel()
		tx, err := pgtest.New(t).Conn(t).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		everyVerb(t, sbroker.New(nil).With(tx))
		if err := tx.Commit(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("transaction pooler", func(t *testing.T) {
		t.Parallel()
		everyVerb(t, sbroker.New(forgetful{pgtest.New(t).Pool(t)}))
	})
}

// forgetful runs every call on a session that knows nothing of the ones before, as behind a transaction
// pooler, where pgx must not prepare statements.
type forgetful struct{ pool *pgxpool.Pool }

func (f forgetful) reset(ctx context.Context) error {
	_, err := f.pool.Exec(ctx, "discard all", pgx.QueryExecModeSimpleProtocol)
	return err
}

func (f forgetful) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if err := f.reset(ctx); err != nil {
		return pgconn.CommandTag{}, err
	}
	return f.pool.Exec(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
}

func (f forgetful) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := f.reset(ctx); err != nil {
		return nil, err
	}
	return f.pool.Query(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
}

func (f forgetful) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	_ = f.reset(ctx) // what is wrong with the connection shows in the query
	return f.pool.QueryRow(ctx, sql, append([]any{pgx.QueryExecModeExec}, args...)...)
}

// everyVerb calls every method once with all its arguments and looks at what has come of it.
func everyVerb(t *testing.T, b *sbroker.Broker) {
	t.Helper()
	ctx := t.Context()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			if e, is := errors.AsType[*sbroker.Error](err); is {
				t.Fatalf("%v\ndetail: %s\nhint: %s", err, e.Detail, e.Hint)
			}
			t.Fatal(err)
		}
	}
	receive := func(queue sbroker.QueueName, o sbroker.ReceiveOptions) []sbroker.Message {
		t.Helper()
		messages, err := b.Receive(ctx, queue, o)
		ok(err)
		return messages
	}
	rows := func(sql string) []string {
		t.Helper()
		return pgtest.Strings(t, b.DB(), sql)
	}

	// Objects.
	_, err := b.DB().Exec(ctx, `
create function public.is_short(body jsonb) returns boolean language sql immutable
begin atomic select pg_catalog.length(body::text) < 100; end`)
	ok(err)
	_, err = b.DB().Exec(ctx, `create procedure public.work() language plpgsql as 'begin end'`)
	ok(err)
	ok(b.CreateMessageType(ctx, sbroker.MessageType{Name: `it's "quoted" – ünïcode`}))
	ok(b.CreateMessageType(ctx, sbroker.MessageType{Name: "empty", Validation: sbroker.ValidationEmpty}))
	ok(b.CreateMessageType(ctx, sbroker.MessageType{Name: "json", Validation: sbroker.ValidationWellFormedJSON}))
	ok(b.CreateMessageType(ctx, sbroker.MessageType{Name: "json", IfNotExists: true}))
	ok(b.AlterMessageType(ctx, "json", sbroker.MessageTypeChanges{
		Validation: new(sbroker.ValidationValidJSON), Validator: new("public.is_short(jsonb)"),
	}))
	ok(b.CreateMessageType(ctx, sbroker.MessageType{
		Name: "short", Validation: sbroker.ValidationValidJSON, Validator: "public.is_short(jsonb)",
	}))
	ok(b.CreateMessageType(ctx, sbroker.MessageType{
		Name: "schema", Validation: sbroker.ValidationValidJSON, Schema: []byte(`{"type":"string"}`),
	}))
	ok(b.AlterMessageType(ctx, "schema", sbroker.MessageTypeChanges{
		Validation: new(sbroker.ValidationValidJSON), Schema: []byte(`{"type":"object"}`),
	}))
	ok(b.CreateContract(ctx, sbroker.Contract{
		Name:            "contract",
		SentByInitiator: []sbroker.MessageTypeName{`it's "quoted" – ünïcode`, "empty"},
		SentByTarget:    []sbroker.MessageTypeName{"short"},
		SentByAny:       []sbroker.MessageTypeName{"json", "schema"},
	}))
	ok(b.CreateQueue(ctx, sbroker.Queue{
		Name: "target", Disabled: true, Retention: true, ActivationProcedure: "public.work", MaxQueueReaders: 3,
		ActivationDisabled: true, NoPoisonMessageHandling: true,
	}))
	ok(b.AlterQueue(ctx, "target", sbroker.QueueChanges{
		Enabled: new(true), Retention: new(false), ActivationProcedure: new("public.work"), MaxQueueReaders: new(0),
		ActivationEnabled: new(false), PoisonMessageHandling: new(true),
	}))
	if diff := cmp.Diff([]string{"0|f|t|f|t"}, rows(`
select max_readers, is_activation_enabled, is_receive_enabled, is_retention_enabled, is_poison_message_handling_enabled
from sb.service_queues where name = 'target'`)); diff != "" {
		t.Error(diff)
	}
	ok(b.AlterQueue(ctx, "target", sbroker.QueueChanges{DropActivation: true}))
	ok(b.CreateQueue(ctx, sbroker.Queue{Name: "initiator"}))
	ok(b.CreateService(ctx, sbroker.Service{Name: "initiator", Queue: "initiator"}))
	ok(b.CreateService(ctx, sbroker.Service{
		Name: "target", Queue: "initiator", Contracts: []sbroker.ContractName{sbroker.DefaultContract},
	}))
	ok(b.AlterService(ctx, "target", sbroker.ServiceChanges{
		Queue:        new(sbroker.QueueName("target")),
		AddContracts: []sbroker.ContractName{"contract"}, DropContracts: []sbroker.ContractName{sbroker.DefaultContract},
	}))
	ok(b.CreateRoute(ctx, sbroker.Route{
		Name: "route", Address: "remote://a", Service: "elsewhere", BrokerInstance: "x", Lifetime: time.Hour,
		MirrorAddress: "remote://b",
	}))
	ok(b.AlterRoute(ctx, "route", sbroker.RouteChanges{
		Address: new("remote://c"), Service: new(sbroker.ServiceName("there")), BrokerInstance: new("y"),
		Lifetime: new(2 * time.Hour), MirrorAddress: new("remote://d"),
	}))
	ok(b.CreateBrokerPriority(ctx, sbroker.BrokerPriority{
		Name: "priority", Contract: "contract", LocalService: "target", RemoteService: "initiator", Level: 7,
	}))
	ok(b.AlterBrokerPriority(ctx, "priority", sbroker.BrokerPriorityChanges{
		Contract: new(sbroker.ContractName("contract")), LocalService: new(sbroker.ServiceName("target")),
		RemoteService: new(sbroker.ServiceName("initiator")), Level: new(8),
	}))
	ok(b.CreateEventNotification(ctx, sbroker.EventNotification{
		Name: "disabled", Queue: "target", Event: sbroker.EventBrokerQueueDisabled, ToService: "initiator",
	}))
	ok(b.SetOption(ctx, sbroker.OptionHonorBrokerPriority, "on"))
	ok(b.GrantAdmin(ctx, "pg_monitor"))
	ok(b.RevokeAdmin(ctx, "pg_monitor"))
	ok(b.GrantSend(ctx, "target", sbroker.Public))
	ok(b.RevokeSend(ctx, "target", sbroker.Public))
	ok(b.GrantReceive(ctx, "target", "pg_monitor"))
	ok(b.RevokeReceive(ctx, "target", "pg_monitor"))
	ok(b.GrantReferences(ctx, "contract", sbroker.Public))
	ok(b.RevokeReferences(ctx, "contract", sbroker.Public))
	owner := rows(`select current_user`)[0]
	ok(b.AlterAuthorization(ctx, sbroker.KindOfQueue, "target", owner))
	ok(b.DisableBroker(ctx))
	ok(b.EnableBroker(ctx))

	// A dialog with every kind of message.
	h, err := b.BeginDialog(ctx, sbroker.Dialog{
		From: "initiator", To: "target", Contract: "contract", RelatedGroup: sbroker.GroupID{1}, Lifetime: time.Hour,
	})
	ok(err)
	h2, err := b.BeginDialog(ctx, sbroker.Dialog{
		From: "initiator", To: "target", Contract: "contract", RelatedConversation: h, EncryptionOff: true,
	})
	ok(err)
	const odd = sbroker.MessageTypeName(`it's "quoted" – ünïcode`)
	ok(b.Send(ctx, h, odd, []byte{0, '\'', '\\', 0xff}))
	ok(b.Send(ctx, h, odd, nil))
	ok(b.Send(ctx, h, odd, []byte{}))
	ok(b.SendText(ctx, h, odd, `it's \ "quoted" – $1 @x`))
	ok(b.SendJSON(ctx, h, "json", map[string]string{"a": "it's"}))
	ok(b.SendEmpty(ctx, h, "empty"))
	ok(b.SendBatch(ctx, h, odd, [][]byte{{0}, nil, {}, []byte(`a,"b"\{}`)}))
	ok(b.SendBatch(ctx, h, odd, nil))
	ok(b.Multicast(ctx, []sbroker.Handle{h, h2}, odd, []byte("both")))
	ok(b.Multicast(ctx, []sbroker.Handle{h2}, odd, nil))
	status, err := b.TransmissionStatus(ctx, h)
	if ok(err); status != "" {
		t.Errorf("transmission status %q", status)
	}

	group, err := b.GetConversationGroup(ctx, "target")
	if ok(err); group.IsZero() {
		t.Fatal("no group")
	}
	first := receive("target", sbroker.ReceiveOptions{Max: 1})
	if len(first) != 1 {
		t.Fatalf("%d messages", len(first))
	}
	target := first[0].Conversation
	got := append(first, receive("target", sbroker.ReceiveOptions{Conversation: target, Timeout: time.Second})...)
	message := func(sequence int64, messageType sbroker.MessageTypeName, body []byte) sbroker.Message {
		return sbroker.Message{
			Priority: 8, Group: group, Conversation: target, SequenceNumber: sequence, Service: "target",
			Contract: "contract", Type: messageType, Body: body,
		}
	}
	want := []sbroker.Message{
		message(0, odd, []byte{0, '\'', '\\', 0xff}),
		message(1, odd, nil),
		message(2, odd, nil),
		message(3, odd, []byte(`it's \ "quoted" – $1 @x`)),
		message(4, "json", []byte(`{"a":"it's"}`)),
		message(5, "empty", nil),
		message(6, odd, []byte{0}),
		message(7, odd, nil),
		message(8, odd, nil),
		message(9, odd, []byte(`a,"b"\{}`)),
		message(10, odd, []byte("both")),
	}
	ignore := cmpopts.IgnoreFields(sbroker.Message{}, "QueuingOrder", "ServiceID", "ContractID", "TypeID", "Validation", "EnqueuedAt")
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("received (-want +got):\n%s", diff)
	}
	for i, m := range got {
		if m.Kind() != sbroker.KindApplication || m.TypeID < 65536 || m.ServiceID < 65536 || m.ContractID < 65536 || m.Validation == "" {
			t.Errorf("message %d: %+v", i, m)
		}
		if m.EnqueuedAt.Location() != time.UTC || time.Since(m.EnqueuedAt).Abs() > time.Hour {
			t.Errorf("message %d enqueued at %v", i, m.EnqueuedAt)
		}
	}

	// State.
	state := sbroker.StateOf[map[string]any](b)
	ok(state.Set(ctx, group, map[string]any{"it's": "\\ null", "n": 1.5}))
	s, found, err := state.Get(ctx, group)
	if ok(err); !found || s["it's"] != "\\ null" || s["n"] != 1.5 {
		t.Errorf("state %v, %v", s, found)
	}
	ok(state.Set(ctx, group, nil))
	if _, found, err = state.Get(ctx, group); found {
		t.Error("a null state stays")
	}
	ok(err)
	ok(b.CreateStateTable(ctx, sbroker.StateTable{Name: "my_state", Columns: "n integer", KeepOnEnd: true}))
	ok(b.DropStateTable(ctx, "my_state", sbroker.DropOptions{}))
	ok(b.DropStateTable(ctx, "my_state", sbroker.DropOptions{IfExists: true}))

	// Timer, move, and the three ends.
	ok(b.BeginTimer(ctx, h, time.Minute))
	ok(b.CancelTimer(ctx, h))
	ok(b.CancelTimer(ctx, h))
	h3, err := b.BeginDialog(ctx, sbroker.Dialog{From: "initiator", To: "target", Contract: "contract"})
	ok(err)
	ok(b.Move(ctx, h3, sbroker.GroupID{1}))
	ok(b.BeginTimer(ctx, h3, time.Microsecond))
	ok(b.EndWithError(ctx, target, 42, "it's over"))
	ended := receive("initiator", sbroker.ReceiveOptions{Group: sbroker.GroupID{1}})
	var kinds []sbroker.Kind
	for _, m := range ended {
		kinds = append(kinds, m.Kind())
		if m.Kind() == sbroker.KindError {
			info, err := m.ErrorInfo()
			if ok(err); info != (sbroker.ErrorInfo{Code: 42, Description: "it's over"}) {
				t.Errorf("error info %+v", info)
			}
		}
	}
	if !cmp.Equal(kinds, []sbroker.Kind{sbroker.KindError, sbroker.KindDialogTimer}) &&
		!cmp.Equal(kinds, []sbroker.Kind{sbroker.KindDialogTimer, sbroker.KindError}) {
		t.Errorf("received %v", kinds)
	}
	ok(b.End(ctx, h))
	ok(b.EndCleanup(ctx, h3))
	if got := receive("initiator", sbroker.ReceiveOptions{}); len(got) != 0 {
		t.Errorf("left over: %v", got)
	}

	// Operations.
	if _, err := b.Deliver(ctx, ""); err != nil {
		ok(err)
	}
	_, err = b.Deliver(ctx, "target")
	ok(err)
	ok(b.Maintain(ctx))
	ok(b.AfterRestore(ctx))
	ok(b.ErrorBrokerConversations(ctx))
	ok(b.NewBroker(ctx))
	ok(b.StartWaiting(ctx, "target"))
	ok(b.StopWaiting(ctx, "target"))

	// And away.
	ok(b.DropEventNotification(ctx, "disabled", "target", sbroker.DropOptions{}))
	ok(b.DropEventNotification(ctx, "disabled", "target", sbroker.DropOptions{IfExists: true}))
	ok(b.DropBrokerPriority(ctx, "priority", sbroker.DropOptions{}))
	ok(b.DropBrokerPriority(ctx, "priority", sbroker.DropOptions{IfExists: true}))
	ok(b.DropRoute(ctx, "route", sbroker.DropOptions{}))
	ok(b.DropRoute(ctx, "route", sbroker.DropOptions{IfExists: true}))
	ok(b.DropService(ctx, "target", sbroker.DropOptions{}))
	ok(b.DropService(ctx, "target", sbroker.DropOptions{IfExists: true}))
	ok(b.DropQueue(ctx, "target", sbroker.DropOptions{}))
	ok(b.DropQueue(ctx, "target", sbroker.DropOptions{IfExists: true}))
	ok(b.DropContract(ctx, "contract", sbroker.DropOptions{}))
	ok(b.DropContract(ctx, "contract", sbroker.DropOptions{IfExists: true}))
	ok(b.DropMessageType(ctx, "json", sbroker.DropOptions{}))
	ok(b.DropMessageType(ctx, "json", sbroker.DropOptions{IfExists: true}))
}

// What a caller gets wrong is a coded error, and the zero Handle and GroupID are none.
func TestErrorsAreCoded(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	pair := sbrokertest.NewPair(t, pool, "")
	b, ctx := pair.Broker, t.Context()
	h := pair.BeginDialog(t)
	if err := b.CreateMessageType(ctx, sbroker.MessageType{Name: "other"}); err != nil {
		t.Fatal(err)
	}
	_, unknownService := b.BeginDialog(ctx, sbroker.Dialog{From: "no such service", To: "x"})
	_, bothRelated := b.BeginDialog(ctx, sbroker.Dialog{
		From: pair.Initiator.Service, To: "x", RelatedConversation: h, RelatedGroup: sbroker.GroupID{1},
	})
	_, negativeLifetime := b.BeginDialog(ctx, sbroker.Dialog{From: pair.Initiator.Service, To: "x", Lifetime: -time.Second})
	_, unknownQueue := b.Receive(ctx, "no such queue", sbroker.ReceiveOptions{})
	_, negativeMax := b.Receive(ctx, pair.Target.Queue, sbroker.ReceiveOptions{Max: -1})
	_, unknownGroup := b.Receive(ctx, pair.Target.Queue, sbroker.ReceiveOptions{Group: sbroker.GroupID{9}})
	_, unknownHandle := b.Receive(ctx, pair.Target.Queue, sbroker.ReceiveOptions{Conversation: sbroker.Handle{9}})

	tests := map[string]struct {
		err  error
		code sbroker.Code
	}{
		"no handle":                 {b.SendEmpty(ctx, sbroker.Handle{}, "x"), sbroker.CodeHandleNull},
		"unknown handle":            {b.SendEmpty(ctx, sbroker.Handle{9}, "x"), sbroker.CodeConversationNotFound},
		"type not in contract":      {b.SendEmpty(ctx, h, "other"), sbroker.CodeMessageTypeNotInContract},
		"type unknown to send":      {b.SendEmpty(ctx, h, "x"), sbroker.CodeMessageTypeNotFound},
		"same handle twice":         {b.Multicast(ctx, []sbroker.Handle{h, h}, sbroker.DefaultMessageType, nil), sbroker.CodeDuplicateHandle},
		"no group":                  {b.Move(ctx, h, sbroker.GroupID{}), sbroker.CodeGroupNull},
		"unknown group":             {b.Move(ctx, h, sbroker.GroupID{9}), sbroker.CodeGroupNotFound},
		"error code 0":              {b.EndWithError(ctx, h, 0, "x"), sbroker.CodeErrorCodeInvalid},
		"timer of 0":                {b.BeginTimer(ctx, h, 0), sbroker.CodeInvalidArgument},
		"from an unknown service":   {unknownService, sbroker.CodeServiceNotFound},
		"two relations":             {bothRelated, sbroker.CodeInvalidArgument},
		"negative lifetime":         {negativeLifetime, sbroker.CodeLifetimeOutOfRange},
		"unknown queue":             {unknownQueue, sbroker.CodeQueueNotFound},
		"negative max":              {negativeMax, sbroker.CodeInvalidArgument},
		"receive an unknown group":  {unknownGroup, sbroker.CodeGroupNotFound},
		"receive an unknown handle": {unknownHandle, sbroker.CodeConversationNotFound},
		"queue in use":              {b.DropQueue(ctx, pair.Target.Queue, sbroker.DropOptions{IfExists: true}), sbroker.CodeObjectInUse},
		"queue exists":              {b.CreateQueue(ctx, sbroker.Queue{Name: pair.Target.Queue}), sbroker.CodeDuplicateObject},
		"empty name":                {b.CreateQueue(ctx, sbroker.Queue{}), sbroker.CodeInvalidName},
		"long name":                 {b.CreateQueue(ctx, sbroker.Queue{Name: sbroker.QueueName(strings.Repeat("x", 129))}), sbroker.CodeInvalidName},
		"unknown message type":      {b.DropMessageType(ctx, "x", sbroker.DropOptions{}), sbroker.CodeUndefinedObject},
	}
	for name, tt := range tests {
		if !errors.Is(tt.err, tt.code) {
			t.Errorf("%s: got %v, want %s", name, tt.err, string(tt.code))
		}
		e, ok := errors.AsType[*sbroker.Error](tt.err)
		if ok && (e.Message == "" || e.Op == "" || e.Code.SQLServerNumber() == 0 && e.Code[0] == 'S' && e.Code[1] != 'B') {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// The kind of a message does not depend on how the system types are called.
func TestKindsUnderBothSystemNames(t *testing.T) {
	t.Parallel()
	for _, names := range []string{"documented", "sqlserver"} {
		t.Run(names, func(t *testing.T) {
			t.Parallel()
			pair := sbrokertest.NewPair(t, pgtest.New(t).Pool(t), "")
			b, ctx := pair.Broker, t.Context()
			if err := b.SetOption(ctx, sbroker.OptionSystemNames, names); err != nil {
				t.Fatal(err)
			}
			for _, end := range []func(h sbroker.Handle) error{
				func(h sbroker.Handle) error { return b.End(ctx, h) },
				func(h sbroker.Handle) error { return b.EndWithError(ctx, h, 1, "no") },
				func(h sbroker.Handle) error { return nil },
			} {
				h := pair.BeginDialog(t)
				if err := b.SendText(ctx, h, sbroker.DefaultMessageType, "x"); err != nil {
					t.Fatal(err)
				}
				target := sbrokertest.Drain(t, b, pair.Target.Queue)[0].Conversation
				if err := end(target); err != nil {
					t.Fatal(err)
				}
			}
			h := pair.BeginDialog(t)
			if err := b.BeginTimer(ctx, h, time.Microsecond); err != nil {
				t.Fatal(err)
			}
			got := map[sbroker.Kind]string{}
			for _, m := range sbrokertest.Drain(t, b, pair.Initiator.Queue) {
				got[m.Kind()] = string(m.Type)
				if info, err := m.ErrorInfo(); (err == nil) != (m.Kind() == sbroker.KindError) {
					t.Errorf("%v: %v, %v", m.Kind(), info, err)
				}
			}
			scheme := map[string]string{"documented": "https", "sqlserver": "http"}[names]
			base := scheme + "://schemas.microsoft.com/SQL/ServiceBroker/"
			want := map[sbroker.Kind]string{
				sbroker.KindEndDialog: base + "EndDialog", sbroker.KindError: base + "Error", sbroker.KindDialogTimer: base + "DialogTimer",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A state that does not fit the type is an error that says that there is one.
func TestStateOfAnotherType(t *testing.T) {
	t.Parallel()
	pair := sbrokertest.NewPair(t, pgtest.New(t).Pool(t), "")
	b, ctx := pair.Broker, t.Context()
	group := sbroker.GroupID{7}
	_, err := b.BeginDialog(ctx, sbroker.Dialog{From: pair.Initiator.Service, To: "x", RelatedGroup: group})
	if err != nil {
		t.Fatal(err)
	}
	if err := sbroker.StateOf[string](b).Set(ctx, group, "text"); err != nil {
		t.Fatal(err)
	}
	if _, found, err := sbroker.StateOf[int](b).Get(ctx, group); err == nil || !found {
		t.Errorf("got %v, %v", found, err)
	}
	if err := sbroker.StateOf[chan int](b).Set(ctx, group, nil); err == nil {
		t.Error("a channel is a state")
	}
	if err := b.SendJSON(ctx, sbroker.Handle{1}, "x", func() {}); err == nil {
		t.Error("a function is a body")
	}
}
