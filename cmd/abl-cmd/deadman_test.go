//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"abl/internal/helper"

	"golang.org/x/sys/unix"
)

const supervises = "DEADMAN_TEST_SCRIPT"

// supervisingMain plays process 1 of a container: a shell's script has a deadline.
func supervisingMain() {
	pid, _, err := start([]string{"sh", "-c", os.Getenv(supervises)}, []*os.File{os.Stdin, os.Stdout, os.Stderr})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	end := supervise(pid, bounds{deadline: time.Now().Add(300 * time.Millisecond)}, nil)
	fmt.Println(end.Exit, end.Deadline, end.Signal)
}

// A program that is stopped, or that ignores signals, is killed at its deadline.
func TestStoppedProgramEnds(t *testing.T) {
	const killed = "124 true SIGKILL\n"
	for _, c := range []struct{ name, script, want string }{
		{"stops-itself", read(t, "testdata/stops-itself.sh"), killed},
		{"ignores-sigterm", read(t, "testdata/ignores-sigterm.sh"), killed},
		{"stops-itself-and-its-child", read(t, "testdata/stops-itself-and-its-child.sh"), killed},
		{"ends-in-time", "exit 3", "3 false \n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), supervises+"="+c.script)
			if got := finish(t, cmd); got.out != c.want || got.code != 0 {
				t.Errorf("got %+v, want exit 0 and %q", got, c.want)
			}
		})
	}
}

// No program of the same user can trace abl's programs: the kernel shows this by the owner of their
// entries in /proc.
func TestNobodyReachesIn(t *testing.T) {
	const nobody = 65534
	if os.Geteuid() != 0 {
		t.Skip("needs root to be another user")
	}
	if err := os.Chmod(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	own := exec.CommandContext(t.Context(), "sh", "-c", "echo ready; exec sleep 1000")
	for cmd, reachable := range map[*exec.Cmd]bool{as(t, helper.HelperHolder, "--listen", "127.0.0.1:0"): false, own: true} {
		cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		begin(t, cmd).Scan()
		var st unix.Stat_t
		if err := unix.Stat(fmt.Sprintf("/proc/%d/mem", cmd.Process.Pid), &st); err != nil || (st.Uid != 0) != reachable {
			t.Errorf("%v: the owner of its memory: got %d, %v, want root: %v", cmd.Args, st.Uid, err, !reachable)
		}
		_ = cmd.Process.Kill()
	}
}
