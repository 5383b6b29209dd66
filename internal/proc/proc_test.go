package proc

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestBelow(t *testing.T) {
	all := []process{{10, 1, 10, 10}, {12, 11, 12, 12}, {11, 10, 11, 11}, {13, 1, 10, 13}, {14, 1, 14, 14}}
	got := slices.Sorted(maps.Keys(below(10, all, func(p process) bool { return p.group == 10 })))
	if want := []int{10, 11, 12, 13}; !slices.Equal(got, want) {
		t.Errorf("with the group: got %v, want %v", got, want)
	}
	got = slices.Sorted(maps.Keys(below(10, all, func(process) bool { return false })))
	if want := []int{11, 12}; !slices.Equal(got, want) {
		t.Errorf("descendants alone: got %v, want %v", got, want)
	}
}

// start runs sh with these arguments in a new group. The script prints the pids that must end with
// it.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, pids []int, ended chan struct{}) {
	t.Helper()
	cmd = exec.Command("sh", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(line) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	ended = make(chan struct{})
	go func() { cmd.Wait(); close(ended) }()
	return cmd, pids, ended
}

// wantGone waits until none of the pids runs. The timeout of the test limits it.
func wantGone(t *testing.T, pids []int) {
	t.Helper()
	for {
		alive := slices.ContainsFunc(list(), func(p process) bool { return slices.Contains(pids, p.pid) })
		if !alive {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("processes %v: got some that run, want none", pids)
		case <-time.After(time.Millisecond):
		}
	}
}

func TestStopWithSIGTERM(t *testing.T) {
	cmd, pids, ended := start(t, "-c", `sleep 1000 & echo $$ $!; wait`)
	Stop(cmd.Process.Pid, ended, time.Hour)
	<-ended
	wantGone(t, pids)
	if Code(cmd) != 128+15 {
		t.Errorf("exit code after SIGTERM: got %d, want %d", Code(cmd), 128+15)
	}
}

// Neither a process that ignores SIGTERM nor one that left the group and the session survives.
func TestStopKillsTheRest(t *testing.T) {
	cmd, pids, ended := start(t, "testdata/deaf.sh")
	Stop(cmd.Process.Pid, ended, 0)
	<-ended
	wantGone(t, pids)
	if Code(cmd) != 128+9 {
		t.Errorf("exit code after SIGKILL: got %d, want %d", Code(cmd), 128+9)
	}
}

// A command of the user's terminal stays in the group of the terminal.
func TestStopWithoutAGroup(t *testing.T) {
	for _, grace := range []time.Duration{time.Hour, 0} {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := Wait(cmd)
		Stop(cmd.Process.Pid, ended, grace)
		<-ended
	}
}

// When Stop returns, the killed processes and their ports are gone. The test leaves a server with
// much memory behind.
func TestStopWaitsForTheRest(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("there is no python3")
	}
	script, err := filepath.Abs("testdata/hog.sh")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	cmd, pids, ended := start(t, script)
	<-ended
	Stop(cmd.Process.Pid, ended, 0)
	for _, p := range list() {
		if slices.Contains(pids, p.pid) {
			t.Errorf("process %d after Stop: got it running, want it gone", p.pid)
		}
	}
}

func TestStopAfterTheEnd(t *testing.T) {
	cmd, pids, ended := start(t, "-c", `sleep 1000 >/dev/null & echo $!; exit 7`)
	<-ended
	Stop(cmd.Process.Pid, ended, time.Hour)
	wantGone(t, pids)
	if Code(cmd) != 7 {
		t.Errorf("exit code of an ended command: got %d, want 7", Code(cmd))
	}
}

func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tests := []struct {
		script string
		code   int
	}{{"exit 0", 0}, {"exit 3", 3}, {"kill -9 $$", 137}}
	for _, tt := range tests {
		code, err := Run(ctx, exec.Command("sh", "-c", tt.script), time.Hour)
		if code != tt.code || err != nil {
			t.Errorf("%s: got %d, %v; want %d", tt.script, code, err, tt.code)
		}
	}
	if _, err := Run(ctx, exec.Command("/does/not/exist"), time.Hour); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that there is no such file", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cmd := exec.Command("sh", "-c", "echo; sleep 1000; :")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout = writer(func(b []byte) { cancel(why) })
	code, err := Run(ctx, cmd, time.Hour)
	if code != 128+15 || !errors.Is(err, why) {
		t.Errorf("got %d, %v; want 143 and the cause", code, err)
	}
	if _, err := Run(ctx, exec.Command("true"), 0); !errors.Is(err, why) {
		t.Errorf("Run after the end: got %v, want %v", err, why)
	}
}

type writer func([]byte)

func (w writer) Write(b []byte) (int, error) { w(b); return len(b), nil }
