package privatepg

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"unsafe"

	"golang.org/x/sys/windows"
)

// process is a program in a job object of ours. err may be read once done is closed.
type process struct {
	cmd   *exec.Cmd
	pgCtl string
	done  chan struct{}
	err   error
}

// startProcess runs the program in a job that the system ends when our last handle on it goes, that is, when we
// die. What the program starts before it is in the job, it can only start later than that.
func startProcess(h *home, log *os.File, program string, args ...string) (*process, error) {
	job, err := newJob()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = h.dir
	cmd.Env = serverEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &windows.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP} // Ctrl-C is for us
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, windows.CloseHandle(job))
	}
	p := &process{cmd: cmd, pgCtl: filepath.Join(filepath.Dir(program), "pg_ctl.exe"), done: make(chan struct{})}
	err = assign(job, cmd.Process.Pid)
	go func() {
		p.err = cmd.Wait()
		_ = windows.CloseHandle(job)
		close(p.done)
	}()
	if err != nil {
		p.kill()
		return nil, err
	}
	return p, nil
}

func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	if err != nil {
		return 0, errors.Join(err, windows.CloseHandle(job))
	}
	return job, nil
}

func assign(job windows.Handle, pid int) error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(process)
	return windows.AssignProcessToJobObject(job, process)
}

// stop ends a server: at once when its data are not needed, else after a checkpoint. Only pg_ctl can signal a
// server here.
func (p *process) stop(ctx context.Context, atOnce bool) error {
	signal := "INT"
	if atOnce {
		signal = "QUIT"
	}
	err := exec.CommandContext(ctx, p.pgCtl, "kill", signal, strconv.Itoa(p.cmd.Process.Pid)).Run()
	if err == nil {
		select {
		case <-p.done:
			return nil
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	p.kill()
	return fmt.Errorf("private PostgreSQL had to be killed: %w", err)
}

// kill ends the program at once, and its children with it, and waits for that.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// account is the user the server runs as; here it is always our own.
type account struct{}

func serverAccount() (*account, error) { return nil, nil }

func (a *account) own(string) error { return nil }

// ids leaves the choice to the image.
func (a *account) ids() string { return "" }

func (a *account) String() string { return "" }

// lockHome takes the directory's lock by opening its file for nobody else to open. A job's processes end with us,
// so whoever gets it knows that the server has ended too.
func lockHome(dir string) (*os.File, error) {
	name := filepath.Join(dir, "lock")
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	handle, err := windows.CreateFile(path, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil,
		windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) {
		return nil, fmt.Errorf("%s: already in use by another process", dir)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return os.NewFile(uintptr(handle), name), nil
}
