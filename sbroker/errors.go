package sbroker

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Error makes a Code a sentinel: errors.Is(err, sbroker.CodeQueueDisabled).
func (c Code) Error() string { return "SQLSTATE " + string(c) }

// Error is what every method of this package returns when it fails. It wraps the cause, so that
// errors.As still reaches *pgconn.PgError, and errors.Is context.Canceled.
type Error struct {
	// Op is the verb that failed, by its SQL name.
	Op string
	// Code is the SQLSTATE; empty when the server raised nothing (connection lost, ctx ended).
	Code Code
	// Message is one sentence that names the object. Show it, never inspect it.
	Message string
	// Detail is key=value pairs; may be empty.
	Detail string
	// Hint says what to do next; may be empty.
	Hint string

	err error
}

// Error returns operation, message and code.
func (e *Error) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("sbroker: %s: %s", e.Op, e.Message)
	}
	return fmt.Sprintf("sbroker: %s: %s (SQLSTATE %s)", e.Op, e.Message, string(e.Code))
}

// Unwrap returns the error of pgx.
func (e *Error) Unwrap() error { return e.err }

// Is reports whether target is this error's Code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c != "" && c == e.Code
}

// opError puts err, as pgx returned it, into an *Error.
func opError(op string, err error) error {
	if err == nil {
		return nil
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return &Error{
			Op: op, Code: Code(pgErr.Code),
			Message: pgErr.Message, Detail: pgErr.Detail, Hint: pgErr.Hint, err: err,
		}
	}
	return &Error{Op: op, Message: err.Error(), err: err}
}

// ErrCommitUnknown is what RunTx returns (wrapped) when the connection broke during COMMIT: the
// transaction may have happened or not. It is never retried.
var ErrCommitUnknown = errors.New("the outcome of the commit is unknown")

// IsRetryable reports whether the failed transaction left nothing behind and may well succeed when it is
// run again from its beginning: serialization failure, deadlock, lost or refused connection. Errors that
// neither carry an SQLSTATE nor come from the connection, and those of an ended context, are not
// retryable. Of a single call outside a transaction a lost connection does not tell that it did nothing.
func IsRetryable(err error) bool {
	for _, never := range []error{ErrCommitUnknown, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, never) {
			return false
		}
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pgErr.Code {
		case "40001", "40P01", // serialization failure, deadlock
			"53300",                   // too many connections
			"57P01", "57P02", "57P03", // shutdown by an administrator, after a crash; starting up
			"57P05": // idle session timeout
			return true
		}
		return strings.HasPrefix(pgErr.Code, "08") // connection exception
	}
	return isConnectionError(err)
}

// isConnectionError recognises the errors of a lost connection that pgx passes on as they come. Bare
// network errors count only inside an *Error, because a caller's own HTTP request fails with the same
// types.
func isConnectionError(err error) bool {
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err) {
		return true
	}
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	_, isNet := errors.AsType[net.Error](e.err)
	return isNet || errors.Is(e.err, io.ErrUnexpectedEOF) || errors.Is(e.err, io.EOF)
}

// ErrorInfo is the content of an Error message (KindError). It is an error, so that a handler can return
// it.
type ErrorInfo struct {
	// Code is positive when the peer gave it (EndWithError) and negative when the broker did: the negated
	// SQL Server error number, -8489 for a lifetime that has passed.
	Code int32
	// Description is readable text.
	Description string
}

// Error returns description and code.
func (e ErrorInfo) Error() string {
	return fmt.Sprintf("conversation error %d: %s", e.Code, e.Description)
}

// ByBroker reports whether the broker itself raised the error.
func (e ErrorInfo) ByBroker() bool { return e.Code < 0 }

// DecodeErrorBody reads the body of an Error message, in any of the namespaces in use and with a
// Description or a Message element. It fails on anything else.
func DecodeErrorBody(body []byte) (ErrorInfo, error) {
	var doc struct {
		XMLName     xml.Name `xml:"Error"`
		Code        string   `xml:"Code"`
		Description *string  `xml:"Description"`
		Message     string   `xml:"Message"`
	}
	if err := xml.Unmarshal(body, &doc); err != nil {
		return ErrorInfo{}, fmt.Errorf("sbroker: not the body of an Error message: %w", err)
	}
	code, err := strconv.ParseInt(strings.TrimSpace(doc.Code), 10, 32)
	if err != nil {
		return ErrorInfo{}, fmt.Errorf("sbroker: code of an Error message: %w", err)
	}
	info := ErrorInfo{Code: int32(code), Description: doc.Message}
	if doc.Description != nil {
		info.Description = *doc.Description
	}
	return info, nil
}
