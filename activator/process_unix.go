//go:build unix

package activator

import "syscall"

// processAttributes puts a program into a group of its own: out of reach of our terminal's Ctrl-C, and to be
// signalled together with what it starts.
func processAttributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(attr)
	return attr
}

func terminateGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGTERM) } // there may be nobody left

func killGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }
