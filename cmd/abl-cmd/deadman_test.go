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

// A program that somebody has stopped, or that is deaf, is killed at its time all the same.
func TestStoppedProgramEnds(t *testing.T) {
	for script, want := range map[string]string{
		"kill -STOP $$; echo went on":                        "124 true SIGKILL\n",
		"trap '' TERM; while :; do sleep 0.1; done":          "124 true SIGKILL\n",
		"setsid sh -c 'kill -STOP $$' & kill -STOP $$; wait": "124 true SIGKILL\n",
		"exit 3": "3 false \n",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), supervises+"="+script)
		if got := finish(t, cmd); got.out != want || got.code != 0 {
			t.Errorf("%s: %+v, want %q", script, got, want)
		}
	}
}

// Nobody of the same user can take hold of one of abl's programs by tracing it: the
// kernel shows that in whose its entry in /proc is.
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
			t.Errorf("%v: its memory is %d's, %v", cmd.Args, st.Uid, err)
		}
		_ = cmd.Process.Kill()
	}
}
