package sbroker

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"
)

const someUUID = "0190b6f7-5a3c-7e21-9d4f-00ff8a1b2c3d"

func TestHandleForms(t *testing.T) {
	t.Parallel()
	h, err := ParseHandle(strings.ToUpper(someUUID))
	if err != nil || h.String() != someUUID {
		t.Fatalf("ParseHandle: %v, %v", h, err)
	}

	var h2 Handle
	for _, src := range []any{someUUID, []byte(someUUID), h[:], [16]byte(h)} {
		if err := h2.Scan(src); err != nil || h2 != h {
			t.Errorf("Scan(%T): %v, %v", src, h2, err)
		}
	}
	if err := h2.Scan(nil); err != nil || !h2.IsZero() {
		t.Errorf("Scan(nil): %v, %v", h2, err)
	}
	if err := h2.Scan(42); err == nil {
		t.Error("Scan(int) succeeds")
	}
	if v, err := h.Value(); err != nil || v != someUUID {
		t.Errorf("Value: %v, %v", v, err)
	}
	if v, err := (Handle{}).Value(); err != nil || v != nil {
		t.Errorf("Value of no handle: %v, %v", v, err)
	}

	text, err := json.Marshal(map[Handle]GroupID{h: GroupID(h)})
	if want := `{"` + someUUID + `":"` + someUUID + `"}`; err != nil || string(text) != want {
		t.Errorf("JSON: %s, %v", text, err)
	}
	var back map[Handle]GroupID
	if err := json.Unmarshal(text, &back); err != nil || back[h] != GroupID(h) {
		t.Errorf("from JSON: %v, %v", back, err)
	}
}

// pgx has to take both types for uuid in both formats, NULL included.
func TestHandleIsUUIDForPgx(t *testing.T) {
	t.Parallel()
	h, _ := ParseHandle(someUUID)
	m := pgtype.NewMap()
	for _, format := range []int16{pgtype.TextFormatCode, pgtype.BinaryFormatCode} {
		for _, want := range []Handle{h, {}} {
			wire, err := m.Encode(pgtype.UUIDOID, format, want, nil)
			if err != nil || (wire == nil) != want.IsZero() {
				t.Fatalf("encode %v in format %d: %v, %v", want, format, wire, err)
			}
			got, group := Handle{1}, GroupID{1}
			if err := m.Scan(pgtype.UUIDOID, format, wire, &got); err != nil || got != want {
				t.Errorf("scan in format %d: %v, %v", format, got, err)
			}
			if err := m.Scan(pgtype.UUIDOID, format, wire, &group); err != nil || group != GroupID(want) {
				t.Errorf("scan a group in format %d: %v, %v", format, group, err)
			}
		}
	}
}

func FuzzParseHandle(f *testing.F) {
	for _, s := range []string{someUUID, "", "0190b6f7-5a3c-7e21-9d4f", strings.Repeat("-", 36), "{" + someUUID + "}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHandle(s)
		if err != nil {
			if !h.IsZero() {
				t.Errorf("%v with %v", err, h)
			}
			return
		}
		if h.String() != strings.ToLower(s) {
			t.Errorf("%q became %q", s, h)
		}
	})
}

func TestKindComesFromTheID(t *testing.T) {
	t.Parallel()
	want := map[int32]Kind{1: KindError, 2: KindEndDialog, 5: KindDialogTimer, 14: KindApplication, 65536: KindApplication}
	got := map[int32]Kind{}
	for id := range want {
		// The name must not matter: it depends on an option.
		got[id] = Message{TypeID: id, Type: "http://schemas.microsoft.com/SQL/ServiceBroker/Error"}.Kind()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if s := KindDialogTimer.String(); s != "DialogTimer" {
		t.Error(s)
	}
}

func TestMessageBody(t *testing.T) {
	t.Parallel()
	m := Message{Type: "T", Body: []byte(`{"a":1}`)}
	var v struct{ A int }
	if err := m.JSON(&v); err != nil || v.A != 1 || m.Text() != `{"a":1}` {
		t.Errorf("got %v, %v", v, err)
	}
	if err := (Message{Type: "T"}).JSON(&v); err == nil || !strings.Contains(err.Error(), "T message") {
		t.Errorf("no body: %v", err)
	}
}
