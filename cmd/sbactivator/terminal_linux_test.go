package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pgsbroker/sbroker/internal/pgtest"
	"github.com/pgsbroker/sbroker/internal/screen"
)

// terminal is the program at a terminal of its own.
type terminal struct {
	cmd    *exec.Cmd
	master *os.File
	seen   *pgtest.Buffer
	done   chan error
}

func startTerminal(t *testing.T, columns, rows uint16, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
	x := &terminal{cmd: exec.Command(os.Args[0], "-test.run=^TestMainProcess$"), master: master, seen: &pgtest.Buffer{}, done: make(chan error, 1)}
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "NO_COLOR=") && !strings.HasPrefix(variable, "TERM=") {
			x.cmd.Env = append(x.cmd.Env, variable)
		}
	}
	x.cmd.Env = append(x.cmd.Env, "TERM=xterm", "TEST_MAIN_PROCESS="+strings.Join(args, "\n"))
	x.cmd.Dir = t.TempDir()
	x.cmd.Stdin, x.cmd.Stdout, x.cmd.Stderr = slave, slave, slave
	if err := x.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			_, _ = x.seen.Write(buffer[:n])
			if err != nil {
				return // the other end is closed
			}
		}
	})
	go func() {
		err := x.cmd.Wait()
		reading.Wait()
		x.done <- err
	}()
	t.Cleanup(func() { _ = x.cmd.Process.Kill() })
	return x
}

// wait returns the exit code and what was on the screen.
func (x *terminal) wait(t *testing.T) (code int, text string) {
	t.Helper()
	select {
	case <-x.done:
	case <-time.After(20 * time.Second):
		t.Fatalf("still running:\n%s", x.seen)
	}
	return x.cmd.ProcessState.ExitCode(), strings.ReplaceAll(x.seen.String(), "\r\n", "\n")
}

func (x *terminal) waitFor(t *testing.T, text string) {
	t.Helper()
	pgtest.Eventually(t, 20*time.Second, func() bool { return strings.Contains(x.seen.String(), text) })
}

var control = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)

// At a terminal there are colours, and no line is wider than it.
func TestTerminalStatus(t *testing.T) {
	t.Parallel()
	db, _ := newOffice(t)
	code, text := startTerminal(t, 76, 50, "status", "--database-url", db.URL()).wait(t)
	if code != exitDone || !strings.Contains(text, "\x1b[31mpoison\x1b[0m") {
		t.Errorf("exit code %d\n%q", code, text)
	}
	for line := range strings.Lines(control.ReplaceAllString(text, "")) {
		if line = strings.TrimRight(line, "\n"); screen.Width(line) > 76 || strings.Contains(line, "\x1b") {
			t.Errorf("%q", line)
		}
	}
}

// --watch draws over what it has drawn, no higher than the terminal.
func TestTerminalWatch(t *testing.T) {
	t.Parallel()
	db, _ := newOffice(t)
	x := startTerminal(t, 80, 8, "status", "--watch", "--interval", "100ms", "--database-url", db.URL())
	pgtest.Eventually(t, 20*time.Second, func() bool { return strings.Count(x.seen.String(), "\x1b[H") >= 3 })
	if err := x.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	code, text := x.wait(t)
	if code != exitDone {
		t.Errorf("exit code %d", code)
	}
	for _, frame := range strings.Split(text, "\x1b[H")[1:] {
		if n := strings.Count(frame, "\n"); n > 7 {
			t.Errorf("%d lines: %q", n, frame)
		}
	}
}

// conversation end asks, and everything but a yes is no.
func TestTerminalConversationEnd(t *testing.T) {
	t.Parallel()
	db, conn, initiator, target := newTalk(t)
	left := func() string {
		return strings.Join(pgtest.Strings(t, conn, "select e.conversation_handle from sb.conversation_endpoints as e order by e.is_initiator desc"), " ")
	}
	for _, answer := range []string{"\n", "n\n", "maybe\n", "\x04"} {
		x := startTerminal(t, 80, 24, "conversation", "end", target, "--cleanup", "--database-url", db.URL())
		x.waitFor(t, `[y/N] `)
		if _, err := x.master.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		if code, text := x.wait(t); code != exitFailed || !strings.Contains(text, "nothing was ended") ||
			!strings.Contains(text, `Remove, without telling the other side, the side of //server in its conversation with //client\n' (CONVERSING), 3 messages unread?`) {
			t.Errorf("%q: exit code %d\n%s", answer, code, text)
		}
		if got := left(); got != initiator+" "+target {
			t.Errorf("%q: left %s", answer, got)
		}
	}
	x := startTerminal(t, 80, 24, "conversation", "end", target, "--cleanup", "--database-url", db.URL())
	x.waitFor(t, "[y/N] ")
	if err := x.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code, text := x.wait(t); code != exitFailed || !strings.Contains(text, "interrupted; nothing was ended") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	x = startTerminal(t, 80, 24, "conversation", "end", target, "--cleanup", "--database-url", db.URL())
	x.waitFor(t, "[y/N] ")
	if _, err := bytes.NewReader([]byte("Yes\n")).WriteTo(x.master); err != nil {
		t.Fatal(err)
	}
	if code, text := x.wait(t); code != exitDone || !strings.Contains(text, "is removed") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if got := left(); got != initiator {
		t.Errorf("left %s", got)
	}
}

// migrate down asks at a terminal.
func TestTerminalMigrateDown(t *testing.T) {
	t.Parallel()
	db := migratedDB(t)
	execAll(t, db.Conn(t), twoServices+dialog)
	for _, test := range []struct {
		args, question, answer, want string
		code                         int
	}{
		{"", "Undo version 3 of sb?", "\n", "nothing was undone", exitFailed},
		{" --all", "all conversations and messages too?", "n\n", "nothing was undone", exitFailed},
		{" --all", "all conversations and messages too?", "y\n", "version 0, was 3", exitDone},
	} {
		x := startTerminal(t, 120, 24, strings.Fields("migrate down --database-url "+db.URL()+test.args)...)
		x.waitFor(t, "[y/N] ")
		if _, err := x.master.WriteString(test.answer); err != nil {
			t.Fatal(err)
		}
		if code, text := x.wait(t); code != test.code || !strings.Contains(text, test.question) || !strings.Contains(text, test.want) {
			t.Errorf("%+v: exit code %d\n%s", test, code, text)
		}
	}
}
