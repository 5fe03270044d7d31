package activator

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pgsbroker/sbroker/sbroker"
)

// answerLimit is how large the answer of a handler in another process may be, in bytes.
var answerLimit = 256 << 20

// ExternalHandler is a Handler in another process, of any language: docs/activator-handlers.md describes what is said
// between them. What it answers is checked as a whole and then carried out in the batch's transaction; then the
// conversations with an EndDialog or Error that it has not dealt with are ended, whether or not
// HandlerOptions.AutoEnd is set.
//
// One that cannot be reached, or says that it cannot work now, is left alone as a whole, for 0.1 s doubling to 30 s, and then
// tried with one call at a time until one gets through. What such a call rolls back does not count for the queue's
// poison limit, unless the handler may have seen the messages.
//
// Like every Handler it is safe for concurrent use.
type ExternalHandler struct {
	transport transport
	keepEnded bool
}

// Close ends what is behind the handler, programs or connections, and returns when it has ended. Run does it at its end
// for those registered with Handle.
func (h *ExternalHandler) Close() error { return h.transport.close() }

// String says what is behind the handler, without secrets.
func (h *ExternalHandler) String() string { return h.transport.String() }

// transport carries a request to a handler in another process, and its answer back.
type transport interface {
	// validate reports what is wrong with its options.
	validate() error
	// ready reports whether there is somebody to ask. It is called outside a transaction. Its errors and those of ask
	// that are not about the batch are of type unavailableError.
	ready(ctx context.Context) error
	// ask has take judge the answer: after one that it refuses nobody can tell what the handler thinks.
	ask(ctx context.Context, b *Batch, request []byte, take func(answer []byte) error) error
	close() error
	String() string
}

// unavailableError says that a handler cannot work now, whatever it is asked: it rests as a whole.
type unavailableError struct {
	err    error
	after  time.Duration // for how long; 0: for us to choose
	counts bool          // it may have seen the batch: a try like others
	known  bool          // it rests already, and the log has it
}

func (e *unavailableError) Error() string { return e.err.Error() }

func (e *unavailableError) Unwrap() error { return e.err }

// Handle asks the handler what to do with the batch, and does it.
func (h *ExternalHandler) Handle(ctx context.Context, b *Batch) error {
	state, _, err := StateOf[json.RawMessage](b).Get(ctx)
	if err != nil {
		return err
	}
	request, err := encodeRequest(b, state)
	if err != nil {
		return err
	}
	var a answer
	err = h.transport.ask(ctx, b, request, func(text []byte) (err error) {
		a, err = decodeAnswer(text)
		return err
	})
	if err != nil {
		return fmt.Errorf("%v: %w", h, err)
	}
	if err := apply(ctx, b, a); err != nil {
		return fmt.Errorf("%v: %w", h, err)
	}
	if h.keepEnded {
		return nil
	}
	return autoEnd(ctx, b)
}

// ExecOptions configures ExecHandler.
type ExecOptions struct {
	// Command to run. It reads requests from its standard input, a line each, and writes the answer to each to its
	// standard output, a line too.
	Command Command
	// KeepEnded leaves conversations that the peer or an error has ended, and the handler has not, as they are.
	KeepEnded bool
}

// Validate reports what is missing or malformed.
func (o ExecOptions) Validate() error { return o.Command.validate() }

// ExecHandler returns a Handler that asks programs: one for each call that runs at the same time. They are started
// as they are needed and live on between the calls; one that does not answer in time, or does not answer as it should, is
// killed with all it has started. One that has ended is started anew, after a pause of 0.1 s doubling to 30 s
// where it has not answered anything. What it has not begun to read (as far as Linux tells) is no failure of the messages.
func ExecHandler(o ExecOptions) *ExternalHandler {
	return &ExternalHandler{transport: &execTransport{command: o.Command}, keepEnded: o.KeepEnded}
}

// execTransport keeps programs.
type execTransport struct {
	command Command

	mu        sync.Mutex
	isClosed  bool
	all       map[*worker]struct{}
	idle      []*worker
	failures  int       // programs in a row that have ended without an answer
	restUntil time.Time // none is started before
}

