package sbroker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestErrorReachesCodeAndCause(t *testing.T) {
	t.Parallel()
	pgErr := &pgconn.PgError{
		Severity: "ERROR", Code: "S9617", Message: `queue "Q" is disabled`, Detail: "queue_name=Q", Hint: "enable it",
	}
	err := fmt.Errorf("handler: %w", opError("receive", pgErr))

	if !errors.Is(err, CodeQueueDisabled) {
		t.Error("errors.Is does not find the code")
	}
	if errors.Is(err, CodeQueueNotFound) {
		t.Error("errors.Is finds another code")
	}
	got, ok := errors.AsType[*Error](err)
	if !ok || got.Op != "receive" || got.Message != pgErr.Message || got.Detail != pgErr.Detail || got.Hint != pgErr.Hint {
		t.Errorf("got %+v", got)
	}
	if cause, ok := errors.AsType[*pgconn.PgError](err); !ok || cause != pgErr {
		t.Error("errors.As does not reach the error of pgx")
	}
	if want := `sbroker: receive: queue "Q" is disabled (SQLSTATE S9617)`; got.Error() != want {
		t.Errorf("Error() = %q, want %q", got.Error(), want)
	}
	if got.Code.SQLServerNumber() != 9617 {
		t.Errorf("SQLServerNumber() = %d", got.Code.SQLServerNumber())
	}

	lost := opError("send", io.ErrUnexpectedEOF)
	if errors.Is(lost, Code("")) || !errors.Is(lost, io.ErrUnexpectedEOF) {
		t.Errorf("error without code: %v", lost)
	}
	if opError("send", nil) != nil {
		t.Error("no error became one")
	}
}

func TestIsRetryable(t *testing.T) {
	t.Parallel()
	pg := func(code string) error { return &pgconn.PgError{Code: code, Severity: "ERROR"} }
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	tests := map[string]struct {
		err  error
		want bool
	}{
		"nil":                        {nil, false},
		"serialization failure":      {pg("40001"), true},
		"deadlock in a wrapped op":   {fmt.Errorf("x: %w", opError("send", pg("40P01"))), true},
		"completion unknown":         {pg("40003"), false},
		"connection failure":         {pg("08006"), true},
		"administrator shutdown":     {pg("57P01"), true},
		"starting up":                {pg("57P03"), true},
		"too many connections":       {pg("53300"), true},
		"query canceled":             {pg("57014"), false},
		"unique violation":           {pg("23505"), false},
		"queue disabled":             {opError("receive", pg("S9617")), false},
		"closed connection":          {pgconn.ErrConnClosed, true},
		"refused dial":               {opError("begin", refused), true},
		"refused dial of the caller": {refused, false},
		"EOF in an op":               {opError("send", io.ErrUnexpectedEOF), true},
		"EOF of the caller":          {io.ErrUnexpectedEOF, false},
		"context canceled":           {opError("send", context.Canceled), false},
		"deadline on a closed conn":  {fmt.Errorf("%w: %w", pgconn.ErrConnClosed, context.DeadlineExceeded), false},
		"unknown commit":             {opError("commit", fmt.Errorf("%w: %w", ErrCommitUnknown, io.ErrUnexpectedEOF)), false},
		"unknown commit, shutdown":   {opError("commit", fmt.Errorf("%w: %w", ErrCommitUnknown, pg("57P01"))), false},
		"anything else":              {errors.New("no"), false},
	}
	for name, tt := range tests {
		if got := IsRetryable(tt.err); got != tt.want {
			t.Errorf("%s: IsRetryable(%v) = %v, want %v", name, tt.err, got, tt.want)
		}
	}
}

func TestDecodeErrorBody(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		want ErrorInfo
		ok   bool
	}{
		"documented namespace": {
			`<?xml version="1.0"?><Error xmlns="https://schemas.microsoft.com/SQL/ServiceBroker"><Code>-8489</Code><Description>too late</Description></Error>`,
			ErrorInfo{-8489, "too late"},
			true,
		},
		"sqlserver namespace": {
			`<?xml version="1.0"?><Error xmlns="http://schemas.microsoft.com/SQL/ServiceBroker/Error"><Code>100</Code><Description>a &lt;b&gt; &amp; c</Description></Error>`,
			ErrorInfo{100, "a <b> & c"},
			true,
		},
		"message element":   {`<Error><Code> 5 </Code><Message>m</Message></Error>`, ErrorInfo{5, "m"}, true},
		"no description":    {`<Error><Code>5</Code></Error>`, ErrorInfo{Code: 5}, true},
		"byte order mark":   {"\ufeff<Error><Code>5</Code></Error>", ErrorInfo{Code: 5}, true},
		"another document":  {`<Fault><Code>5</Code></Fault>`, ErrorInfo{}, false},
		"no code":           {`<Error><Description>x</Description></Error>`, ErrorInfo{}, false},
		"code out of range": {`<Error><Code>2147483648</Code></Error>`, ErrorInfo{}, false},
		"not XML":           {`Error 5`, ErrorInfo{}, false},
		"nothing":           {``, ErrorInfo{}, false},
		"cut off":           {`<Error><Code>5</Code>`, ErrorInfo{}, false},
		"an entity bomb":    {`<!DOCTYPE Error [<!ENTITY a "b">]><Error><Code>5</Code><Description>&a;</Description></Error>`, ErrorInfo{}, false},
	}
	for name, tt := range tests {
		got, err := DecodeErrorBody([]byte(tt.body))
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	if !(ErrorInfo{Code: -1}).ByBroker() || (ErrorInfo{Code: 1}).ByBroker() {
		t.Error("ByBroker is wrong")
	}
}

func FuzzDecodeErrorBody(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><Error xmlns="https://schemas.microsoft.com/SQL/ServiceBroker"><Code>-8489</Code><Description>x</Description></Error>`))
	f.Add([]byte(`<Error><Code>5</Code><Message>m</Message></Error>`))
	f.Add([]byte("\xff\xfe<\x00E\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		info, err := DecodeErrorBody(body)
		if err != nil && info != (ErrorInfo{}) {
			t.Errorf("%v with %+v", err, info)
		}
	})
}
