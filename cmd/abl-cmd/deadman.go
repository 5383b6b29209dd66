//go:build linux

package main

import (
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigevent is what the kernel takes for how a timer shall tell.
type sigevent struct {
	value  uintptr
	signo  int32
	notify int32 // 0: by a signal
	_      [48]byte
}

// itimerspec is a period and the time until the first end.
type itimerspec struct{ interval, value unix.Timespec }

// Arm has the kernel kill this process after a time, even when somebody has
// stopped it by SIGSTOP, and keeps others of the same user from reaching into it
// to take the timer away. In a container whose first process ends with this one
// everything ends with it.
func armDeadMan(after time.Duration) error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot keep others out of this process: %w", err)
	}
	var timer int32
	event := sigevent{signo: int32(unix.SIGKILL)}
	_, _, errno := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&timer)))
	if errno != 0 {
		return fmt.Errorf("cannot make a timer: %w", errno)
	}
	end := itimerspec{value: unix.NsecToTimespec(max(int64(after), 1))} // 0 would never end
	_, _, errno = unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(timer), 0, uintptr(unsafe.Pointer(&end)), 0, 0, 0)
	if errno != 0 {
		return fmt.Errorf("cannot set a timer: %w", errno)
	}
	return nil
}
