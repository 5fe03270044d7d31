package sqltest

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/pgsbroker/sbroker/internal/pgtest"
)

// bodyCase is a message body, as characters or, where it is not UTF-8, as bytes in hexadecimal.
type bodyCase struct {
	Name string
	Body string
	Hex  string
}

func (c bodyCase) bytes(t *testing.T) []byte {
	t.Helper()
	if c.Hex == "" {
		return []byte(c.Body)
	}
	b, err := hex.DecodeString(c.Hex)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// validationCases is testdata/validation_cases.json.
type validationCases struct {
	XML []struct {
		bodyCase
		Text bool // sent as text, not as bytea
		Want bool
	}
	JSON []struct {
		bodyCase
		Want  bool // WELL_FORMED_JSON
		JSONB bool // jsonb can hold it, so that a validator can see it
	}
	SchemaCheck []struct {
		Schema json.RawMessage
		Error  string // empty: accepted
	} `json:"schema_check"`
	SchemaMatch []struct {
		Schema  json.RawMessage
		Valid   []json.RawMessage
		Invalid []json.RawMessage
	} `json:"schema_match"`
	ErrorBody []struct {
		bodyCase
		Code        *int32
		Description *string
	} `json:"error_body"`
}

func readValidationCases(t *testing.T) validationCases {
	t.Helper()
	b, err := os.ReadFile("../../testdata/validation_cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases validationCases
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

// query returns the one value of a query.
func query[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) T {
	t.Helper()
	value, err := tryQuery[T](pool, sql, args...)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value
}

func tryQuery[T any](pool *pgxpool.Pool, sql string, args ...any) (value T, err error) {
	err = pool.QueryRow(context.Background(), sql, args...).Scan(&value)
	return value, err
}

// wantError checks SQLSTATE and message of an error raised by the server; an empty message is any message.
func wantError(t *testing.T, err error, code, message string) {
	t.Helper()
	var pgErr *pgconn.PgError
	if !errors.As(err, &pgErr) || pgErr.Code != code || message != "" && pgErr.Message != message {
		t.Errorf("got error %v, want %s %s", err, code, message)
	}
}

func TestWellFormedXML(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	for _, c := range readValidationCases(t).XML {
		body := c.bytes(t)
		// The answer may not depend on what a session has set.
		for _, option := range []string{"content", "document"} {
			sql := "select set_config('xmloption', $3, false) is not null and sb_internal._xml_is_well_formed($1, $2)"
			if got := query[bool](t, pool, sql, body, c.Text, option); got != c.Want {
				t.Errorf("%s: got %t, want %t (xmloption %s)", c.Name, got, c.Want, option)
			}
		}
		// What is well formed can be handed to a validator.
		if c.Want {
			query[bool](t, pool, "select xmlparse(content sb_internal._xml_decode($1, $2)) is not null", body, c.Text)
		}
	}
}

func TestWellFormedJSON(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	for _, c := range readValidationCases(t).JSON {
		body := c.bytes(t)
		if got := query[bool](t, pool, "select sb_internal._json_is_well_formed($1)", body); got != c.Want {
			t.Errorf("%s: well formed is %t, want %t", c.Name, got, c.Want)
		}
		if got := query[bool](t, pool, "select sb_internal._json_value($1) is not null", body); got != c.JSONB {
			t.Errorf("%s: jsonb is %t, want %t", c.Name, got, c.JSONB)
		}
	}
}

func TestJSONSchemaCheck(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	const sql = "select sb_internal._json_schema_check($1)::text"
	for _, c := range readValidationCases(t).SchemaCheck {
		_, err := tryQuery[string](pool, sql, c.Schema)
		switch {
		case c.Error != "":
			t.Run(string(c.Schema), func(t *testing.T) { wantError(t, err, "22023", c.Error) })
		case err != nil:
			t.Errorf("%s: %v", c.Schema, err)
		}
	}

	nested := func(levels int) string {
		return strings.Repeat(`{"not":`, levels-1) + "{}" + strings.Repeat("}", levels-1)
	}
	query[string](t, pool, sql, nested(64))
	for _, levels := range []int{65, 1000} {
		_, err := tryQuery[string](pool, sql, nested(levels))
		wantError(t, err, "22023", "schema is nested deeper than 64 levels")
	}
	_, err := tryQuery[string](pool, "select sb_internal._json_schema_check(null)::text")
	wantError(t, err, "22023", "schema at # must be an object or a boolean")
}

func TestJSONSchemaMatch(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	for _, c := range readValidationCases(t).SchemaMatch {
		query[string](t, pool, "select sb_internal._json_schema_check($1)::text", c.Schema)
		for want, values := range map[bool][]json.RawMessage{true: c.Valid, false: c.Invalid} {
			for _, value := range values {
				got := query[bool](t, pool, "select sb_internal._json_schema_is_valid($1, $2)", c.Schema, value)
				if got != want {
					t.Errorf("schema %s, value %s: got %t", c.Schema, value, got)
				}
			}
		}
	}
}

// Rules: R-409
func TestErrorBody(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	for _, c := range readValidationCases(t).ErrorBody {
		body := c.bytes(t)
		if diff := cmp.Diff(c.Code, query[*int32](t, pool, "select sb.error_code($1)", body)); diff != "" {
			t.Errorf("%s: code (-want +got):\n%s", c.Name, diff)
		}
		if diff := cmp.Diff(c.Description, query[*string](t, pool, "select sb.error_description($1)", body)); diff != "" {
			t.Errorf("%s: description (-want +got):\n%s", c.Name, diff)
		}
	}
	if query[bool](t, pool, "select sb.error_code(null) is not null or sb.error_description(null) is not null") {
		t.Error("a null body has an error")
	}

	// What the broker writes, everybody reads back, whatever the description holds.
	for description, want := range map[string]string{
		"":                       "",
		" plain <b>&amp;\"']]> ": " plain <b>&amp;\"']]> ",
		"é€😀\t\r\n\u0085\u2028":  "é€😀\t\r\n\u0085\u2028",
		"\x01\x08\x0b\x0c\x0e\x1f\ufffe\uffff\x7f": "\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\x7f",
	} {
		const namespace = "https://schemas.microsoft.com/SQL/ServiceBroker"
		body := query[[]byte](t, pool, "select sb_internal._error_body($1, -9615, $2)", namespace, description)
		prefix := fmt.Sprintf(`<?xml version="1.0"?><Error xmlns="%s"><Code>-9615</Code><Description>`, namespace)
		if !strings.HasPrefix(string(body), prefix) {
			t.Errorf("error body is %s", body)
		}
		if !query[bool](t, pool, "select sb_internal._xml_is_well_formed($1, false)", body) {
			t.Errorf("not well formed: %s", body)
		}
		if got := query[int](t, pool, "select sb.error_code($1)", body); got != -9615 {
			t.Errorf("code is %d", got)
		}
		if diff := cmp.Diff(want, query[string](t, pool, "select sb.error_description($1)", body)); diff != "" {
			t.Errorf("description (-want +got):\n%s", diff)
		}
	}
}

func TestBodyTypes(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	const mark = "\ufeff"
	for _, c := range []struct{ function, body, want string }{
		{"body_text", "é\n", "é\n"},
		{"body_text", mark + "é", "é"},
		{"body_text", mark + mark, mark},
		{"body_text", "", ""},
		{"body_json", `{"b": 1, "a": "é"}`, `{"a": "é", "b": 1}`},
		{"body_json", mark + "null", "null"},
		{"body_xml", "<a>é</a>", "<a>é</a>"},
		{"body_xml", mark + `<?xml version="1.0"?><a/>`, "<a/>"},
		{"body_xml", "text <a/><b/>", "text <a/><b/>"},
		{"body_xml", "<?xml version='1.0' encoding='ISO-8859-1'?><a>\xe9</a>", "<a>é</a>"},
		{"body_xml", "<?xml version='1.0' encoding='utf-16'?><a>é</a>", "<a>é</a>"},
		{"body_xml", "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>", "<!DOCTYPE a [<!ENTITY e 'x'>]><a>&e;</a>"},
	} {
		if got := query[string](t, pool, "select sb."+c.function+"($1)::text", []byte(c.body)); got != c.want {
			t.Errorf("%s(%q) = %q, want %q", c.function, c.body, got, c.want)
		}
		if query[bool](t, pool, "select sb."+c.function+"(null) is not null") {
			t.Errorf("%s(null) is not null", c.function)
		}
	}
	for _, c := range []struct{ function, body, code string }{
		{"body_text", "\xff", "22021"},
		{"body_text", "a\x00", "22021"},
		{"body_json", "\xff", "22021"},
		{"body_json", "{", "22P02"},
		{"body_json", `"\u0000"`, "22P05"},
		{"body_json", strings.Repeat("[", 100_000), "54001"},
		{"body_xml", "\xff", "22021"},
		{"body_xml", "<a>", "2200N"},
		{"body_xml", "<?xml version='1.0' encoding='no-such'?><a/>", "22023"},
		{"body_xml", entityBomb(), "2200N"},
		{"body_xml", quadraticBomb(), "2200N"},
	} {
		_, err := tryQuery[string](pool, "select sb."+c.function+"($1)::text", []byte(c.body))
		wantError(t, err, c.code, "")
	}
}

// entityBomb would be 16 TB of text.
func entityBomb() string {
	var b strings.Builder
	b.WriteString(`<!DOCTYPE a [<!ENTITY e0 "0123456789abcdef">`)
	for i := range 12 {
		fmt.Fprintf(&b, `<!ENTITY e%d "%s">`, i+1, strings.Repeat(fmt.Sprintf("&e%d;", i), 10))
	}
	b.WriteString(`]><a>&e12;</a>`)
	return b.String()
}

// quadraticBomb would be 10 GB of text, without any nesting.
func quadraticBomb() string {
	return `<!DOCTYPE a [<!ENTITY e "` + strings.Repeat("x", 100_000) + `">]><a>` + strings.Repeat("&e;", 100_000) + `</a>`
}

// TestHostileBodies proves that a body made to exhaust the server is refused, and soon.
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t).Pool(t)
	check := func(sql string, args ...any) bool {
		t.Helper()
		tx, err := pool.Begin(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(context.Background())
		if _, err := tx.Exec(context.Background(), "set local statement_timeout = '20s'"); err != nil {
			t.Fatal(err)
		}
		var got bool
		if err := tx.QueryRow(context.Background(), sql, args...).Scan(&got); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		return got
	}

	const xml = "select sb_internal._xml_is_well_formed($1, $2)"
	for name, body := range map[string]string{
		"entity bomb":          entityBomb(),
		"quadratic bomb":       quadraticBomb(),
		"external entity":      `<!DOCTYPE a [<!ENTITY e SYSTEM "file:///etc/passwd">]><a>&e;</a>`,
		"parameter entity":     `<!DOCTYPE a [<!ENTITY % p SYSTEM "http://127.0.0.1:9/">%p;]><a/>`,
		"deep elements":        strings.Repeat("<a>", 1_000_000) + strings.Repeat("</a>", 1_000_000),
		"open elements":        strings.Repeat("<a>", 1_000_000),
		"comments then prolog": strings.Repeat("<!---->", 1_000_000) + "<!DOCTYPE a><a/>",
		"endless declaration":  "<?xml " + strings.Repeat(" ", 10_000_000),
	} {
		for _, isText := range []bool{false, true} {
			if check(xml, []byte(body), isText) {
				t.Errorf("%s is well formed", name)
			}
		}
	}
	if !check(xml, []byte("<a>"+strings.Repeat("<b>some text</b>", 1_000_000)+"</a>"), false) {
		t.Error("16 MB of elements are not well formed")
	}

	const jsonSQL = "select sb_internal._json_is_well_formed($1)"
	for name, body := range map[string]string{
		"deep arrays":  strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000),
		"open arrays":  strings.Repeat("[", 10_000_000),
		"deep objects": strings.Repeat(`{"a":`, 1_000_000) + "1" + strings.Repeat("}", 1_000_000),
	} {
		if check(jsonSQL, []byte(body)) {
			t.Errorf("%s are well formed", name)
		}
		if check("select sb_internal._json_value($1) is not null", []byte(body)) {
			t.Errorf("%s are a value", name)
		}
	}
	if !check(jsonSQL, []byte("["+strings.Repeat(`{"a": "some text"}, `, 1_000_000)+"1]")) {
		t.Error("20 MB of objects are not well formed")
	}
	// The session lives and works after a stack that was too deep.
	if !check(jsonSQL, []byte("[1]")) {
		t.Error("[1] is not well formed")
	}

	// A value can be deeper than any schema; only the schema's depth counts.
	deep := strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000)
	schema := strings.Repeat(`{"items":`, 63) + `{"type":"array"}` + strings.Repeat("}", 63)
	if !check("select sb_internal._json_matches($1, $2)", schema, deep) {
		t.Error("a deep value does not match")
	}
	for _, pattern := range []string{`^(a+)+$`, `^(a|aa)+$`, `^(.*)*x$`, `(a?){30}a{30}b`} {
		schema, err := json.Marshal(map[string]string{"pattern": pattern})
		if err != nil {
			t.Fatal(err)
		}
		query[string](t, pool, "select sb_internal._json_schema_check($1)::text", string(schema))
		if check("select sb_internal._json_matches($1, to_jsonb(repeat('a', 10000) || '!'))", string(schema)) {
			t.Errorf("%s matches", pattern)
		}
	}
}
