//go:build !linux

package proc

import "syscall"

// Leader are the attributes of a program that leads a process group. It outlives this
// process when that is killed.
func Leader() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
