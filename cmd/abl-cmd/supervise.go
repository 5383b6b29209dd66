//go:build linux

package main

import (
	"encoding/json"
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

const (
	deadlineGrace = 10 * time.Second              // between SIGTERM at the deadline and SIGKILL
	limitGrace    = time.Second                   // the same at the limit
	lastGrace     = deadlineGrace + 5*time.Second // for abl-run to end an agent after its deadline
	brokerGrace   = 30 * time.Second              // for a broker to stop the app after its deadline
)

// bounds are the time limits of a program.
type bounds struct {
	deadline time.Time // zero for none
	grace    time.Duration
	limit    time.Duration // from the start; 0 for none. With a limit the end reports the ports in use.
}

// fatalSignals are the signals for which Go's runtime ends a program with exit code 2, and the last
// three, which it does not handle.
var fatalSignals = []unix.Signal{
	unix.SIGHUP, unix.SIGQUIT, unix.SIGILL, unix.SIGTRAP, unix.SIGABRT, unix.SIGBUS, unix.SIGFPE, unix.SIGSEGV,
	unix.SIGSTKFLT, unix.SIGSYS, 32, 33, 34,
}

// resetFatalSignals removes Go's handlers for the fatal signals. Programs of the same user may send
// any signal to this process. Process 1 of a container ignores them. It does not rely on the kernel,
// which drops a signal without a handler for process 1 unless a thread blocks it at that moment, such
// as in the handler of another signal. Any other process ends by the signal, and process 1 can report
// that. Package os/signal cannot do this: it takes a queued signal (sigqueue(3)) for a fault of the
// program itself. The price is that a nil dereference here ends the program without a trace.
func resetFatalSignals() error {
	const byDefault, ignored = 0, 1
	action := [4]uint64{byDefault} // a struct sigaction of the kernel
	if os.Getpid() == 1 {
		action[0] = ignored
	}
	for _, sig := range fatalSignals {
		const maskSize = 8
		if _, _, err := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&action)), 0, maskSize, 0, 0); err != 0 {
			return fmt.Errorf("cannot reset the handler of %s: %w", unix.SignalName(sig), err)
		}
	}
	return nil
}

// supervise waits for a program and ends it at its deadline. No process of it remains that could still write
// to its files.
func supervise(pid int, b bounds, signals <-chan os.Signal) (end helper.RunEnd) {
	ended, alone, status := reap(pid)
	var late, over <-chan time.Time
	if !b.deadline.IsZero() {
		late = time.After(time.Until(b.deadline))
	}
	if b.limit > 0 {
		over = time.After(b.limit)
	}
	for running := true; running; {
		select {
		case sig := <-signals:
			syscall.Kill(-pid, sig.(syscall.Signal))
			end.Stopped = true
			continue
		case <-late:
			end.Deadline = true
		case <-over:
			end.Late, b.grace = true, limitGrace
		case <-ended:
		}
		running = false
	}
	if b.limit > 0 {
		end.Ports = listening() // background processes included
	}
	proc.Stop(pid, ended, b.grace)
	proc.KillDescendants(os.Getpid())
	select { // a killed process runs until the kernel ends it; one that hangs in the kernel writes nothing
	case <-alone:
	case <-time.After(time.Second):
	}
	<-ended
	end.Exit = proc.ExitCode(*status)
	if end.Deadline || end.Late {
		end.Exit = exitDeadline
	}
	if status.Signaled() && !end.Late {
		end.Signal = unix.SignalName(status.Signal())
	}
	return end
}

// reap waits for all children. It closes ended when pid has ended, and then its status may be read. It
// closes alone when no child is left.
func reap(pid int) (ended, alone chan struct{}, status *syscall.WaitStatus) {
	ended, alone, status = make(chan struct{}), make(chan struct{}), new(syscall.WaitStatus)
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
				*status = ws
				close(ended)
			}
		}
	}()
	return ended, alone, status
}

// first is process 1 of a container. It starts the program again as a child, passes signals on to it, waits
// for every orphan, and returns the exit code. The engine's init would run as the same user as the programs,
// which could access its memory. first also ends a child that exceeds its deadline: a program that the child
// started may have stopped it. No program can stop or kill process 1: the kernel drops SIGKILL and SIGSTOP
// from inside.
func first(s started) int {
	usual, grace := helper.Run, lastGrace
	if s.as == helper.HelperBroker {
		usual, grace = helper.Broker, brokerGrace
	}
	spec, _ := helper.Read[struct{ Deadline int64 }](s.file(usual)) // the child reports an error
	var b bounds
	if spec.Deadline > 0 {
		b.deadline = time.Unix(spec.Deadline, 0).Add(grace)
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	pid, code, err := start(os.Args, []*os.File{os.Stdin, os.Stdout, os.Stderr})
	if err != nil {
		fmt.Fprintf(os.Stderr, "cannot start %q: %v\n", os.Args[0], err)
		return code
	}
	end := supervise(pid, b, signals)
	if end.Deadline {
		return exitKilled
	}
	// abl-run reports its own end unless it was killed; a broker never does.
	if end.Signal != "" || s.as == helper.HelperBroker {
		_ = json.NewEncoder(os.Stdout).Encode(end)
	}
	return end.Exit
}

// listening returns the TCP ports of this network namespace with a listener. In a line of the kernel's table
// the second field is the hexadecimal local address, the fourth is the state.
func listening() string {
	const state, listens, most = 3, "0A", 20
	var ports []uint64
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		data, _ := os.ReadFile(table) // a kernel without IPv6 lacks one
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > state && f[state] == listens {
				_, hex, _ := strings.Cut(f[1], ":")
				port, _ := strconv.ParseUint(hex, 16, 16)
				ports = append(ports, port)
			}
		}
	}
	slices.Sort(ports)
	ports = slices.Compact(ports)
	return strings.Trim(fmt.Sprint(ports[:min(len(ports), most)]), "[]")
}
