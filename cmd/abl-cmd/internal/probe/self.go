//go:build linux

package probe

import (
	"errors"
	"maps"
	"os"
	"slices"
	"strings"

	"abl/internal/helper"
	"abl/internal/sandbox"

	"golang.org/x/sys/unix"
)

// status checks in /proc/self/status that the program has the expected user, and cannot change it.
func status(text, user string) sandbox.Proof {
	field := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		field[key] = strings.Join(strings.Fields(value), " ")
	}
	uid, gid, _ := strings.Cut(user, ":")
	who := sandbox.Same("user inside", four(uid), field["Uid"])
	if strings.Trim(uid, "0") == "" {
		who.Want, who.OK = "not root", false
	}
	groups := field["Groups"]
	if groups == gid {
		groups = ""
	}
	var caps []string
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"} {
		if value := field[set]; value == "" || strings.Trim(value, "0") != "" {
			caps = append(caps, set+" "+value)
		}
	}
	return sandbox.Proof{
		who,
		sandbox.Same("group inside", four(gid), field["Gid"]),
		sandbox.Same("supplementary groups inside", "", groups),
		sandbox.Same("capabilities inside", "", strings.Join(caps, ", ")),
		sandbox.Same("no new privileges", "1", field["NoNewPrivs"]),
		sandbox.Same("system calls filtered", "2", field["Seccomp"]),
	}
}

// four returns an id as the real, effective, saved and file system id.
func four(id string) string { return strings.Join([]string{id, id, id, id}, " ") }

// environment checks that exactly the expected variables exist, with the expected values. The
// result, which is stored, contains no value.
func environment(env []string, expected map[string]string) sandbox.Check {
	var got []string
	for _, line := range env {
		name, value, _ := strings.Cut(line, "=")
		if digest, ok := expected[name]; ok && digest != "" && digest != helper.Digest(value) {
			name += " with another value"
		}
		got = append(got, name)
	}
	// A variable that may have any value may also be missing.
	want := slices.DeleteFunc(slices.Sorted(maps.Keys(expected)), func(name string) bool {
		return expected[name] == "" && !slices.Contains(got, name)
	})
	slices.Sort(got)
	return sandbox.Same("environment inside", strings.Join(want, " "), strings.Join(got, " "))
}

// call is a system call that no container may make. Without the filter, its arguments cause another
// error than a refusal, and no effect.
type call struct {
	name string
	trap uintptr
	args [5]uintptr
}

const (
	nobody = 1<<31 - 1   // an id of a process that never exists
	closed = ^uintptr(0) // an invalid descriptor
)

// forbidden lists system calls that access other processes, or parts of the kernel that were used
// to escape from containers.
var forbidden = []call{
	{"process_vm_readv", unix.SYS_PROCESS_VM_READV, [5]uintptr{nobody}},
	{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, [5]uintptr{nobody}},
	{"ptrace", unix.SYS_PTRACE, [5]uintptr{unix.PTRACE_CONT, nobody}},
	{"kcmp", unix.SYS_KCMP, [5]uintptr{nobody, nobody}},
	{"pidfd_getfd", unix.SYS_PIDFD_GETFD, [5]uintptr{closed}},
	{"process_madvise", unix.SYS_PROCESS_MADVISE, [5]uintptr{closed}},
	{"io_uring_setup", unix.SYS_IO_URING_SETUP, [5]uintptr{1}},
	{"io_uring_enter", unix.SYS_IO_URING_ENTER, [5]uintptr{closed}},
	{"userfaultfd", unix.SYS_USERFAULTFD, [5]uintptr{closed}},
	{"bpf", unix.SYS_BPF, [5]uintptr{closed}},
	{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, [5]uintptr{}},
	{"keyctl", unix.SYS_KEYCTL, [5]uintptr{closed}},
	{"add_key", unix.SYS_ADD_KEY, [5]uintptr{}},
	{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, [5]uintptr{closed}},
	{"unshare", unix.SYS_UNSHARE, [5]uintptr{unix.CLONE_NEWUSER | unix.CLONE_THREAD}},
	{"clone", unix.SYS_CLONE, [5]uintptr{unix.CLONE_NEWUSER | unix.CLONE_FS}}, // an invalid combination
	{"clone3", unix.SYS_CLONE3, [5]uintptr{}},
	{"setns", unix.SYS_SETNS, [5]uintptr{closed}},
	{"mount_setattr", unix.SYS_MOUNT_SETATTR, [5]uintptr{closed}},
	{"sched_setscheduler", unix.SYS_SCHED_SETSCHEDULER, [5]uintptr{nobody}},
	{"sched_setparam", unix.SYS_SCHED_SETPARAM, [5]uintptr{nobody}},
	{"sched_setattr", unix.SYS_SCHED_SETATTR, [5]uintptr{nobody}},
	{"sched_setaffinity", unix.SYS_SCHED_SETAFFINITY, [5]uintptr{nobody}},
	{"setpriority", unix.SYS_SETPRIORITY, [5]uintptr{unix.PRIO_PROCESS, nobody}},
	{"setpriority of a group", unix.SYS_SETPRIORITY, [5]uintptr{unix.PRIO_PGRP, nobody}},
	{"setpriority of a user", unix.SYS_SETPRIORITY, [5]uintptr{unix.PRIO_USER, nobody}},
	{"ioprio_set", unix.SYS_IOPRIO_SET, [5]uintptr{1, nobody}},
	{"prlimit64", unix.SYS_PRLIMIT64, [5]uintptr{nobody}},
	{"io_setup", unix.SYS_IO_SETUP, [5]uintptr{}},
	{"socket to the machine below", unix.SYS_SOCKET, [5]uintptr{unix.AF_VSOCK, unix.SOCK_STREAM | unix.SOCK_CLOEXEC}},
}

// calls makes each forbidden call and returns those that abl's filter let through. The checks do
// not rely on the engine's own filter.
func calls() string {
	var made []string
	for _, c := range forbidden {
		fd, _, err := unix.Syscall6(c.trap, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], 0)
		if err == 0 && c.trap == unix.SYS_SOCKET {
			unix.Close(int(fd))
		}
		if err != unix.EPERM && err != unix.ENOSYS && err != unix.EAFNOSUPPORT {
			made = append(made, c.name)
		}
	}
	return strings.Join(made, " ")
}

// firstMemory tries to open the memory of process 1. It must be refused although process 1 has the
// same user.
func firstMemory() string {
	f, err := os.OpenFile("/proc/1/mem", os.O_RDWR, 0)
	switch {
	case err == nil:
		f.Close()
		return "open to reading and writing"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return refused
	}
	return err.Error()
}
