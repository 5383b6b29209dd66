//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"time"

	"abl/internal/proc"

	"golang.org/x/sys/unix"
)

// containerID is an engine's id in full, which no other cgroup has in its path.
var containerID = regexp.MustCompile(`^[0-9a-f]{64}$`)

// killContainer kills the processes of a container until none is left. It runs in the
// process namespace of the engine's machine. A container cannot stop that by starting
// processes: the kernel ends all of them together with process 1.
func killContainer(ctx context.Context, s started) error {
	if len(s.args) != 1 || !containerID.MatchString(s.args[0]) {
		return fmt.Errorf("%q: want the id of a container in full", s.args)
	}
	for {
		left := members("/proc", s.args[0])
		if len(left) == 0 {
			return nil
		}
		for _, pid := range left {
			if err := unix.Kill(pid, unix.SIGKILL); err != nil && err != unix.ESRCH {
				return fmt.Errorf("cannot kill process %d: %w", pid, err)
			}
		}
		if proc.Pause(ctx, 10*time.Millisecond) != nil {
			return fmt.Errorf("%d processes did not end", len(left))
		}
	}
}

// members returns the processes in a container's cgroup, except zombies. The format is that
// of both versions of cgroups, seen from any cgroup namespace.
func members(table, id string) (pids []int) {
	folders, _ := filepath.Glob(filepath.Join(table, "[0-9]*"))
	for _, folder := range folders {
		cgroup, err := os.ReadFile(filepath.Join(folder, "cgroup"))
		if err != nil || !bytes.Contains(cgroup, []byte(id)) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(folder, "status"))
		if err != nil || bytes.Contains(status, []byte("\nState:\tZ")) || bytes.Contains(status, []byte("\nState:\tX")) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(folder)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}
