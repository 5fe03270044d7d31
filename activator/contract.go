package activator

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/pgsbroker/sbroker/sbroker"
)

// protocolVersion grows with changes that an existing handler would not understand.
const protocolVersion = 1

// request is what a handler in another process gets: one batch.
type request struct {
	Protocol int               `json:"protocol"`
	Queue    sbroker.QueueName `json:"queue"`
	Group    sbroker.GroupID   `json:"conversation_group_id"`
	State    json.RawMessage   `json:"state"` // null when there is none
	Messages []requestMessage  `json:"messages"`
}

// requestMessage is one message. A body that is text is Body, any other is BodyBase64; both are absent, and Body null,
// where there is none.
type requestMessage struct {
	Conversation   sbroker.Handle          `json:"conversation_handle"`
	Type           sbroker.MessageTypeName `json:"message_type_name"`
	SequenceNumber int64                   `json:"message_sequence_number"`
	Service        sbroker.ServiceName     `json:"service_name"`
	Contract       sbroker.ContractName    `json:"service_contract_name"`
	Body           json.RawMessage         `json:"message_body,omitempty"`
	BodyBase64     string                  `json:"message_body_base64,omitempty"`
}

// encodeRequest makes one line, with its end, of a batch and the state of its group.
func encodeRequest(b *Batch, state json.RawMessage) ([]byte, error) {
	r := request{Protocol: protocolVersion, Queue: b.Queue, Group: b.Group, State: state}
	for _, m := range b.Messages {
		message := requestMessage{
			Conversation: m.Conversation, Type: m.Type, SequenceNumber: m.SequenceNumber,
			Service: m.Service, Contract: m.Contract,
		}
		switch {
		case m.Body == nil:
			message.Body = json.RawMessage("null")
		case utf8.Valid(m.Body) && bytes.IndexByte(m.Body, 0) < 0: // what sb.send takes as text
			text, err := encodeJSON(string(m.Body))
			if err != nil {
				return nil, err
			}
			message.Body = bytes.TrimSuffix(text, []byte("\n"))
		default:
			message.BodyBase64 = base64.StdEncoding.EncodeToString(m.Body)
		}
		r.Messages = append(r.Messages, message)
	}
	return encodeJSON(r)
}

// encodeJSON leaves < and & as they are.
func encodeJSON(v any) ([]byte, error) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return line.Bytes(), err
}

// answer is what comes back, fully checked.
type answer struct {
	state   json.RawMessage // nil: unchanged; null: removed
	actions []action
}

// action is one of an answer's actions. It finds the dialogs begun by earlier ones in begun, and adds its own.
type action struct {
	name string // such as actions[2].send, for errors
	do   func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error
}

