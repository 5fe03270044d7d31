package activator

import (
	"os"
	"syscall"
)

// processAttributes puts a program out of reach of our console's Ctrl-C.
func processAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// terminateGroup cannot ask: there are no signals. A program that reads its standard input has seen its end.
func terminateGroup(int) {}

// killGroup kills the program; what it has started is left.
func killGroup(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill()
		_ = p.Release()
	}
}
