// Package proc runs and stops programs.
//
// It stops a program with everything that it started. An untrusted program may leave its process
// group and its session, so a signal to these does not suffice. It starts programs without the
// secrets in abl's environment, which git and package tools do not need.
package proc

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Stop sends SIGTERM to the process pid and its process group. After grace it kills the process
// with all descendants, unless ended was closed before.
func Stop(pid int, ended <-chan struct{}, grace time.Duration) {
	select {
	case <-ended:
	default:
		if syscall.Kill(-pid, syscall.SIGTERM) != nil { // not the leader of a group
			syscall.Kill(pid, syscall.SIGTERM)
		}
		select {
		case <-ended:
		case <-time.After(grace):
		}
	}
	Kill(pid)
}

// Kill kills pid, its process group and session, and all descendants that it can find. It stops
// them first, so that they cannot start others meanwhile. It also works on the group and the
// session of a process that has ended.
func Kill(pid int) {
	killAll(pid, func(p process) bool { return p.pid == pid || p.group == pid || p.session == pid })
}

// KillMarked is Kill for pid and for all processes whose initial environment contains mark.
func KillMarked(pid int, mark string) {
	killAll(pid, func(p process) bool {
		return p.pid == pid || p.group == pid || p.session == pid || strings.Contains(environ(p.pid), mark)
	})
}

// KillDescendants kills all descendants of the process pid, but not pid itself.
func KillDescendants(pid int) {
	killAll(pid, func(process) bool { return false })
}

// EndOrphans kills all descendants of this process, and everything in the group and session of the
// child pid, and waits for their end. No other goroutine may wait for a child.
func EndOrphans(pid int) {
	killed := killAll(os.Getpid(), func(p process) bool { return p.group == pid || p.session == pid })
	for reaped := true; reaped; { // the end of a process makes its children orphans
		reaped = false
		for pid := range killed {
			if got, _ := unix.Wait4(pid, nil, 0, nil); got == pid {
				delete(killed, pid)
				reaped = true
			}
		}
	}
}

// killTime is more than the kernel needs to end a program.
const killTime = 5 * time.Second

// killAll kills the descendants of root, and every process for which belongs returns true. It
// returns the killed processes.
func killAll(root int, belongs func(process) bool) (killed map[int]bool) {
	const rounds = 100 // the pid limit and the engine handle fork bombs
	stopped := map[int]bool{}
	for range rounds {
		fresh := 0
		for p := range below(root, list(), belongs) {
			if !stopped[p] && syscall.Kill(p, syscall.SIGSTOP) == nil {
				stopped[p] = true
				fresh++
			}
		}
		if fresh == 0 {
			break
		}
	}
	for p := range stopped {
		syscall.Kill(p, syscall.SIGKILL)
	}
	// A killed program keeps its ports until it is gone, and the next one may need them.
	for end := time.Now().Add(killTime); len(stopped) > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(list(), func(p process) bool { return stopped[p.pid] }) {
			break
		}
	}
	return stopped
}

// below returns the pids of the processes in all that descend from root or belong.
func below(root int, all []process, belongs func(process) bool) (in map[int]bool) {
	in = map[int]bool{}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && p.pid != os.Getpid() && (p.parent == root || in[p.parent] || belongs(p)) {
				in[p.pid], grown = true, true
			}
		}
	}
	return in
}

// process identifies a process and its relatives.
type process struct{ pid, parent, group, session int }
