//go:build linux

package main

import (
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"abl/internal/helper"
	"abl/internal/proc"

	"golang.org/x/sys/unix"
)

// deadlineGrace is between asking an agent to end at its deadline and ending it.
const deadlineGrace = 10 * time.Second

// limitGrace is that for what is only watched for a while.
const limitGrace = time.Second

// bounds are what ends an agent that does not end by itself.
type bounds struct {
	deadline time.Time     // zero for none
	limit    time.Duration // from now on; 0 for none
	look     func() string // on which ports there is something to talk to; nil where nobody asks
}

// supervise waits for the agent, ends it at the deadline, and leaves no process
// behind that could still write into its files.
func supervise(pid int, b bounds, signals <-chan os.Signal) helper.RunEnd {
	ended, alone, status := reap(pid)
	var late, over <-chan time.Time
	if !b.deadline.IsZero() {
		late = time.After(time.Until(b.deadline))
	}
	if b.limit > 0 {
		over = time.After(b.limit)
	}
	if b.look == nil {
		b.look = func() string { return "" }
	}
	for {
		select {
		case sig := <-signals:
			if s, ok := sig.(syscall.Signal); ok {
				syscall.Kill(-pid, s)
			}
		case <-late:
			proc.Stop(pid, ended, deadlineGrace)
			leave(alone)
			<-ended
			return helper.RunEnd{Exit: exitDeadline, Deadline: true, Signal: signalName(status.ws)}
		case <-over:
			ports := b.look()
			proc.Stop(pid, ended, limitGrace)
			leave(alone)
			<-ended
			return helper.RunEnd{Exit: exitDeadline, Late: true, Ports: ports}
		case <-ended:
			ports := b.look() // of what it left in the background
			leave(alone)
			return helper.RunEnd{Exit: proc.ExitCode(status.ws), Signal: signalName(status.ws), Ports: ports}
		}
	}
}

// leave kills what the agent left and waits until it is gone: what is killed still
// runs until the kernel comes to it. What hangs in the kernel writes nothing.
func leave(alone <-chan struct{}) {
	proc.KillDescendants(os.Getpid())
	select {
	case <-alone:
	case <-time.After(time.Second):
	}
}

type childStatus struct{ ws syscall.WaitStatus }

// reap waits for every child there is until none is left, and closes ended once
// pid itself has; from then on its status may be read. It closes alone at the end.
func reap(pid int) (ended, alone chan struct{}, status *childStatus) {
	ended, alone, status = make(chan struct{}), make(chan struct{}), &childStatus{}
	go func() {
		defer close(alone)
		for {
			var ws syscall.WaitStatus
			got, err := syscall.Wait4(-1, &ws, 0, nil)
			switch {
			case err == syscall.EINTR:
			case err != nil:
				return
			case got == pid:
				status.ws = ws
				close(ended)
			}
		}
	}()
	return ended, alone, status
}

func signalName(ws syscall.WaitStatus) string {
	if !ws.Signaled() {
		return ""
	}
	return unix.SignalName(ws.Signal())
}

// first stands in for an engine's init: as process 1 of a container it starts the
// program once more, passes signals on to it, waits for every orphan, and returns
// its exit code. An init of the engine's would have the user of the programs that
// it watches over, and its memory would be open to them.
func first(argv []string) int {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	pid, err := syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env: os.Environ(), Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot start %q: %v\n", argv[0], err)
		return exitNotRun
	}
	return supervise(pid, bounds{}, signals).Exit
}

// sigevent is what the kernel takes for how a timer shall tell.
type sigevent struct {
	value  uintptr
	signo  int32
	notify int32 // 0: by a signal
	_      [48]byte
}

// itimerspec is a period and the time until the first end.
type itimerspec struct{ interval, value unix.Timespec }

// armDeadMan has the kernel kill this process after a time, even when somebody has
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

// listening are the TCP ports of this network namespace on which somebody listens. In
// a line of the kernel's table the second field is the local address, hexadecimal, the
// fourth the state.
func listening() map[int]bool {
	const state, listens = 3, "0A"
	ports := map[int]bool{}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		data, _ := os.ReadFile(table) // a kernel without IPv6 lacks one
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) <= state || f[state] != listens {
				continue
			}
			_, hex, _ := strings.Cut(f[1], ":")
			if n, err := strconv.ParseUint(hex, 16, 16); err == nil {
				ports[int(n)] = true
			}
		}
	}
	return ports
}

// maxPorts bounds how many ports are told.
const maxPorts = 20

// newPorts are those that were not there before.
func newPorts(before, now map[int]bool) string {
	var ports []int
	for p := range now {
		if !before[p] {
			ports = append(ports, p)
		}
	}
	slices.Sort(ports)
	var words []string
	for _, p := range ports[:min(len(ports), maxPorts)] {
		words = append(words, strconv.Itoa(p))
	}
	return strings.Join(words, " ")
}
