package proc

import "syscall"

// Leader returns attributes that make a program the leader of a process group. The kernel kills it
// when the thread that started it ends, in particular when this process ends.
func Leader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
