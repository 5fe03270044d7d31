package nearest_test

import (
	"testing"

	"github.com/pgsbroker/sbroker/internal/nearest"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		s          string
		candidates []string
		want       string
	}{
		{"max_readers", []string{"batch", "headers", "max_queue_readers"}, "max_queue_readers"},
		{"activaton", []string{"activation", "activation.poll_interval", "http.listen"}, "activation"},
		{"handler", []string{"handlers", "activation.handler_timeout"}, "handlers"},
		{"database.ulr", []string{"activation", "database", "database.url"}, "database.url"},
		{"Orderqueue", []string{"CustomerQueue", "OrderQueue"}, "OrderQueue"},
		{"x", []string{"b", "a"}, "a"},
		{"x", nil, ""},
	} {
		if got := nearest.Of(test.s, test.candidates); got != test.want {
			t.Errorf("%s: %q, want %q", test.s, got, test.want)
		}
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"kitten", "sitting", 3}, {"url", "ulr", 2}, {"same", "same", 0}} {
		if got := nearest.Distance(test.a, test.b); got != test.want {
			t.Errorf("%q to %q: %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
