package main

import (
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// steered lists the calls with which a program changes the scheduling or the limits of another
// program of the same user. Each takes the id of a process or of a thread.
var steered = map[string]func(id int) error{
	"sched_setscheduler": func(id int) error {
		return number(unix.SYS_SCHED_SETSCHEDULER, at(id), schedIdle, structure(new(int32)))
	},
	"sched_setparam": func(id int) error { return number(unix.SYS_SCHED_SETPARAM, at(id), structure(new(int32))) },
	"sched_setattr": func(id int) error {
		return unix.SchedSetAttr(id, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: schedIdle}, 0)
	},
	"sched_setaffinity": func(id int) error { var one unix.CPUSet; one.Set(0); return unix.SchedSetaffinity(id, &one) },
	"setpriority":       func(id int) error { return unix.Setpriority(unix.PRIO_PROCESS, id, 19) },
	"setpriority_group": func(id int) error { return unix.Setpriority(unix.PRIO_PGRP, id, 19) },
	"setpriority_user":  func(int) error { return unix.Setpriority(unix.PRIO_USER, os.Getuid(), 19) },
	"ioprio_set":        func(id int) error { return number(unix.SYS_IOPRIO_SET, ioprioProcess, at(id), ioprioIdle) },
	"ioprio_set_group":  func(id int) error { return number(unix.SYS_IOPRIO_SET, ioprioGroup, at(id), ioprioIdle) },
	"ioprio_set_user":   func(int) error { return number(unix.SYS_IOPRIO_SET, ioprioUser, at(os.Getuid()), ioprioIdle) },
	"prlimit": func(id int) error {
		return unix.Prlimit(id, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 3, Max: 3}, nil)
	},
}

const (
	schedIdle = 5

	ioprioProcess, ioprioGroup, ioprioUser = 1, 2, 3
	ioprioIdle                             = 3 << 13

	// The kernel reads an id from the lower half of a register.
	garbage = 0x7fff_ffff << 32
)

func structure[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

// steers makes each call on process 1, without and with garbage in the upper half of the
// register, and then on its own process group after joining that of process 1.
func steers([]string) {
	_ = unix.Setpgid(0, 1)
	for name, call := range steered {
		report(name, call(1))
		report(name+" with garbage", call(1|garbage))
	}
	report("setpriority of its group", unix.Setpriority(unix.PRIO_PGRP, 0, 19))
	report("ioprio_set of its group", number(unix.SYS_IOPRIO_SET, ioprioGroup, 0, ioprioIdle))
	for _, file := range []string{"oom_score_adj", "autogroup", "coredump_filter", "clear_refs", "timerslack_ns"} {
		err := os.WriteFile("/proc/1/"+file, []byte("1"), 0)
		if os.IsNotExist(err) {
			err = unix.EACCES // a kernel without this call
		}
		report(file, err)
	}
}
