package main

import (
	"bytes"
	"strings"
	"testing"
)

func execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

func TestExitCodes(t *testing.T) {
	t.Chdir(t.TempDir())
	const nobody = "host=127.0.0.1 port=1 password=hunter2 connect_timeout=5"
	for _, test := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{[]string{"version"}, exitDone, ""},
		{[]string{"--help"}, exitDone, ""},
		{[]string{"migrate", "--help"}, exitDone, ""},
		{nil, exitUsage, `"sbactivator" needs one of the commands`},
		{[]string{"vresion"}, exitUsage, "did you mean version?"},
		{[]string{"migrate"}, exitUsage, "needs one of the commands up, down, status, repair"},
		{[]string{"migrate", "upp"}, exitUsage, "did you mean up?"},
		{[]string{"migrate", "up", "now"}, exitUsage, `unknown command "now"`},
		{[]string{"migrate", "down", "--al"}, exitUsage, "unknown flag: --al"},
		{[]string{"migrate", "up", "--all"}, exitUsage, "unknown flag: --all"},
		{[]string{"--log-level"}, exitUsage, "needs an argument"},
		{[]string{"migrate", "status", "--log-level", "loud"}, exitConfig, "log.level"},
		{[]string{"migrate", "status", "--config", "nowhere.yaml"}, exitConfig, "nowhere.yaml"},
		{[]string{"migrate", "status", "--database-url", "hunter2"}, exitConfig, "neither postgres://… nor key=value"},
		{[]string{"migrate", "status", "--database-url", nobody}, exitConfig, "failed to connect"},
		{[]string{"migrate", "up", "--database-url", nobody}, exitConfig, "failed to connect"},
		{[]string{"migrate", "down", "--database-url", nobody}, exitConfig, "failed to connect"},
		{[]string{"migrate", "repair", "--database-url", nobody}, exitConfig, "failed to connect"},
	} {
		name := strings.Join(test.args, " ")
		code, stdout, stderr := execute(t, test.args...)
		if code != test.code || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%s: exit code %d, want %d; stderr %q, want %q", name, code, test.code, stderr, test.stderr)
		}
		if code == exitDone && stderr != "" || code != exitDone && (stdout != "" || strings.Count(stderr, "\n") != 1) {
			t.Errorf("%s: stdout %q, stderr %q", name, stdout, stderr)
		}
		if strings.Contains(stderr, "hunter2") {
			t.Errorf("%s: %s", name, stderr)
		}
	}
}

func TestVersion(t *testing.T) {
	_, stdout, _ := execute(t, "version")
	for _, want := range []string{"version ", "commit  ", "schema  "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in:\n%s", want, stdout)
		}
	}
}
