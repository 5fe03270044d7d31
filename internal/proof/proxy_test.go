//go:build linux

package proof

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// proxy is a network between activators and a server, on which something may happen.
type proxy struct {
	t   *testing.T
	url string // of the server, by way of the proxy

	attempts atomic.Int64 // to connect
	answers  atomic.Int64 // of the server to statements
	down     atomic.Bool  // who connects is turned away
	deaf     atomic.Bool  // notifications are not delivered

	mu    sync.Mutex
	links map[*link]struct{}
	wg    sync.WaitGroup
}

// link is one connection.
type link struct {
	client, server net.Conn
	application    string // its application_name
	mute           atomic.Bool
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	u, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	target := u.Host
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.Host = listener.Addr().String()
	query := u.Query()
	query.Set("sslmode", "disable") // it looks into what it passes on
	u.RawQuery = query.Encode()
	p := &proxy{t: t, url: u.String(), links: map[*link]struct{}{}}
	p.wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			p.attempts.Add(1)
			if p.down.Load() {
				client.Close()
				continue
			}
			p.wg.Go(func() { p.serve(client, target) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.cut()
		p.wg.Wait()
	})
	return p
}

// serve passes everything on until either side ends the connection.
func (p *proxy) serve(client net.Conn, target string) {
	defer client.Close()
	server, err := net.Dial("tcp4", target)
	if err != nil {
		return
	}
	defer server.Close()
	in := bufio.NewReader(client)
	hello := make([]byte, 4)
	if _, err := io.ReadFull(in, hello); err != nil {
		return
	}
	hello = append(hello, make([]byte, binary.BigEndian.Uint32(hello)-4)...)
	if _, err := io.ReadFull(in, hello[4:]); err != nil {
		return
	}
	l := &link{client: client, server: server}
	if _, after, found := strings.Cut(string(hello), "application_name\x00"); found {
		l.application, _, _ = strings.Cut(after, "\x00")
	}
	p.mu.Lock()
	p.links[l] = struct{}{}
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.links, l)
	}()
	if _, err := server.Write(hello); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(server, in)
		server.Close()
	})
	p.answer(l, client, bufio.NewReader(server))
	client.Close()
	both.Wait()
}

// answer passes on what the server says, message by message.
func (p *proxy) answer(l *link, client io.Writer, server *bufio.Reader) {
	out := bufio.NewWriter(client)
	for {
		head := make([]byte, 5) // kind and length
		if _, err := io.ReadFull(server, head); err != nil {
			return
		}
		if head[0] == 'Z' { // ready for the next statement
			p.answers.Add(1)
		}
		var to io.Writer = out
		if l.mute.Load() || head[0] == 'A' && p.deaf.Load() { // a notification
			to = io.Discard
		}
		if _, err := to.Write(head); err != nil {
			return
		}
		if _, err := io.CopyN(to, server, int64(binary.BigEndian.Uint32(head[1:]))-4); err != nil {
			return
		}
		if server.Buffered() > 0 {
			continue
		}
		if err := out.Flush(); err != nil {
			return
		}
	}
}

// swallow makes the connections that there are half-open, those whose application_name ends so: whatever either side sends,
// its acknowledgements included, is dropped without a word. Connections made later are not affected.
func (p *proxy) swallow(suffix string) {
	p.each(suffix, func(l *link) {
		for _, conn := range []net.Conn{l.client, l.server} {
			if err := dropAll(conn); err != nil {
				p.t.Error(err)
			}
		}
	})
}

// silence is half of that: the network lives, and what it is asked is passed on, but there is no answer any more.
func (p *proxy) silence(suffix string) { p.each(suffix, func(l *link) { l.mute.Store(true) }) }

func (p *proxy) each(suffix string, do func(l *link)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for l := range p.links {
		if strings.HasSuffix(l.application, suffix) {
			do(l)
			n++
		}
	}
	if n == 0 {
		p.t.Error("there is no such connection")
	}
}

// dropAll makes the kernel throw away whatever arrives for the socket before TCP sees it.
func dropAll(conn net.Conn) error {
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		return err
	}
	nothing := []syscall.SockFilter{{Code: syscall.BPF_RET | syscall.BPF_K, K: 0}}
	var attachErr error
	err = raw.Control(func(fd uintptr) { attachErr = syscall.AttachLsf(int(fd), nothing) }) //nolint:staticcheck // there is nothing else
	return errors.Join(err, attachErr)
}

// cut ends all connections.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.client.Close()
		l.server.Close()
	}
}
