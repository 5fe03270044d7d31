package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHealth(t *testing.T) {
	t.Chdir(t.TempDir())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			http.Error(w, "not listening\nnot migrated", http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	address := server.Listener.Addr().String()
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		listen string
		args   []string
		code   int
		stderr string
	}{
		{address, []string{"health", "--alive"}, exitDone, ""},
		{":" + port, []string{"health", "--alive"}, exitDone, ""},
		{address, []string{"health"}, exitFailed, "sbactivator: not listening not migrated\n"},
		{"127.0.0.1:1", []string{"health"}, exitFailed, "refused"},
		{"", []string{"health"}, exitConfig, "http.listen is empty"},
		{address, []string{"health", "now"}, exitUsage, `unknown command "now"`},
	} {
		t.Setenv("SBACTIVATOR_HTTP_LISTEN", test.listen)
		code, _, stderr := execute(t, test.args...)
		if code != test.code || !strings.Contains(stderr, test.stderr) {
			t.Errorf("%q at %q: exit code %d, want %d; stderr %q, want %q", test.args, test.listen, code, test.code, stderr, test.stderr)
		}
	}
}
