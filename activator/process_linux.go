package activator

import "syscall"

// dieWithParent makes the kernel kill the program when we are killed: nobody else works on its messages then.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
