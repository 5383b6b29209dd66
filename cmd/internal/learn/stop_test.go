package learn

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// stop.sh ends what was noted and is still that, and nobody else of the number.
func TestStopScript(t *testing.T) {
	script, err := filepath.Abs("../../../stop.sh")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	start := func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as whatever is noted
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return cmd
	}
	ours, stranger := start(), start()
	if _, err := (notes{".", "solutions/x"}).add("", ours.Process.Pid); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{fmt.Sprint(stranger.Process.Pid): "1\n", "1": "2\n", "no-number": "3\n", "4194999": "5\n"} {
		if err := os.WriteFile(filepath.Join("solutions/.run", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- ours.Wait() }() // so that it is no zombie, which still has its number
	cmd := exec.Command("bash", script)
	cmd.Env = append(os.Environ(), "DOCKER_HOST=unix:///nowhere")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "stop: 1 processes ended") {
		t.Fatalf("%v: %s", err, out)
	}
	if err := <-ended; err == nil {
		t.Error("what was noted goes on to its end")
	}
	if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", stranger.Process.Pid)); err != nil || strings.Contains(string(state), ") Z ") {
		t.Error("a stranger was ended")
	}
}
