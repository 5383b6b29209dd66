package learn

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"abl/cmd/internal/exit"
)

// stop.sh ends the agent-learner that works on a project here, but not the process in a lock file that
// is no longer held.
func TestStopScript(t *testing.T) {
	script, err := filepath.Abs("../../../stop.sh")
	if err != nil {
		t.Fatal(err)
	}
	p := newPerson(t)
	stranger := exec.Command("sleep", "1000")
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stranger.Process.Kill(); _ = stranger.Wait() }()
	over := filepath.Join("solutions", "over", ".abl")
	if err := os.MkdirAll(over, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(over, "lock"), fmt.Appendf(nil, `{"pid":%d}`, stranger.Process.Pid), 0o644); err != nil {
		t.Fatal(err)
	}
	ours := exec.Command(os.Args[0], "do hang", "-c", "1")
	ours.Env = append(os.Environ(), "LEARN_TEST_PLAY=1")
	if err := ours.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- ours.Wait() }()
	defer time.AfterFunc(2*time.Minute, func() { _ = ours.Process.Kill() }).Stop()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.dir, "hung")); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the agent was never started")
		}
	}
	cmd := exec.Command("bash", script)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix:///nowhere")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "stop: processes ended: 1") {
		t.Fatalf("stop.sh: got error %v, output %s, want one ended process", err, out)
	}
	if <-ended; ours.ProcessState.ExitCode() != exit.TERM {
		t.Errorf("end of the program: got %v, want exit code %d", ours.ProcessState, exit.TERM)
	}
	if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", stranger.Process.Pid)); err != nil || strings.Contains(string(state), ") Z ") {
		t.Errorf("process of a stranger: got %s, error %v, want it running", state, err)
	}
}
