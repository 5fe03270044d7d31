package main

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// The example must be complete, true to the defaults, and still valid where it is commented out.
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
	want := wantDefaults
	want.Servers, want.Handlers = map[string]string{}, []HandlerConfig{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the example differs from the defaults:\n%s", diff)
	}
	for _, key := range slices.Concat(slices.Collect(maps.Keys(defaults)), listKeys) {
		leaf := key[strings.LastIndex(key, ".")+1:]
		line := regexp.MustCompile(`(?m)^ *` + leaf + `:.*# ` + envName(key) + `\b`)
		if !line.MatchString(example) {
			t.Errorf("the example has no line for %s with its variable %s", key, envName(key))
		}
	}

	// Settings are commented out by # alone, prose by # and one space.
	example = regexp.MustCompile(`(?m)^(servers: \{\}|handlers: \[\]).*`).ReplaceAllString(example, "")
	example = regexp.MustCompile(`(?m)^#(\S|  )`).ReplaceAllString(example, "$1")
	got, err = load(t, example)
	if err != nil {
		t.Fatal(err)
	}
	wantHandlers := []HandlerConfig{
		{Queue: "ExpenseQueue", Type: "exec", Command: []string{"python3", "approve.py"}, Batch: 10, MaxQueueReaders: 1, AutoEnd: true},
		{Queue: "AuditQueue", Type: "http", URL: "http://127.0.0.1:9000/audit", Batch: 10, MaxQueueReaders: 1, AutoEnd: true},
		{Queue: "LegacyQueue", Type: "program", Command: []string{"./legacy-reader"}, Batch: 10, MaxQueueReaders: 2, AutoEnd: true},
	}
	if diff := cmp.Diff(wantHandlers, got.Handlers); diff != "" {
		t.Error(diff)
	}
	if got.Servers["warehouse"] == "" {
		t.Errorf("servers: %v", got.Servers)
	}
}

func TestPrecedence(t *testing.T) {
	const file = "log: { level: error, format: json }\nhttp:\n  listen: :1\ndatabase:\n  pool_size: 3\n"
	t.Setenv("SBACTIVATOR_LOG_LEVEL", "warn")
	t.Setenv("SBACTIVATOR_LOG_FORMAT", "text")
	t.Setenv("SBACTIVATOR_ACTIVATION_POLL_INTERVAL", "1m30s")
	t.Setenv("SBACTIVATOR_HTTP_LISTEN", "")
	t.Setenv("SBACTIVATOR_DATABASE_URL", "host=env")
	got, err := load(t, file, "--log-level", "debug", "--database-url=host=flag")
	if err != nil {
		t.Fatal(err)
	}
	want := wantDefaults
	want.Database.URL, want.Database.PoolSize = "host=flag", 3
	want.Log.Level = slog.LevelDebug
	want.HTTP.Listen = ""
	want.Activation.PollInterval = 90 * time.Second
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestListsFromEnvironment(t *testing.T) {
	t.Setenv("SBACTIVATOR_SERVERS", `{"WareHouse": "host=w"}`)
	t.Setenv("SBACTIVATOR_HANDLERS", `[{"queue": "Q", "type": "exec", "command": ["x"], "auto_end": false}]`)
	got, err := load(t, "servers: { other: host=o }\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"WareHouse": "host=w"}, got.Servers); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]HandlerConfig{{Queue: "Q", Type: "exec", Command: []string{"x"}, Batch: 10, MaxQueueReaders: 1}}, got.Handlers); diff != "" {
		t.Error(diff)
	}
}

func TestServerNamesKeepTheirCase(t *testing.T) {
	got, err := load(t, "servers: { WareHouse: host=a, warehouse: host=b }\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"WareHouse": "host=a", "warehouse": "host=b"}, got.Servers); diff != "" {
		t.Error(diff)
	}
}

func TestBadConfiguration(t *testing.T) {
	const handler = "handlers: [{ queue: Q, type: exec, command: [x], "
	for file, want := range map[string]string{
		"databse: {}\n":                                                `unknown key "databse", the nearest is`,
		"database: { ulr: x }\n":                                       `unknown key "database.ulr", the nearest is "database.url"`,
		"activation: { polling_interval: 5s }\n":                       `the nearest is "activation.poll_interval"`,
		"handler: []\n":                                                `the nearest is "handlers"`,
		handler + "batches: 1 }]\n":                                    `unknown key "batches", the nearest is "batch"`,
		"database: postgres://me:hunter2@h/d\n":                        "database holds further keys",
		"database: { url: { password: hunter2 } }\n":                   "database.url",
		"database: { url: [hunter2] }\n":                               "database.url",
		"database: { url: 'postgres://me:hun/ter2hunter2@h/d' }\n":     "percent-encoded",
		"servers: { w: 'postgres://me:hun@ter2hunter2@h/d' }\n":        "servers.w",
		"servers: hunter2\n":                                           "servers: line 1: a value of the wrong kind",
		"servers: { w: [hunter2] }\n":                                  "servers: line 1: a value of the wrong kind",
		"servers: { W: [hunter2], w: {x: hunter2} }\n":                 "servers: line 1: a value of the wrong kind",
		"activation: { poll_interval: 5 }\n":                           "5 needs a unit, such as 5s",
		"activation: { poll_interval: soon }\n":                        "activation.poll_interval",
		"activation: { poll_interval: 0s }\n":                          "greater than zero",
		"activation: { shutdown_timeout: -1s }\n":                      "must not be negative",
		"database: { pool_size: -1 }\n":                                "must not be negative",
		"database: { pool_size: many }\n":                              "database.pool_size",
		"log: { level: loud }\n":                                       "log.level",
		"log: { format: xml }\n":                                       "neither text nor json",
		"http: { listen: nowhere }\n":                                  "http.listen",
		"- a\n":                                                        "wrong kind",
		"log: {\n":                                                     "not a YAML map",
		"log: {}\nlog: {}\n":                                           "not a YAML map",
		handler + "batch: 0 }]\n":                                      "handlers[0]: batch",
		handler + "batch: x }]\n":                                      "handlers: line 1: a value of the wrong kind",
		handler + "max_queue_readers: 0 }]\n":                          "max_queue_readers",
		handler + "url: 'http://h' }]\n":                               "takes no url",
		"handlers: [{ type: exec, command: [x] }]\n":                   "queue is missing",
		"handlers: [{ queue: Q, type: exec }]\n":                       "needs a command",
		"handlers: [{ queue: Q, type: http, url: 'ftp://hunter2' }]\n": "http://",
		"handlers: [{ queue: Q, type: http }]\n":                       "needs a url",
		"handlers: [{ queue: Q, type: sql }]\n":                        "none of exec, http, program",
		"handlers: [{ queue: Q, type: exec, command: [x] }, { queue: Q, type: exec, command: [x] }]\n": "has a handler already",
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

func TestBadEnvironment(t *testing.T) {
	for name, want := range map[string]string{
		"SBACTIVATOR_DATABASE_ULR":  "the nearest is SBACTIVATOR_DATABASE_URL",
		"SBACTIVATOR_HANDLER":       "the nearest is SBACTIVATOR_HANDLERS",
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
	if err := os.WriteFile(other, []byte("http: { listen: ':2' }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SBACTIVATOR_CONFIG", other)
	for _, args := range [][]string{nil, {"--config", other}} {
		if got, err := load(t, "http: { listen: ':1' }\n", args...); err != nil || got.HTTP.Listen != ":2" {
			t.Errorf("%v: %+v, %v", args, got.HTTP, err)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"url", "ulr", 2}, {"same", "same", 0}} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("%q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
