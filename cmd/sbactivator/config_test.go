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
		"handlers: []\n":                                           `unknown key "handlers", the nearest is`,
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
		"http: { listen: ':1' }\n":                                 `unknown key "http"`,
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
