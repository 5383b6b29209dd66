package proc

import "syscall"

// Leader are the attributes of a program that leads a process group, and is killed when
// the thread that started it ends: with this process, whatever ends that.
func Leader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
