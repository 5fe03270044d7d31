package activator_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pgsbroker/sbroker/activator"
	"github.com/pgsbroker/sbroker/sbroker"
)

const someHandle = `"0191e0c4-7d7e-7c3a-8a53-0242ac120002"`

func TestDecodeAnswer(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{}`:                         "nil: ",
		" {\"actions\" : [ ] }\r\n":  "nil: ",
		`{"state":null}`:             "null: ",
		`{"state": {"n": 1.0e400} }`: `{"n": 1.0e400}: `,
		`{"actions":[{"end":{"conversation_handle":` + someHandle + `}}]}`:                                                    "nil: actions[0].end",
		`{"actions":[{"end":{"conversation_handle":` + someHandle + `,"error_code":1,"error_description":""}}]}`:              "nil: actions[0].end",
		`{"actions":[{"begin_dialog":{"from_service":"a","to_service":"b"}}]}`:                                                "nil: actions[0].begin_dialog",
		`{"actions":[{"send":{"conversation_handle":` + someHandle + `,"message_body":"�","message_type":"t"}}]}`:             "nil: actions[0].send",
		`{"actions":[{"send":{"conversation_handle":` + someHandle + `,"message_body":"\ufffd\ud83d\ude00"}}]}`:               "nil: actions[0].send",
		`{"actions":[{"timer":{"conversation_handle":` + someHandle + `,"timeout_seconds":0.5}}]}`:                            "nil: actions[0].timer",
		`{"actions":[{"move":{"conversation_handle":` + someHandle + `,"conversation_group_id":` + someHandle + `}}]}`:        "nil: actions[0].move",
		`{"actions":[{"begin_dialog":{"as":"w","from_service":"a","to_service":"b"}},{"send":{"conversation_handle":"$w"}}]}`: "nil: actions[0].begin_dialog actions[1].send",
	} {
		state, actions, err := activator.DecodeAnswer(text)
		got := string(state) + ": " + actions
		if state == nil {
			got = "nil: " + actions
		}
		if err != nil || got != want {
			t.Errorf("%s\n%q, %v, want %q", text, got, err, want)
		}
	}
}

func TestDecodeBadAnswer(t *testing.T) {
	t.Parallel()
	action := func(verb, content string) string { return `{"actions":[{"` + verb + `":{` + content + `}}]}` }
	const h = `"conversation_handle":` + someHandle
	for _, test := range [][2]string{
		{"", "not JSON: unexpected EOF"},
		{"ok", "not JSON: invalid character"},
		{"{", "not JSON: unexpected EOF"},
		{`{"state"`, "not JSON: unexpected EOF"},
		{`{"state":`, "not JSON: unexpected EOF"},
		{`{"state":1`, "not JSON: unexpected EOF"},
		{`{"state":01}`, "not JSON"},
		{`{"state":1,}`, "not JSON"},
		{"{}{}", "something follows"},
		{"{} x", "not JSON"},
		{"{\"state\":\"\xff\"}", "not UTF-8"},
		{"null", "want an object, got null"},
		{"[]", "want an object, got an array"},
		{`"{}"`, "want an object, got a string"},
		{`{"State":1}`, `unknown key "State", it may have state, actions`},
		{`{"state":1,"state":2}`, `key "state" twice`},
		{`{"actions":null}`, "actions: want an array, got null"},
		{`{"actions":{}}`, "actions: want an array, got an object"},
		{`{"actions":[1]}`, "actions[0]: want an object, got a number"},
		{`{"actions":[{}]}`, "actions[0]: 0 actions in one object"},
		{`{"actions":[{"sned":{}}]}`, `actions[0]: unknown key "sned", it may have begin_dialog, end, move, send, timer`},
		{`{"actions":[{"end":{` + h + `},"move":{}}]}`, "actions[0]: 2 actions in one object"},
		{`{"actions":[{"end":[]}]}`, "actions[0].end: want an object, got an array"},
		{action("end", ""), "actions[0].end.conversation_handle: is missing"},
		{action("end", h+`,"conversation_handle":""`), `key "conversation_handle" twice`},
		{action("end", `"conversation_handle":null`), "want a UUID or $name, got null"},
		{action("end", `"conversation_handle":"x"`), "is neither a UUID nor $"},
		{action("end", `"conversation_handle":"$w"`), `no earlier action has begun a dialog as "w"`},
		{action("end", `"conversation_handle":"$"`), `no earlier action has begun a dialog as ""`},
		{action("end", `"conversation_handle":"00000000-0000-0000-0000-000000000000"`), "is neither a UUID nor $"},
		{action("end", h+`,"error_code":1`), "error_description: is missing"},
		{action("end", h+`,"error_description":"x"`), "error_code: is missing"},
		{action("end", h+`,"error_code":1.5,"error_description":"x"`), "is not a positive integer"},
		{action("end", h+`,"error_code":0,"error_description":"x"`), "is not a positive integer"},
		{action("end", h+`,"error_code":3000000000,"error_description":"x"`), "is not a positive integer"},
		{action("end", h+`,"error_code":"1","error_description":"x"`), "error_code: want a number, got a string"},
		{action("end", h+`,"code":1`), `unknown key "code"`},
		{action("send", h+`,"message_body":"x","message_body_base64":"eA=="`), "exclude each other"},
		{action("send", h+`,"message_body_base64":"?"`), "is not base64"},
		{action("send", h+`,"message_body_base64":1`), "want a string, got a number"},
		{action("send", h+`,"message_body":"\u0000"`), "U+0000"},
		{action("send", h+`,"message_body":"\ud800"`), "half a surrogate pair"},
		{action("send", h+`,"message_type":7`), "message_type: want a string, got a number"},
		{action("timer", h), "timeout_seconds: is missing"},
		{action("timer", h+`,"timeout_seconds":0`), "greater than 0"},
		{action("timer", h+`,"timeout_seconds":-1`), "greater than 0"},
		{action("timer", h+`,"timeout_seconds":1e10`), "at most 2147483647"},
		{action("timer", h+`,"timeout_seconds":true`), "want a number, got a boolean"},
		{action("move", h), "conversation_group_id: is missing"},
		{action("move", h+`,"conversation_group_id":"$w"`), "is not a UUID"},
		{action("begin_dialog", `"to_service":"b"`), "from_service: is missing"},
		{action("begin_dialog", `"from_service":"a"`), "to_service: is missing"},
		{action("begin_dialog", `"from_service":"a","to_service":"b","as":""`), "as: is empty"},
		{action("begin_dialog", `"from_service":"a","to_service":"b","related_conversation":"$me","as":"me"`), "no earlier action"},
		{action("begin_dialog", `"from_service":"a","to_service":"b","related_conversation_group":"x"`), "is not a UUID"},
		{action("begin_dialog", `"from_service":"a","to_service":"b","lifetime_seconds":0`), "greater than 0"},
		{action("begin_dialog", `"from_service":"a","to_service":"b","encryption":true`), `unknown key "encryption"`},
		{`{"actions":[{"begin_dialog":{"as":"w","from_service":"a","to_service":"b"}},
			{"begin_dialog":{"as":"w","from_service":"a","to_service":"b"}}]}`, `actions[1].begin_dialog.as: "w" names another dialog`},
	} {
		text, want := test[0], test[1]
		_, _, err := activator.DecodeAnswer(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %q", text, err, want)
		}
	}
}

func FuzzDecodeAnswer(f *testing.F) {
	f.Add(`{"state":{"a":[1,"\ud800"]},"actions":[{"begin_dialog":{"as":"w","from_service":"a","to_service":"b"}},` +
		`{"send":{"conversation_handle":"$w","message_body":{}}},{"end":{"conversation_handle":` + someHandle + `}}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		state, _, err := activator.DecodeAnswer(text)
		if err == nil && !json.Valid([]byte(text)) {
			t.Error("taken though it is not JSON")
		}
		if err == nil && state != nil && !json.Valid(state) {
			t.Errorf("state %q", state)
		}
	})
}

func TestEncodeRequest(t *testing.T) {
	t.Parallel()
	g, _ := sbroker.ParseGroupID("0191e0c4-7d7e-7c3a-8a53-0242ac120001")
	h, _ := sbroker.ParseHandle("0191e0c4-7d7e-7c3a-8a53-0242ac120002")
	message := func(n int64, body []byte) sbroker.Message {
		return sbroker.Message{Group: g, Conversation: h, SequenceNumber: n, Service: "s", Contract: "c", Type: "t", Body: body}
	}
	got, err := activator.EncodeRequest("q\n", []sbroker.Message{
		message(0, []byte("<a>\n\"&\u2028é</a>")), message(1, nil), message(2, []byte{0xff}), message(3, []byte("a\x00")), message(4, []byte{}),
	}, json.RawMessage(`{"n": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, "\n") {
		t.Errorf("not one line: %q", got)
	}
	const common = `"message_type_name":"t","message_sequence_number":%,"service_name":"s","service_contract_name":"c",`
	want := `{"protocol":1,"queue":"q\n","conversation_group_id":"0191e0c4-7d7e-7c3a-8a53-0242ac120001","state":{"n":1},"messages":[`
	for i, body := range []string{
		`"message_body":"<a>\n\"&\u2028é</a>"`, `"message_body":null`, `"message_body_base64":"/w=="`,
		`"message_body_base64":"YQA="`, `"message_body":""`,
	} {
		if i > 0 {
			want += ","
		}
		want += `{"conversation_handle":` + someHandle + "," + strings.Replace(common, "%", string(rune('0'+i)), 1) + body + "}"
	}
	if diff := cmp.Diff(want+"]}\n", got); diff != "" {
		t.Error(diff)
	}
	if got, err = activator.EncodeRequest("q", []sbroker.Message{message(0, nil)}, nil); err != nil || !strings.Contains(got, `"state":null`) {
		t.Errorf("%s, %v", got, err)
	}
}

// The key is the same for every try and different for every batch, also for timers, which have no number of their own.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	at := time.Now()
	keys := map[string]bool{}
	for _, m := range []sbroker.Message{
		{SequenceNumber: 0},
		{SequenceNumber: 1},
		{SequenceNumber: -1, TypeID: 5, EnqueuedAt: at},
		{SequenceNumber: -1, TypeID: 5, EnqueuedAt: at.Add(time.Second)},
		{SequenceNumber: 0, Conversation: sbroker.Handle{1}},
		{SequenceNumber: 0, Group: sbroker.GroupID{1}},
	} {
		key := activator.IdempotencyKey([]sbroker.Message{m})
		if keys[key] || key != activator.IdempotencyKey([]sbroker.Message{m, {}}) {
			t.Errorf("%q", key)
		}
		keys[key] = true
	}
}
