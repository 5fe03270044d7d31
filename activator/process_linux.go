package activator

import (
	"os"
	"syscall"
	"unsafe"
)

// dieWithParent makes the kernel kill the program when we are killed: nobody else works on its messages then.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// unread is how many bytes wait in a pipe; -1 when that cannot be told.
func unread(pipe *os.File) int {
	n := int32(-1)
	raw, err := pipe.SyscallConn()
	if err != nil {
		return -1
	}
	err = raw.Control(func(fd uintptr) {
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, fd, syscall.TIOCINQ, uintptr(unsafe.Pointer(&n))); errno != 0 {
			n = -1
		}
	})
	if err != nil {
		return -1
	}
	return int(n)
}
