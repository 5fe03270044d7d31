package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// load reads the configuration as a command with these arguments would, in an empty directory.
func load(t *testing.T, file string, args ...string) (Config, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	if file != "" {
		if err := os.WriteFile(defaultConfigFile, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := &cobra.Command{}
	addConfigFlags(cmd.Flags())
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return loadConfig(cmd)
}

var wantDefaults = Config{
	Database: DatabaseConfig{StartupTimeout: time.Minute},
	Log:      LogConfig{Level: slog.LevelInfo, Format: "text"},
	HTTP:     HTTPConfig{Listen: "127.0.0.1:8421"},
	Activation: ActivationConfig{
		PollInterval: 5 * time.Second, IdleTimeout: 5 * time.Second,
		HandlerTimeout: 30 * time.Second, ShutdownTimeout: 30 * time.Second,
	},
}

func TestDefaults(t *testing.T) {
	got, err := load(t, "")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantDefaults, got); diff != "" {
		t.Error(diff)
	}
}

// The example must be complete and true to the defaults.
func TestExampleFile(t *testing.T) {
	content, err := os.ReadFile("../../sbactivator.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example := string(content)
	got, err := load(t, example)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wantDefaults, got); diff != "" {
		t.Errorf("the example differs from the defaults:\n%s", diff)
	}
	for key := range defaults {
		leaf := key[strings.LastIndex(key, ".")+1:]
		line := regexp.MustCompile(`(?m)^ *` + leaf + `:.*# ` + envName(key) + `\b`)
		if !line.MatchString(example) {
			t.Errorf("the example has no line for %s with its variable %s", key, envName(key))
		}
	}
}

func TestPrecedence(t *testing.T) {
	const file = "log: { level: error, format: json }\ndatabase:\n  pool_size: 3\n"
	t.Setenv("SBACTIVATOR_LOG_LEVEL", "warn")
	t.Setenv("SBACTIVATOR_LOG_FORMAT", "text")
	t.Setenv("SBACTIVATOR_ACTIVATION_POLL_INTERVAL", "1m30s")
	t.Setenv("SBACTIVATOR_DATABASE_URL", "host=env")
	got, err := load(t, file, "--log-level", "debug", "--database-url=host=flag")
	if err != nil {
		t.Fatal(err)
	}
	want := wantDefaults
	want.Database.URL, want.Database.PoolSize = "host=flag", 3
	want.Log.Level = slog.LevelDebug
	want.Activation.PollInterval = 90 * time.Second
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestBadConfiguration(t *testing.T) {
	for file, want := range map[string]string{
		"databse: {}\n":                                            `unknown key "databse", the nearest is`,
		"database: { ulr: x }\n":                                   `unknown key "database.ulr", the nearest is "database.url"`,
		"activation: { polling_interval: 5s }\n":                   `the nearest is "activation.poll_interval"`,
		"activaton: {}\n":                                          `unknown key "activaton", the nearest is "activation"`,
		"handler: []\n":                                            `unknown key "handler", the nearest is "handlers"`,
		"database: postgres://me:hunter2@h/d\n":                    "database holds further keys",
		"database: { url: { password: hunter2 } }\n":               "database.url",
		"database: { url: [hunter2] }\n":                           "database.url",
		"database: { url: 'postgres://me:hun/ter2hunter2@h/d' }\n": "percent-encoded",
		"activation: { poll_interval: 5 }\n":                       "5 needs a unit, such as 5s",
		"activation: { poll_interval: soon }\n":                    "activation.poll_interval",
		"activation: { poll_interval: 0s }\n":                      "greater than zero",
		"activation: { shutdown_timeout: -1s }\n":                  "must not be negative",
		"database: { pool_size: -1 }\n":                            "must not be negative",
		"database: { pool_size: many }\n":                          "database.pool_size",
		"log: { level: loud }\n":                                   "log.level",
		"log: { format: xml }\n":                                   "neither text nor json",
		"servers: { w: hunter2 }\n":                                `unknown key "servers"`,
		"http: { listen: localhost }\n":                            "not an address with a port",
		"http: { listen: '127.0.0.1:http' }\n":                     "not an address with a port",
		"http: { lisen: ':0' }\n":                                  `unknown key "http.lisen", the nearest is "http.listen"`,
		"- a\n":                                                    "wrong kind",
		"log: {\n":                                                 "not a YAML map",
		"log: {}\nlog: {}\n":                                       "not a YAML map",
	} {
		_, err := load(t, file)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v\nwant %q", file, err, want)
			continue
		}
		if code := exitCode(runError{err}); code != exitConfig {
			t.Errorf("%sexit code %d", file, code)
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(oneLine(err), "\n") {
			t.Errorf("%s%v", file, err)
		}
	}
}

// What stands in the example as a comment is right, too, and has every key.
func TestExampleHandlers(t *testing.T) {
	content, err := os.ReadFile("../../sbactivator.example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(content), "handlers: []")
	_, list, _ = strings.Cut(list, "\n")
	text := regexp.MustCompile(`(?m)^# ?`).ReplaceAllString(list, "")
	got, err := load(t, "handlers:\n"+text)
	if err != nil {
		t.Fatal(err)
	}
	want := []HandlerConfig{
		{
			Queue: "ExpenseQueue", Type: "exec", Command: []string{"python3", "approve.py"}, Env: map[string]string{},
			Batch: 10, Timeout: 30 * time.Second, AutoEnd: true,
		},
		{
			Queue: "AuditQueue", Type: "http", URL: "http://127.0.0.1:9000/audit", Headers: map[string]string{},
			Batch: 10, AutoEnd: true,
		},
	}
	if diff := cmp.Diff(want, got.Handlers); diff != "" {
		t.Error(diff)
	}
	for key := range handlerKeys {
		if !regexp.MustCompile(`(?m)^ *(- )?` + key + `:`).MatchString(text) {
			t.Errorf("the example does not have %s", key)
		}
	}
}

func TestHandlers(t *testing.T) {
	const file = `
handlers:
  - { queue: Q1, type: exec, command: [sh, -c, "exit 0", 7], dir: /tmp, env: { Name: x, PORT: 80 }, batch: 5,
      max_queue_readers: 3, timeout: 1m, auto_end: false, pass_database: true }
  - { queue: Q2, type: http, url: "https://me:hunter2@h/p?q", headers: { X-Key: "007" } }
  - queue: Q3
    type: program
    command: [./legacy reader]
    timeout:
`
	want := []HandlerConfig{
		{
			Queue: "Q1", Type: "exec", Command: []string{"sh", "-c", "exit 0", "7"}, Dir: "/tmp",
			Env: map[string]string{"Name": "x", "PORT": "80"}, PassDatabase: true, Batch: 5, MaxQueueReaders: 3, Timeout: time.Minute,
		},
		{
			Queue: "Q2", Type: "http", URL: "https://me:hunter2@h/p?q", Headers: map[string]string{"X-Key": "007"},
			Batch: 10, AutoEnd: true,
		},
		{Queue: "Q3", Type: "program", Command: []string{"./legacy reader"}, PassDatabase: true, Batch: 10, AutoEnd: true},
	}
	got, err := load(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got.Handlers); diff != "" {
		t.Error(diff)
	}
	// The variable replaces the list.
	t.Setenv("SBACTIVATOR_HANDLERS", `[{"queue": "Q3", "type": "program", "command": ["./legacy reader"]}]`)
	if got, err = load(t, file); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want[2:], got.Handlers); diff != "" {
		t.Error(diff)
	}
	t.Setenv("SBACTIVATOR_HANDLERS", "")
	if got, err = load(t, file); err != nil || got.Handlers != nil {
		t.Errorf("%v, %v", got.Handlers, err)
	}
	t.Setenv("SBACTIVATOR_HANDLERS", "- { queue: q }")
	if _, err = load(t, file); err == nil || !strings.Contains(err.Error(), "SBACTIVATOR_HANDLERS:1: handlers[0].type: is missing") {
		t.Error(err)
	}
}

func TestBadHandlers(t *testing.T) {
	for entry, want := range map[string]string{
		"{ queue: q, type: exec, comand: [x] }":                                      `:2: unknown key "handlers[0].comand", the nearest is "command"`,
		"{ queue: q, type: exec, command: [x], max_readers: 2 }":                     `unknown key "handlers[0].max_readers", the nearest is "max_queue_readers"`,
		"{ queue: q, type: exec }\n":                                                 "handlers[0].command: is missing",
		"{ queue: q, type: http }\n":                                                 "handlers[0].url: is missing",
		"{ queue: q, command: [x] }":                                                 "handlers[0].type: is missing: exec, http, program",
		"{ type: exec, command: [x] }":                                               "handlers[0].queue: is missing",
		"{ queue: '', type: exec, command: [x] }":                                    "1 to 128 characters",
		"{ queue: 5, type: exec, command: [x] }":                                     "quote it",
		"{ queue: q, type: exce, command: [x] }":                                     `there is no type "exce", the nearest is "exec"`,
		"{ queue: q, type: exec, command: python3 x.py }":                            "is not a list of words, such as",
		"{ queue: q, type: exec, command: [] }":                                      "is not a list of words, such as",
		"{ queue: q, type: exec, command: [[x]] }":                                   "list of words only",
		"{ queue: q, type: exec, command: [''] }":                                    "there is no command",
		"{ queue: q, type: exec, command: [x], url: 'http://hunter2' }":              "handlers[0].url: is not for type exec",
		"{ queue: q, type: http, url: 'http://h', command: [x] }":                    "handlers[0].command: is not for type http",
		"{ queue: q, type: http, url: 'ftp://hunter2@h' }":                           "not http://",
		"{ queue: q, type: http, url: '::hunter2' }":                                 "not http://",
		"{ queue: q, type: http, url: 'http://h', headers: { 'a b': hunter2 } }":     `"a b" is no name of a header`,
		"{ queue: q, type: http, url: 'http://h', headers: { a: [hunter2] } }":       "handlers[0].headers: a has no value",
		"{ queue: q, type: http, url: 'http://h', headers: { a: \"x\\nhunter2\" } }": "line end",
		"{ queue: q, type: exec, command: [x], env: { 'A=B': hunter2 } }":            `"A=B" is no name of a variable`,
		"{ queue: q, type: exec, command: [x], env: [hunter2] }":                     "handlers[0].env: is not a map",
		"{ queue: q, type: exec, command: [x], batch: 0 }":                           "handlers[0].batch: is not a whole number from 1",
		"{ queue: q, type: exec, command: [x], batch: 1.5 }":                         "handlers[0].batch: is not a whole number",
		"{ queue: q, type: program, command: [x], batch: 1 }":                        "handlers[0].batch: is not for type program",
		"{ queue: q, type: program, command: [x], auto_end: true }":                  "handlers[0].auto_end: is not for type program",
		"{ queue: q, type: exec, command: [x], max_queue_readers: -1 }":              "from 0 to 32767",
		"{ queue: q, type: exec, command: [x], timeout: 30 }":                        "handlers[0].timeout: is not a time with a unit",
		"{ queue: q, type: exec, command: [x], timeout: 0s }":                        "greater than zero",
		"{ queue: q, type: exec, command: [x], auto_end: maybe }":                    "neither true nor false",
		"{ queue: q, type: exec, command: [x], queue: q }":                           "not a YAML map",
		"hunter2": "handlers[0]: is not a map of settings",
		"{ queue: q, type: exec, command: [x] }\n- { queue: q, type: exec, command: [y] }": ":3: handlers[1].queue: handlers[0] is for this queue already",
	} {
		_, err := load(t, "handlers:\n- "+entry+"\n")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\n%v\nwant %q", entry, err, want)
			continue
		}
		if exitCode(runError{err}) != exitConfig || strings.Contains(err.Error(), "hunter2") || strings.Contains(oneLine(err), "\n") {
			t.Errorf("%s\n%v", entry, err)
		}
	}
	for _, file := range []string{"handlers: hunter2\n", "handlers: { queue: hunter2 }\n"} {
		if _, err := load(t, file); err == nil || !strings.Contains(err.Error(), ":1: handlers is not a list") {
			t.Errorf("%s%v", file, err)
		}
	}
}

func TestBadEnvironment(t *testing.T) {
	for name, want := range map[string]string{
		"SBACTIVATOR_DATABASE_ULR":  "the nearest is SBACTIVATOR_DATABASE_URL",
		"SBACTIVATOR_LOG_LEVELS":    "the nearest is SBACTIVATOR_LOG_LEVEL",
		"SBACTIVATOR_SERVICE_HOST":  "", // Kubernetes makes these
		"SBACTIVATOR_PORT_8421_TCP": "",
	} {
		err := checkEnv([]string{"PATH=/bin", name + "=hunter2"})
		if want == "" {
			if err != nil {
				t.Error(err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestConfigFile(t *testing.T) {
	if _, err := load(t, "", "--config", "nowhere.yaml"); exitCode(runError{err}) != exitConfig {
		t.Errorf("a missing file that was asked for: %v", err)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, []byte("database: { url: 'host=other' }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SBACTIVATOR_CONFIG", other)
	for _, args := range [][]string{nil, {"--config", other}} {
		if got, err := load(t, "database: { url: 'host=here' }\n", args...); err != nil || got.Database.URL != "host=other" {
			t.Errorf("%v: %+v, %v", args, got.Database, err)
		}
	}
}

// An empty variable is a value: it wins over the file, and leaves the database to the PG* variables.
func TestEmptyVariable(t *testing.T) {
	t.Setenv("SBACTIVATOR_DATABASE_URL", "")
	if got, err := load(t, "database: { url: 'host=file' }\n"); err != nil || got.Database.URL != "" {
		t.Errorf("%+v, %v", got.Database, err)
	}
}
