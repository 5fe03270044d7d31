package activator

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	stopGrace  = 5 * time.Second // from SIGTERM to SIGKILL
	drainGrace = time.Second     // for what a process that has ended has still written
	lineLimit  = 8 << 10         // of a line of a process in the log
	lineRate   = 100             // such lines a second and stream
)

// Command is a program to run.
type Command struct {
	// Args is the program, looked up in PATH, and its arguments.
	Args []string
	// Dir is its working directory; "" is that of this process.
	Dir string
	// Env is added to the environment. Of this process's environment a program gets all but the variables
	// whose names begin with PG or SBACTIVATOR_, which lead to the database, unless PassDatabase is set.
	Env map[string]string
	// PassDatabase adds those that begin with PG, and DatabaseURL as SBROKER_DATABASE_URL.
	PassDatabase bool
	// DatabaseURL is what a program connects with, as libpq takes it: together with the PG* variables.
	DatabaseURL string
	// Logger hears what the program writes to stderr; nil is silence.
	Logger *slog.Logger
}

func (c Command) validate() error {
	if len(c.Args) == 0 || c.Args[0] == "" {
		return errors.New("there is no command")
	}
	for name, value := range c.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("%q is no name of a variable, or its value holds a NUL", name)
		}
	}
	for _, arg := range c.Args {
		if strings.ContainsRune(arg, 0) {
			return errors.New("the command holds a NUL")
		}
	}
	return nil
}

// Check reports why the command cannot be started, as far as that can be seen without doing it.
func (c Command) Check() error {
	if err := c.validate(); err != nil {
		return err
	}
	cmd := exec.Command(c.Args[0])
	path := cmd.Path
	if cmd.Err != nil {
		return cmd.Err
	}
	if c.Dir != "" {
		if info, err := os.Stat(c.Dir); err != nil {
			return err
		} else if !info.IsDir() {
			return fmt.Errorf("%s is no directory", c.Dir)
		}
		if strings.ContainsRune(c.Args[0], os.PathSeparator) && !os.IsPathSeparator(path[0]) {
			path = c.Dir + string(os.PathSeparator) + path // that is where it is looked for
		}
	}
	_, err := exec.LookPath(path)
	return err
}

// environ is the environment of the program.
func (c Command) environ(more map[string]string) []string {
	var env []string
	for _, pair := range os.Environ() {
		switch {
		case strings.HasPrefix(pair, "SBACTIVATOR_"), strings.HasPrefix(pair, "SBROKER_DATABASE_URL="):
		case strings.HasPrefix(pair, "PG") && !c.PassDatabase:
		default:
			env = append(env, pair)
		}
	}
	if c.PassDatabase {
		env = append(env, "SBROKER_DATABASE_URL="+c.DatabaseURL)
	}
	for _, vars := range []map[string]string{more, c.Env} { // of equal names the last one counts
		for _, name := range slices.Sorted(maps.Keys(vars)) {
			env = append(env, name+"="+vars[name])
		}
	}
	return env
}

func (c Command) logger() *slog.Logger {
	if c.Logger == nil {
		return slog.New(slog.DiscardHandler)
	}
	return c.Logger
}

// process is a running program, the leader of a process group. Its standard input is a pipe of ours: when we end,
// however suddenly, it comes to its end, and so does a program that waits for it. Where the kernel can, it kills the
// program then.
type process struct {
	pid   int
	stdin *os.File
	done  chan struct{} // closed when the program has ended and all it has written has been read
	err   error         // how it ended; not before done

	unread int // bytes of its standard input that it has left; -1: the system does not tell. Not before done

	mu     sync.Mutex
	reaped bool // the group's number may be somebody else's
}

// startProcess starts a program. What it writes to stdout is read by readOutput, in a goroutine of its own, and to
// stderr line by line into the log.
func startProcess(c Command, env map[string]string, readOutput func(*process, io.Reader)) (*process, error) {
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, c.environ(env)
	cmd.SysProcAttr = processAttributes()
	var (
		files [6]*os.File // stdin, stdout and stderr: read end and write end of each
		err   error
	)
	closeAll := func(list ...*os.File) {
		for _, f := range list {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := 0; i < len(files) && err == nil; i += 2 {
		files[i], files[i+1], err = os.Pipe()
	}
	if err != nil {
		closeAll(files[:]...)
		return nil, err
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	p := &process{stdin: files[1], done: make(chan struct{})}
	stdout, stderr := files[2], files[4]
	started := make(chan error)
	go func() {
		// The kernel takes the end of the thread that has started the program for ours.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		closeAll(files[0], files[3], files[5])
		if err != nil {
			closeAll(p.stdin, stdout, stderr)
			started <- err
			return
		}
		p.pid = cmd.Process.Pid
		var readers sync.WaitGroup
		readers.Go(func() { readOutput(p, stdout) })
		readers.Go(func() { logLines(stderr, c.logger().With("pid", p.pid), "stderr") })
		started <- nil
		p.err = cmd.Wait()
		p.mu.Lock()
		killGroup(p.pid) // what it has left behind has no business any more
		p.reaped = true
		p.mu.Unlock()
		deadline := time.Now().Add(drainGrace)
		_ = stdout.SetReadDeadline(deadline) // somebody out of the group may have the other ends
		_ = stderr.SetReadDeadline(deadline)
		readers.Wait()
		p.unread = unread(p.stdin)
		closeAll(p.stdin, stdout, stderr)
		close(p.done)
	}()
	if err := <-started; err != nil {
		// Not wrapped: an errno passes for a net.Error, and so for an outage of the database.
		return nil, errors.New("cannot be started: " + err.Error())
	}
	return p, nil
}

// signal does something to the whole group, without waiting for what comes of it.
func (p *process) signal(send func(pid int)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		send(p.pid)
	}
}

func (p *process) terminate() { p.signal(terminateGroup) }

func (p *process) kill() { p.signal(killGroup) }

// stop asks the group to end, kills it when it has not soon, and returns when it has.
func (p *process) stop() {
	p.stdin.Close()
	p.terminate()
	if !ended(p.done, stopGrace) {
		p.kill()
		<-p.done
	}
}

// hasEnded reports whether the program has ended.
func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// logLines logs what r yields, line by line, within bounds, to its end.
func logLines(r io.Reader, log *slog.Logger, stream string) {
	lines := bufio.NewReaderSize(r, lineLimit)
	var (
		window time.Time
		logged int
	)
	for {
		line, err := lines.ReadSlice('\n')
		isCut := errors.Is(err, bufio.ErrBufferFull)
		if len(line) > 0 {
			if time.Since(window) >= time.Second {
				window, logged = time.Now(), 0
			}
			switch logged++; {
			case logged <= lineRate && isCut:
				log.Info("program output", "stream", stream, "line", string(line), "cut", true)
			case logged <= lineRate:
				log.Info("program output", "stream", stream, "line", string(bytes.TrimRight(line, "\r\n")))
			case logged == lineRate+1:
				log.Warn("the program writes too much for the log: lines are left out", "stream", stream)
			}
		}
		for isCut { // the rest of the line
			_, err = lines.ReadSlice('\n')
			isCut = errors.Is(err, bufio.ErrBufferFull)
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line of at most limit bytes, without its end.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit+1:
			return nil, fmt.Errorf("longer than %d bytes", limit)
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			if len(line) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
}
