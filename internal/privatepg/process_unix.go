//go:build unix

package privatepg

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// supervisor runs a program that must not outlive us. It reads signal names from its standard input, which is a
// pipe of ours: when we die, however suddenly, the pipe closes, and the program is told to quit at once and a
// temporary directory removed. (The kernel's parent-death signal exists only on Linux, goes off when a mere thread
// ends, and removes nothing.) The program inherits descriptor 3, the lock of its directory.
const supervisor = `
remove=$1
shift
exec 4<&0 </dev/null
"$@" 4<&- &
program=$!
(
  while read -r signal <&4; do kill -s "$signal" "$program"; done
  kill -s QUIT "$program"
) &
watcher=$!
wait "$program"
code=$?
kill "$watcher" 2>/dev/null
# A watcher that could not be killed any more has seen the pipe close.
if wait "$watcher" && [ -n "$remove" ]; then cd / && rm -rf "$remove"; fi
exit $code
`

// process is a program under the supervisor. err may be read once done is closed.
type process struct {
	signals io.WriteCloser
	done    chan struct{}
	err     error
}

func startProcess(h *home, log *os.File, program string, args ...string) (*process, error) {
	remove := ""
	if h.temporary {
		remove = h.dir
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", supervisor, "sbroker-postgres", remove, program}, args...)...)
	cmd.Dir = h.dir // ours may be closed to the other user
	cmd.Env = serverEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{h.lock}
	// Out of our terminal's reach: Ctrl-C is for us to handle.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if h.owner != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: h.owner.uid, Gid: h.owner.gid}
	}
	signals, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		if h.owner != nil && errors.Is(err, os.ErrPermission) {
			return nil, fmt.Errorf("PostgreSQL refuses root and runs as user %s, who cannot reach %s: choose another directory",
				h.owner.name, h.dir)
		}
		return nil, err
	}
	p := &process{signals: signals, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// stop ends a server: at once when its data are not needed, else after a checkpoint.
func (p *process) stop(ctx context.Context, atOnce bool) error {
	signal := "INT\n"
	if atOnce {
		signal = "QUIT\n"
	}
	_, _ = io.WriteString(p.signals, signal) // fails when it is gone already
	select {
	case <-p.done:
		return nil
	case <-ctx.Done():
		p.kill()
		return fmt.Errorf("private PostgreSQL had to be killed: %w", ctx.Err())
	}
}

// kill does what our death would do, and waits for it.
func (p *process) kill() {
	_ = p.signals.Close()
	<-p.done
}

// account is the user the server runs as, nil for our own.
type account struct {
	name     string
	uid, gid uint32
}

// serverAccount picks another user when we are root, which PostgreSQL refuses to run as.
func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, err
		}
		return &account{name: name, uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody")
}

// own gives a file to the account.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Chown(path, int(a.uid), int(a.gid))
}

// ids is the account as a container takes it.
func (a *account) ids() string {
	if a == nil {
		return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
	}
	return fmt.Sprintf("%d:%d", a.uid, a.gid)
}

// String explains, in an error, who ran the program.
func (a *account) String() string {
	if a == nil {
		return ""
	}
	return fmt.Sprintf(" (as user %s)", a.name)
}

// lockHome takes the directory's lock. The server and all its processes inherit it, so whoever gets it knows that
// they have ended too. When the holder has died, its server is about to go, which is worth a wait.
func lockHome(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := takeLock(f, time.Now().Add(stopTimeout)); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	if _, err := f.WriteAt(fmt.Appendf(nil, "%-15d\n", os.Getpid()), 0); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func takeLock(f *os.File, deadline time.Time) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		buf := make([]byte, 16)
		n, _ := f.ReadAt(buf, 0) // empty for the moment between the holder's lock and its writing
		holder, _ := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
		alive := holder != 0 && !errors.Is(syscall.Kill(holder, 0), syscall.ESRCH)
		if alive || time.Now().After(deadline) {
			return fmt.Errorf("already in use, by process %d", holder)
		}
		<-tick.C
	}
}
