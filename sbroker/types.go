package sbroker

import (
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
)

// Names of broker objects. They are compared byte for byte; no schema prefix is parsed out of them.
// Untyped constants convert by themselves, so that b.Receive(ctx, "ExpenseQueue", …) compiles, while
// passing a service where a queue is meant does not.
type (
	// QueueName names a queue.
	QueueName string
	// ServiceName names a service.
	ServiceName string
	// ContractName names a contract.
	ContractName string
	// MessageTypeName names a message type.
	MessageTypeName string
)

// Built-in names that every database has.
const (
	// DefaultContract lets both sides send DefaultMessageType.
	DefaultContract ContractName = "DEFAULT"
	// DefaultMessageType accepts any body.
	DefaultMessageType MessageTypeName = "DEFAULT"
)

// Handle names one side of a dialog. The two sides have different handles. The zero Handle means "none"
// and travels as NULL, in both directions. Convert from and to any [16]byte-based UUID type.
type Handle [16]byte

// ParseHandle reads the form that String writes; hexadecimal digits may be capitals.
func ParseHandle(s string) (Handle, error) {
	b, err := parseUUID(s)
	return Handle(b), err
}

// String returns the 36 characters of PostgreSQL's uuid output.
func (h Handle) String() string { return formatUUID(h) }

// IsZero reports whether h is no handle at all.
func (h Handle) IsZero() bool { return h == Handle{} }

// MarshalText implements encoding.TextMarshaler, and with it JSON strings and keys.
func (h Handle) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (h *Handle) UnmarshalText(text []byte) (err error) {
	*h, err = ParseHandle(string(text))
	return err
}

// Value implements driver.Valuer; the zero Handle is NULL.
func (h Handle) Value() (driver.Value, error) { return valueUUID(h) }

// Scan implements sql.Scanner; NULL is the zero Handle.
func (h *Handle) Scan(src any) (err error) { return scanUUID((*[16]byte)(h), src) }

// UUIDValue lets pgx send the handle in binary. It is the one place, with ScanUUID, where a type of
// pgtype shows: pgx looks for these methods by name.
func (h Handle) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: h, Valid: !h.IsZero()}, nil
}

// ScanUUID lets pgx read the handle in binary.
func (h *Handle) ScanUUID(v pgtype.UUID) error {
	*h = Handle(v.Bytes) // all zero when v is NULL
	return nil
}

// GroupID names a conversation group: what one reader at a time holds, and the key of its state. The
// zero GroupID means "none" and travels as NULL, in both directions.
type GroupID [16]byte

// ParseGroupID reads the form that String writes; hexadecimal digits may be capitals.
func ParseGroupID(s string) (GroupID, error) {
	b, err := parseUUID(s)
	return GroupID(b), err
}

// String returns the 36 characters of PostgreSQL's uuid output.
func (g GroupID) String() string { return formatUUID(g) }

// IsZero reports whether g is no group at all.
func (g GroupID) IsZero() bool { return g == GroupID{} }

// MarshalText implements encoding.TextMarshaler, and with it JSON strings and keys.
func (g GroupID) MarshalText() ([]byte, error) { return []byte(g.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (g *GroupID) UnmarshalText(text []byte) (err error) {
	*g, err = ParseGroupID(string(text))
	return err
}

// Value implements driver.Valuer; the zero GroupID is NULL.
func (g GroupID) Value() (driver.Value, error) { return valueUUID(g) }

// Scan implements sql.Scanner; NULL is the zero GroupID.
func (g *GroupID) Scan(src any) (err error) { return scanUUID((*[16]byte)(g), src) }

// UUIDValue lets pgx send the id in binary; see Handle.UUIDValue.
func (g GroupID) UUIDValue() (pgtype.UUID, error) {
	return pgtype.UUID{Bytes: g, Valid: !g.IsZero()}, nil
}

// ScanUUID lets pgx read the id in binary.
func (g *GroupID) ScanUUID(v pgtype.UUID) error {
	*g = GroupID(v.Bytes)
	return nil
}

func formatUUID(b [16]byte) string {
	var s [36]byte
	hex.Encode(s[0:8], b[0:4])
	s[8] = '-'
	hex.Encode(s[9:13], b[4:6])
	s[13] = '-'
	hex.Encode(s[14:18], b[6:8])
	s[18] = '-'
	hex.Encode(s[19:23], b[8:10])
	s[23] = '-'
	hex.Encode(s[24:36], b[10:16])
	return string(s[:])
}

func parseUUID(s string) (b [16]byte, err error) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return b, fmt.Errorf("sbroker: %q is not a UUID", s)
	}
	digits := s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36]
	if _, err := hex.Decode(b[:], []byte(digits)); err != nil {
		return [16]byte{}, fmt.Errorf("sbroker: %q is not a UUID", s)
	}
	return b, nil
}

