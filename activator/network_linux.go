package activator

import (
	"errors"
	"syscall"
	"time"
)

// limitSilence ends a connection when what was sent over it stays unacknowledged for so long. Keepalive does not see to
// that: it is for connections over which nothing is sent.
func limitSilence(c syscall.RawConn, d time.Duration) error {
	const userTimeout = 18 // TCP_USER_TIMEOUT, in milliseconds
	var setErr error
	err := c.Control(func(fd uintptr) {
		setErr = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, userTimeout, int(d.Milliseconds()))
	})
	if errors.Is(setErr, syscall.EOPNOTSUPP) || errors.Is(setErr, syscall.ENOPROTOOPT) {
		setErr = nil // a Unix socket, or a system that only looks like Linux
	}
	return errors.Join(err, setErr)
}
