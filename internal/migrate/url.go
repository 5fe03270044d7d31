package migrate

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrURL is what ParseURL's errors are.
var ErrURL = errors.New("database url")

// connectTimeout holds where neither the URL nor PGCONNECT_TIMEOUT sets one: a firewall that drops
// packets would otherwise keep us for minutes.
const connectTimeout = 10 * time.Second

// ParseURL reads a libpq URL or key=value string; PG* variables, service file and password file fill
// in what it leaves out, and an empty string leaves out everything. Its errors are one line, match
// ErrURL and never repeat any part of a password, however badly the URL is put together.
func ParseURL(raw string) (*pgx.ConnConfig, error) {
	isURL := strings.HasPrefix(raw, "postgres://") || strings.HasPrefix(raw, "postgresql://")
	if isURL && spills(raw) {
		return nil, fmt.Errorf("%w: malformed; special characters in user and password must be percent-encoded", ErrURL)
	}
	if !isURL && raw != "" && !strings.Contains(raw, "=") {
		return nil, fmt.Errorf("%w: neither postgres://… nor key=value", ErrURL)
	}
	config, err := pgx.ParseConfig(raw)
	if err == nil {
		if config.ConnectTimeout == 0 {
			config.ConnectTimeout = connectTimeout
		}
		return config, nil
	}
	// pgx puts the connection string between backquotes; what follows it is the reason.
	reason := err.Error()
	if i := strings.LastIndex(reason, "`: "); i >= 0 {
		reason = reason[i+len("`: "):]
	}
	return nil, fmt.Errorf("%w: %s", ErrURL, strings.Join(strings.Fields(reason), " "))
}

// spills tells whether a URL is broken in a way in which an unescaped / ? # or @ of its password would
// end up in the host, the path, a parameter or the parser's message.
func spills(raw string) bool {
	u, err := url.Parse(raw)
	if err != nil {
		return true
	}
	_, authority, _ := strings.Cut(raw, "://")
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority = authority[:end]
	}
	return strings.Count(authority, "@") > 1 || strings.Contains(u.Path+u.Fragment, "@") ||
		u.User == nil && strings.Contains(raw, "@")
}
