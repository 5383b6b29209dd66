// Package proc stops programs together with everything that they started. A
// program that nobody vetted may leave its process group and its session, so a
// signal to either alone is not enough. It starts programs, too, without the
// secrets of abl's own environment: git and package tools have no use for a
// model's key, and what they print or leave behind is not abl's to redact. It knows
// no container and no engine.
package proc

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Stop asks the process pid and its process group to end with SIGTERM, and
// kills it with all its descendants when ended has not been closed after grace.
func Stop(pid int, ended <-chan struct{}, grace time.Duration) {
	select {
	case <-ended:
	default:
		if syscall.Kill(-pid, syscall.SIGTERM) != nil { // it leads no group
			syscall.Kill(pid, syscall.SIGTERM)
		}
		select {
		case <-ended:
		case <-time.After(grace):
		}
	}
	Kill(pid)
}

// Kill kills pid, the process group and the session that it leads and all
// descendants of it that can be found. They are stopped first, so that none
// can start another one unseen. When pid has ended already, its group and
// session are what is left.
func Kill(pid int) {
	killAll(pid, func(p process) bool { return p.pid == pid || p.group == pid || p.session == pid })
}

// KillMarked is Kill for pid and for what has mark in the environment that it was started
// with, wherever it has gone since.
func KillMarked(pid int, mark string) {
	killAll(pid, func(p process) bool {
		return p.pid == pid || p.group == pid || p.session == pid || strings.Contains(environ(p.pid), mark)
	})
}

// KillDescendants kills everything below the process pid, but not itself.
func KillDescendants(pid int) {
	killAll(pid, func(process) bool { return false })
}

// EndOrphans kills everything below this process, and in the group and session that
// the child pid led, and waits for its end. No child that somebody else waits for may run.
func EndOrphans(pid int) {
	killed := killAll(os.Getpid(), func(p process) bool { return p.group == pid || p.session == pid })
	for reaped := true; reaped; { // the end of one makes orphans of its children
		reaped = false
		for pid := range killed {
			if got, _ := unix.Wait4(pid, nil, 0, nil); got == pid {
				delete(killed, pid)
				reaped = true
			}
		}
	}
}

// killTime is more than the kernel takes to end a program.
const killTime = 5 * time.Second

// killAll kills what is below root, root itself when belongs says so, and what
// belongs says of processes elsewhere. It returns what it has killed.
func killAll(root int, belongs func(process) bool) (killed map[int]bool) {
	const rounds = 100 // a fork bomb is the pid limit's and the engine's business
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
	// Until it is gone a killed program keeps its ports, which the next one wants.
	for end := time.Now().Add(killTime); len(stopped) > 0 && time.Now().Before(end); time.Sleep(time.Millisecond) {
		if !slices.ContainsFunc(list(), func(p process) bool { return stopped[p.pid] }) {
			break
		}
	}
	return stopped
}

// below returns the pids of those of all that descend from root or belong.
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

// process is what the kernel tells of one.
type process struct{ pid, parent, group, session int }
