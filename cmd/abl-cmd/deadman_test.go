//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const armed = "DEADMAN_TEST_AFTER"

// armedMain plays the process that is armed, or is not.
func armedMain() {
	after := os.Getenv(armed)
	if d, err := time.ParseDuration(after); err == nil {
		if err := armDeadMan(d); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// startArmed starts it as a user who is not root.
func startArmed(t *testing.T, after string) *exec.Cmd {
	t.Helper()
	program := os.Args[0]
	cmd := exec.Command(program)
	if os.Geteuid() == 0 {
		const nobody = 65534
		dir, err := os.MkdirTemp("", "deadman-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		data, err := os.ReadFile(program)
		if err = errors.Join(err, os.Chmod(dir, 0o755), os.WriteFile(filepath.Join(dir, "test"), data, 0o755)); err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(filepath.Join(dir, "test"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	cmd.Dir, cmd.Env = "/", append(os.Environ(), armed+"="+after)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err = cmd.StdinPipe(); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	word := make([]byte, 100)
	if n, err := out.Read(word); err != nil || !strings.HasPrefix(string(word[:n]), "ready") {
		t.Fatalf("%q, %v", word[:n], err)
	}
	return cmd
}

// A process that somebody has stopped is killed at its time all the same.
func TestStoppedProcessEnds(t *testing.T) {
	cmd := startArmed(t, "300ms")
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) || ended.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("it ended with %v", err)
	}
}

// Nobody of the same user can take its timer away by tracing it: the kernel
// shows that in whose its entry in /proc is.
func TestNobodyReachesIn(t *testing.T) {
	for after, reachable := range map[string]bool{"1h": false, "never": true} {
		var st unix.Stat_t
		if err := unix.Stat(fmt.Sprintf("/proc/%d/mem", startArmed(t, after).Process.Pid), &st); err != nil || (st.Uid != 0) != reachable {
			t.Errorf("armed after %s its memory is %d's, %v", after, st.Uid, err)
		}
	}
}