// worker is one program. It belongs to one call at a time.
type worker struct {
	*process
	lines    chan []byte // what it has written
	lineErr  error       // why there are no more lines; not before lines is closed
	written  int         // bytes of the last request
	answered bool
}

// hasRead reports whether it may have read of the last request. It is known when the program has ended.
func (w *worker) hasRead() bool { return w.written > 0 && w.unread < w.written }

var (
	errClosed  = errors.New("the handler has been closed")
	errUnasked = errors.New("it has written a line before it was asked" + stdoutHint)
	errResting = errors.New("it is not started yet: the last one has ended without an answer")
)

const stdoutHint = "; stdout is for answers only, write messages to stderr"

func (t *execTransport) validate() error { return t.command.validate() }

func (t *execTransport) String() string { return "exec " + t.command.Args[0] }

// ready sees to it that there is a program, so that the first need not be started in a transaction, nor fail to.
func (t *execTransport) ready(context.Context) error {
	t.mu.Lock()
	t.discardEnded()
	pause, exists := time.Until(t.restUntil), len(t.all) > 0
	t.mu.Unlock()
	switch {
	case exists:
		return nil
	case pause > 0:
		return &unavailableError{err: errResting, after: pause, known: true}
	}
	w, err := t.start()
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = append(t.idle, w)
	return nil
}

// discardEnded takes programs off that have ended while they had nothing to do. The caller holds the mutex.
func (t *execTransport) discardEnded() {
	alive := t.idle[:0]
	for _, w := range t.idle {
		if !w.hasEnded() {
			alive = append(alive, w)
			continue
		}
		if w.err != nil {
			t.command.logger().Warn("the program has ended between two batches", "pid", w.pid, "error", w.err)
		}
		t.note(w)
	}
	clear(t.idle[len(alive):])
	t.idle = alive
}

// note takes note of how a program has ended. The caller holds the mutex.
func (t *execTransport) note(w *worker) {
	delete(t.all, w)
	if w.answered {
		t.failures = 0
		return
	}
	if now := time.Now(); !now.Before(t.restUntil) { // else it had begun before the rest
		t.failures++
		t.restUntil = now.Add(backoff(t.failures))
	}
}

