//go:build !linux

package proc

import "syscall"

// Leader returns attributes that make a program the leader of a process group. The program survives
// if this process is killed.
func Leader() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