// decodeAnswer reads an answer and refuses everything that it does not understand entirely, before any of it is
// carried out.
func decodeAnswer(data []byte) (answer, error) {
	if !utf8.Valid(data) {
		return answer{}, errors.New("not UTF-8")
	}
	o, err := decodeObject("", data, "state", "actions")
	if err != nil {
		return answer{}, err
	}
	a := answer{state: o.fields["state"]}
	list, present := o.fields["actions"]
	if !present {
		return a, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(list, &items); err != nil || items == nil {
		return answer{}, fmt.Errorf("actions: want an array, got %s", kindOf(list))
	}
	begun := map[string]bool{}
	for i, item := range items {
		next, err := decodeAction(fmt.Sprintf("actions[%d]", i), item, begun)
		if err != nil {
			return answer{}, err
		}
		a.actions = append(a.actions, next)
	}
	return a, nil
}

// verbs say for each action what it may hold and how it is read.
var verbs = map[string]struct {
	keys   []string
	decode func(o *object) func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error
}{
	"begin_dialog": {
		[]string{
			"as", "from_service", "to_service", "on_contract", "related_conversation", "related_conversation_group",
			"lifetime_seconds",
		}, decodeBegin,
	},
	"send":  {[]string{"conversation_handle", "message_type", "message_body", "message_body_base64"}, decodeSend},
	"end":   {[]string{"conversation_handle", "error_code", "error_description"}, decodeEnd},
	"timer": {[]string{"conversation_handle", "timeout_seconds"}, decodeTimer},
	"move":  {[]string{"conversation_handle", "conversation_group_id"}, decodeMove},
}

// decodeAction reads {"verb":{…}}. begun holds the names of dialogs begun before.
func decodeAction(path string, data []byte, begun map[string]bool) (action, error) {
	o, err := decodeObject(path, data, slices.Sorted(maps.Keys(verbs))...)
	if err != nil {
		return action{}, err
	}
	if len(o.fields) != 1 {
		return action{}, fmt.Errorf("%s: %d actions in one object, want exactly one", path, len(o.fields))
	}
	for name, content := range o.fields {
		path := path + "." + name
		o, err := decodeObject(path, content, verbs[name].keys...)
		if err != nil {
			return action{}, err
		}
		o.begun = begun
		do := verbs[name].decode(o)
		return action{name: path, do: do}, o.err
	}
	panic("unreachable")
}

func decodeBegin(o *object) func(context.Context, *sbroker.Broker, map[string]sbroker.Handle) error {
	d := sbroker.Dialog{
		From: sbroker.ServiceName(o.text("from_service", true)), To: sbroker.ServiceName(o.text("to_service", true)),
		Contract: sbroker.ContractName(o.text("on_contract", false)), Lifetime: o.seconds("lifetime_seconds", false),
	}
	related := o.handle("related_conversation", false)
	if _, present := o.fields["related_conversation_group"]; present {
		d.RelatedGroup = o.group("related_conversation_group")
	}
	as := o.text("as", false)
	switch _, present := o.fields["as"]; {
	case !present:
	case as == "":
		o.fail("as", "is empty")
	case o.begun[as]:
		o.fail("as", fmt.Sprintf("%q names another dialog of this answer", as))
	default:
		o.begun[as] = true
	}
	return func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error {
		d.RelatedConversation = related.in(begun)
		h, err := b.BeginDialog(ctx, d)
		if as != "" {
			begun[as] = h
		}
		return err
	}
}

func decodeSend(o *object) func(context.Context, *sbroker.Broker, map[string]sbroker.Handle) error {
	h := o.handle("conversation_handle", true)
	messageType := sbroker.MessageTypeName(o.text("message_type", false))
	if messageType == "" && o.fields["message_type"] == nil {
		messageType = sbroker.DefaultMessageType
	}
	plain, encoded := o.fields["message_body"], o.fields["message_body_base64"]
	if isNull(plain) {
		plain = nil // as in a request
	}
	switch {
	case plain != nil && encoded != nil:
		o.fail("message_body", "and message_body_base64 exclude each other")
	case encoded != nil:
		body, err := base64.StdEncoding.DecodeString(o.text("message_body_base64", true))
		if err != nil && o.err == nil {
			o.fail("message_body_base64", "is not base64")
		}
		return func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error {
			return b.Send(ctx, h.in(begun), messageType, body)
		}
	case plain == nil:
		return func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error {
			return b.SendEmpty(ctx, h.in(begun), messageType)
		}
	case plain[0] == '"':
		body := o.text("message_body", true)
		if strings.ContainsRune(body, 0) {
			o.fail("message_body", "holds U+0000, which no text in PostgreSQL can: use message_body_base64")
		}
		return func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error {
			return b.SendText(ctx, h.in(begun), messageType, body)
		}
	}
	return func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error {
		return sendJSONB(ctx, b, h.in(begun), messageType, plain)
	}
}

// sendJSONB sends what the server makes of the JSON, as sb.send(…, jsonb) does for everybody.
func sendJSONB(ctx context.Context, b *sbroker.Broker, h sbroker.Handle, t sbroker.MessageTypeName, body json.RawMessage) error {
	_, err := b.DB().Exec(ctx, `
select sb.send(
  conversation_handle => @conversation_handle::uuid,
  message_type => @message_type::text,
  message_body => @message_body::text::jsonb)`,
		pgx.StrictNamedArgs{"conversation_handle": h, "message_type": string(t), "message_body": string(body)})
	return err
}

func decodeEnd(o *object) func(context.Context, *sbroker.Broker, map[string]sbroker.Handle) error {
	h := o.handle("conversation_handle", true)
	_, hasCode := o.fields["error_code"]
	_, hasDescription := o.fields["error_description"]
	if !hasCode && !hasDescription {
		return func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error {
			return b.End(ctx, h.in(begun))
		}
	}
	code, description := o.number("error_code", true), o.text("error_description", true)
	if o.err == nil && (code != math.Trunc(code) || code < 1 || code > math.MaxInt32) {
		o.fail("error_code", "is not a positive integer")
	}
	return func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error {
		return b.EndWithError(ctx, h.in(begun), int32(code), description)
	}
}

func decodeTimer(o *object) func(context.Context, *sbroker.Broker, map[string]sbroker.Handle) error {
	h, timeout := o.handle("conversation_handle", true), o.seconds("timeout_seconds", true)
	return func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error {
		return b.BeginTimer(ctx, h.in(begun), timeout)
	}
}

func decodeMove(o *object) func(context.Context, *sbroker.Broker, map[string]sbroker.Handle) error {
	h, group := o.handle("conversation_handle", true), o.group("conversation_group_id")
	return func(ctx context.Context, b *sbroker.Broker, begun map[string]sbroker.Handle) error {
		return b.Move(ctx, h.in(begun), group)
	}
}

// apply carries an answer out, within the batch's transaction: first the state, for an action may end the group's
// last conversation and the state with it, then the actions in their order.
func apply(ctx context.Context, b *Batch, a answer) error {
	if a.state != nil {
		if err := StateOf[json.RawMessage](b).Set(ctx, a.state); err != nil {
			return fmt.Errorf("state: %w", err)
		}
	}
	begun := map[string]sbroker.Handle{}
	for _, action := range a.actions {
		if err := action.do(ctx, b.Broker, begun); err != nil {
			return fmt.Errorf("%s: %w", action.name, err)
		}
	}
	return nil
}

// reference is a handle, or the name of a dialog begun by an earlier action.
type reference struct {
	handle sbroker.Handle
	name   string
}

func (r reference) in(begun map[string]sbroker.Handle) sbroker.Handle {
	if r.name != "" {
		return begun[r.name]
	}
	return r.handle
}

// object is a JSON object on its way to become something better. The methods read a key; what is missing though
// required, or not of the kind, is put into err, the first one counts.
type object struct {
	path   string
	fields map[string]json.RawMessage
	begun  map[string]bool // dialogs that references may name
	err    error
}

// decodeObject reads an object that has no other keys than those, each at most once.
func decodeObject(path string, data []byte, keys ...string) (*object, error) {
	o := &object{path: path, fields: map[string]json.RawMessage{}}
	decoder := json.NewDecoder(bytes.NewReader(data))
	first, err := decoder.Token()
	if err == nil && first != json.Delim('{') {
		return nil, o.errorf("", "want an object, got %s", kindOf(data))
	}
	for err == nil && decoder.More() {
		var (
			key   json.Token
			value json.RawMessage
		)
		if key, err = decoder.Token(); err != nil {
			break
		}
		name := key.(string) // or the decoder had complained
		if err = decoder.Decode(&value); err != nil {
			break
		}
		if !slices.Contains(keys, name) {
			return nil, o.errorf("", "unknown key %q, it may have %s", name, strings.Join(keys, ", "))
		}
		if _, twice := o.fields[name]; twice {
			return nil, o.errorf("", "key %q twice", name)
		}
		o.fields[name] = value
	}
	if err == nil {
		_, err = decoder.Token() // the closing brace
	}
	if err == nil {
		if _, err = decoder.Token(); err == nil {
			err = errors.New("something follows the object")
		} else if errors.Is(err, io.EOF) {
			return o, nil
		}
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, o.errorf("", "not JSON: %w", err)
}

func (o *object) errorf(key, format string, args ...any) error {
	path := strings.Trim(o.path+"."+key, ".")
	if path == "" {
		return fmt.Errorf(format, args...)
	}
	return fmt.Errorf(path+": "+format, args...)
}

func (o *object) fail(key, what string) {
	if o.err == nil {
		o.err = o.errorf(key, "%s", what)
	}
}

// get decodes the value of a key into v, which is what the text says. Null is not.
func (o *object) get(key string, required bool, want string, v any) (present bool) {
	value, present := o.fields[key]
	switch {
	case !present && required:
		o.fail(key, "is missing")
	case present && (isNull(value) || json.Unmarshal(value, v) != nil):
		o.fail(key, fmt.Sprintf("want %s, got %s", want, kindOf(value)))
		return false
	}
	return present
}

func (o *object) text(key string, required bool) (s string) {
	if o.get(key, required, "a string", &s) {
		// The decoder makes U+FFFD of half a surrogate pair.
		raw := string(o.fields[key])
		escaped := strings.Count(strings.ToLower(raw), `\ufffd`)
		if n := strings.Count(s, "\uFFFD"); n > strings.Count(raw, "\uFFFD")+escaped {
			o.fail(key, "holds half a surrogate pair, which is no character")
		}
	}
	return s
}

func (o *object) number(key string, required bool) (n float64) {
	o.get(key, required, "a number", &n)
	return n
}

// seconds reads a time greater than 0.
func (o *object) seconds(key string, required bool) time.Duration {
	n := o.number(key, required)
	if _, present := o.fields[key]; !present || o.err != nil {
		return 0
	}
	if n < 1e-6 || n > math.MaxInt32 {
		o.fail(key, "is not greater than 0 and at most 2147483647 seconds")
		return 0
	}
	return time.Duration(n * float64(time.Second))
}

func (o *object) group(key string) (g sbroker.GroupID) {
	var s string
	if o.get(key, true, "a UUID", &s) {
		var err error
		if g, err = sbroker.ParseGroupID(s); err != nil || g.IsZero() {
			o.fail(key, "is not a UUID")
		}
	}
	return g
}

// handle reads a conversation handle, or the name of a dialog begun before with $ in front.
func (o *object) handle(key string, required bool) (r reference) {
	var s string
	if !o.get(key, required, "a UUID or $name", &s) {
		return r
	}
	if name, ok := strings.CutPrefix(s, "$"); ok {
		if !o.begun[name] {
			o.fail(key, fmt.Sprintf("no earlier action has begun a dialog as %q", name))
		}
		return reference{name: name}
	}
	h, err := sbroker.ParseHandle(s)
	if err != nil || h.IsZero() {
		o.fail(key, "is neither a UUID nor $ and the name of a dialog begun before")
	}
	return reference{handle: h}
}

func isNull(value json.RawMessage) bool { return string(value) == "null" }

// kindOf says what a JSON value is, without showing it: it may be somebody's data.
func kindOf(value []byte) string {
	value = bytes.TrimLeft(value, " \t\r\n")
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	default:
		return "a number"
	}
}