// start starts a program. One that cannot be started counts like one that does not answer.
func (t *execTransport) start() (*worker, error) {
	w := &worker{lines: make(chan []byte, 1)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed {
		return nil, &unavailableError{err: errClosed}
	}
	p, err := startProcess(t.command, nil, w.read)
	if err != nil {
		t.note(w)
		return nil, &unavailableError{err: fmt.Errorf("%v: %w", t, err)}
	}
	w.process = p
	if t.all == nil {
		t.all = map[*worker]struct{}{}
	}
	t.all[w] = struct{}{}
	return w, nil
}

// acquire returns a program that has nothing to do.
func (t *execTransport) acquire() (*worker, error) {
	t.mu.Lock()
	t.discardEnded()
	if last := len(t.idle) - 1; last >= 0 {
		w := t.idle[last]
		t.idle = t.idle[:last]
		t.mu.Unlock()
		return w, nil
	}
	t.mu.Unlock()
	return t.start()
}

// release takes back a program that has answered.
func (t *execTransport) release(w *worker) {
	w.answered = true
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures = 0
	t.idle = append(t.idle, w)
}

func (t *execTransport) ask(ctx context.Context, _ *Batch, request []byte, take func([]byte) error) error {
	for {
		w, err := t.acquire()
		if err != nil {
			return err
		}
		answer, err := w.ask(ctx, request)
		if err == nil {
			if err = take(answer); err != nil {
				hint := ""
				if !json.Valid(answer) {
					hint = stdoutHint
				}
				err = fmt.Errorf("malformed answer: %w%s", err, hint)
			}
		}
		if err == nil {
			t.release(w)
			return nil
		}
		w.kill()
		<-w.done
		t.mu.Lock()
		t.note(w)
		t.mu.Unlock()
		switch {
		case w.answered && errors.Is(err, errEnded):
			// It had done its work and was about to end when it was asked once more.
		case w.hasRead():
			return err
		case !w.answered || ctx.Err() != nil:
			return &unavailableError{err: err}
		default:
			t.command.logger().Warn("another program is asked: this one has failed before it has read anything", "pid", w.pid, "error", err)
		}
	}
}

// errEnded says that a program has ended of its own accord.
var errEnded = errors.New("it has ended before it has answered")

// ask writes a request and reads the answer.
func (w *worker) ask(ctx context.Context, request []byte) ([]byte, error) {
	w.written = 0
	// A line that is there by now answers no question. After that, lines holds the answer and nothing else.
	select {
	case _, isOpen := <-w.lines:
		if isOpen {
			return nil, errUnasked
		}
	default:
	}
	release := context.AfterFunc(ctx, func() {
		w.kill()
		_ = w.stdin.SetWriteDeadline(time.Now()) // somebody out of the group may have the other end
	})
	defer release()
	var writeErr error
	w.written, writeErr = w.stdin.Write(request)
	if writeErr != nil && !ended(w.done, drainGrace) { // it reads no more; most likely it is about to end
		w.kill()
	}
	select {
	case line, isOpen := <-w.lines:
		if isOpen && writeErr == nil {
			return line, nil
		}
		if isOpen {
			return nil, errUnasked
		}
	case <-ctx.Done():
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case !errors.Is(w.lineErr, io.EOF) && !errors.Is(w.lineErr, io.ErrUnexpectedEOF):
		return nil, fmt.Errorf("answer: %w", w.lineErr)
	case !ended(w.done, drainGrace):
		return nil, errors.New("it has closed its standard output before it has answered")
	case w.err != nil:
		return nil, fmt.Errorf("it has ended before it has answered: %w", w.err)
	}
	if !errors.Is(w.lineErr, io.EOF) {
		return nil, errors.New("it has ended in the middle of its answer")
	}
	return nil, errEnded
}

// read passes on what the program writes to its standard output.
func (w *worker) read(p *process, r io.Reader) {
	defer close(w.lines)
	lines := bufio.NewReaderSize(r, 64<<10)
	for {
		line, err := readLine(lines, answerLimit)
		if err != nil {
			w.lineErr = err
			return
		}
		select {
		case w.lines <- line:
		default:
			// Two lines, and nobody has asked for the second.
			w.lineErr = errUnasked
			p.kill()
			return
		}
	}
}

// close stops all programs.
func (t *execTransport) close() error {
	t.mu.Lock()
	t.isClosed = true
	var group sync.WaitGroup
	for w := range t.all {
		group.Go(w.stop)
	}
	t.all, t.idle = nil, nil
	t.mu.Unlock()
	group.Wait()
	return nil
}

// HTTPOptions configures HTTPHandler.
type HTTPOptions struct {
	// URL to post to. User and password in it become the Authorization header.
	URL string
	// Headers are added to every request.
	Headers map[string]string
	// KeepEnded leaves conversations that the peer or an error has ended, and the handler has not, as they are.
	KeepEnded bool
}

// Validate reports what is missing or malformed.
func (o HTTPOptions) Validate() error {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return errors.New("the url is not http://… or https://…") // it may hold a password
	}
	for name, value := range o.Headers {
		if !isToken(name) || strings.ContainsAny(value, "\r\n\x00") {
			return fmt.Errorf("%q is no name of a header, or its value holds a line end or NUL", name)
		}
	}
	return nil
}

// isToken reports whether s is what a header may be called.
func isToken(s string) bool {
	for _, c := range s {
		isLetter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !isLetter && !strings.ContainsRune("!#$%&'*+-.^_`|~", c) {
			return false
		}
	}
	return s != ""
}