func valueUUID(b [16]byte) (driver.Value, error) {
	if b == [16]byte{} {
		return nil, nil
	}
	return formatUUID(b), nil
}

func scanUUID(dst *[16]byte, src any) (err error) {
	switch v := src.(type) {
	case nil:
		*dst = [16]byte{}
	case string:
		*dst, err = parseUUID(v)
	case []byte:
		if len(v) == 16 {
			*dst = [16]byte(v)
		} else {
			*dst, err = parseUUID(string(v))
		}
	case [16]byte:
		*dst = v
	default:
		return fmt.Errorf("sbroker: cannot scan %T as a UUID", src)
	}
	return err
}

// Kind tells what a message is for the broker, whatever name the system types have in this database.
type Kind int

// The kinds of messages. A handler deals with all four: it ends the conversation on KindEndDialog and
// KindError, and meets KindDialogTimer when it begins timers.
const (
	// KindApplication is a message that the peer has sent.
	KindApplication Kind = iota
	// KindEndDialog says that the peer has ended the dialog and that all it sent has arrived before.
	KindEndDialog
	// KindError says that the dialog is broken: the peer, the broker or the lifetime ended it. See
	// Message.ErrorInfo.
	KindError
	// KindDialogTimer says that the timer begun on this side is due.
	KindDialogTimer
)

// String returns the name of the kind.
func (k Kind) String() string {
	switch k {
	case KindApplication:
		return "Application"
	case KindEndDialog:
		return "EndDialog"
	case KindError:
		return "Error"
	case KindDialogTimer:
		return "DialogTimer"
	default:
		return fmt.Sprintf("Kind(%d)", int(k))
	}
}

// Message is one row of receive.
type Message struct {
	Status         int16 // 0 in what receive returns
	Priority       int16
	QueuingOrder   int64
	Group          GroupID
	Conversation   Handle
	SequenceNumber int64 // counted per sending side from 0; -1 for KindError and KindDialogTimer
	Service        ServiceName
	ServiceID      int32
	Contract       ContractName
	ContractID     int32
	Type           MessageTypeName
	TypeID         int32
	Validation     string // of Type: N none, E empty, X XML, J JSON
	Body           []byte // nil when there is none
	EnqueuedAt     time.Time
}

// Ids of the system message types, the same in every database: the names differ with option system_names.
const (
	typeIDError       = 1
	typeIDEndDialog   = 2
	typeIDDialogTimer = 5
)

// Kind tells system messages from those of the application.
func (m Message) Kind() Kind {
	switch m.TypeID {
	case typeIDError:
		return KindError
	case typeIDEndDialog:
		return KindEndDialog
	case typeIDDialogTimer:
		return KindDialogTimer
	default:
		return KindApplication
	}
}

// Text returns the body as a string, as SendText and sb.send(…, text) store it.
func (m Message) Text() string { return string(m.Body) }

// JSON decodes the body into v, as SendJSON and sb.send(…, jsonb) store it. A message without a body is an
// error.
func (m Message) JSON(v any) error {
	if err := json.Unmarshal(m.Body, v); err != nil {
		return fmt.Errorf("sbroker: body of %s message %d of conversation %s: %w",
			m.Type, m.SequenceNumber, m.Conversation, err)
	}
	return nil
}

// ErrorInfo decodes the body of a KindError message.
func (m Message) ErrorInfo() (ErrorInfo, error) { return DecodeErrorBody(m.Body) }