// HTTPHandler returns a Handler that posts each request to a URL; the body of the answer, with a status of 200 to 299, is
// what to do. Redirects are not followed. The header Idempotency-Key is the same for every try of a batch.
func HTTPHandler(o HTTPOptions) *ExternalHandler {
	connections := &http.Transport{}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok {
		connections = usual.Clone()
	}
	connections.MaxIdleConns = cmp.Or(connections.MaxIdleConns, 100)
	connections.MaxIdleConnsPerHost = connections.MaxIdleConns // one host is all there is
	t := &httpTransport{
		options: o, client: &http.Client{
			Transport:     connections,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
	dial := connections.DialContext
	if dial == nil {
		dial = (&net.Dialer{Timeout: callTimeout}).DialContext
	}
	t.dial = dial
	connections.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		t.address.Store(&address)
		return dial(ctx, network, address)
	}
	return &ExternalHandler{transport: t, keepEnded: o.KeepEnded}
}

type httpTransport struct {
	options HTTPOptions
	client  *http.Client

	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	address   atomic.Pointer[string] // where connections go to: the service, or a proxy
	isUnheard atomic.Bool            // the last request has found no connection
}

func (t *httpTransport) String() string {
	u, err := url.Parse(t.options.URL)
	if err != nil {
		return "http"
	}
	u.User, u.RawQuery = nil, "" // where secrets are
	return "http " + u.String()
}

func (t *httpTransport) validate() error { return t.options.Validate() }

// ready looks whether there is somebody again where there was nobody.
func (t *httpTransport) ready(ctx context.Context) error {
	address := t.address.Load()
	if !t.isUnheard.Load() || address == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := t.dial(ctx, "tcp", *address)
	if err != nil {
		return &unavailableError{err: fmt.Errorf("%v: %w", t, err)}
	}
	t.isUnheard.Store(false)
	return conn.Close()
}

func (t *httpTransport) ask(ctx context.Context, b *Batch, request []byte, take func([]byte) error) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.options.URL, bytes.NewReader(request))
	if err != nil {
		return errors.New("the url is malformed")
	}
	for name, value := range t.options.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Idempotency-Key", idempotencyKey(b))
	// Nothing has been delivered until there is a connection: neither when there is no such host, or nobody there, nor
	// when the certificate is bad. The client may try several.
	var isConnected atomic.Bool
	r = r.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { isConnected.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { isConnected.Store(true) },
	}))
	response, err := t.client.Do(r)
	t.isUnheard.Store(!isConnected.Load())
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the url, in which secrets may be
		}
		if !isConnected.Load() {
			return &unavailableError{err: err}
		}
		return err
	}
	defer response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode > 299 {
		const shown = 500
		start, _ := io.ReadAll(io.LimitReader(response.Body, shown))                // as far as it goes
		_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, int64(lineLimit))) // so that the connection can be used again
		err := fmt.Errorf("status %s: %q", response.Status, start)
		switch response.StatusCode {
		case http.StatusServiceUnavailable, http.StatusTooManyRequests: // "not now"
			return &unavailableError{err: err, after: retryAfter(response.Header, time.Now())}
		case http.StatusBadGateway, http.StatusGatewayTimeout: // somebody behind it may have had the request
			return &unavailableError{err: err, after: retryAfter(response.Header, time.Now()), counts: true}
		}
		return err
	}
	answer, err := io.ReadAll(io.LimitReader(response.Body, int64(answerLimit)+1))
	switch {
	case err != nil:
		return fmt.Errorf("answer: %w", err)
	case len(answer) > answerLimit:
		return fmt.Errorf("answer: longer than %d bytes", answerLimit)
	}
	if err := take(answer); err != nil {
		return fmt.Errorf("malformed answer: %w", err)
	}
	return nil
}

// maxRest is the longest time for which a handler is left alone without a try.
const maxRest = 30 * time.Second

// retryAfter is for how long a response asks to be left alone; 0 when it does not.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := h.Get("Retry-After")
	if value == "" {
		return 0
	}
	after := time.Duration(0)
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil {
		after = time.Duration(min(seconds, uint64(maxRest/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		after = at.Sub(now)
	} else {
		return 0
	}
	return min(max(after, firstGuard), maxRest)
}

// idempotencyKey names the batch by its first message: messages that a rollback has put back come again in the same
// order. Several timers and errors of one conversation are told apart by their time.
func idempotencyKey(b *Batch) string {
	first := b.Messages[0]
	number := strconv.FormatInt(first.SequenceNumber, 10)
	if first.Kind() == sbroker.KindDialogTimer || first.Kind() == sbroker.KindError {
		number += "/" + strconv.FormatInt(first.EnqueuedAt.UnixMicro(), 10)
	}
	return b.Group.String() + "/" + first.Conversation.String() + "/" + number
}

// close closes the connections that are kept.
func (t *httpTransport) close() error {
	t.client.CloseIdleConnections()
	return nil
}
