package phase

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
	"abl/roles/agent"
)

const (
	flood  = 100e6
	memory = 80 << 20 // abl's limit in bytes
	noEnd  = 600e3    // bytes of a line without an end
)

// abl loses nothing of an agent's 100 MB of output, or of a line without an end, and its memory
// does not grow. e2e/hostile checks how abl shows the output (TestTerminalHolds).
func TestLargeOutput(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(write("server.mjs", server), agent.Step{Print: flood},
		run(fmt.Sprintf("head -c %d /dev/zero | tr '\\000' z", int(noEnd)))), verifies())
	cmd := p.Cmd("phase", "1", "--json")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	peak := peakOf(t, cmd)
	if cmd.ProcessState.ExitCode() != 0 {
		t.Fatalf("got exit %d, want 0: %s", cmd.ProcessState.ExitCode(), out.String())
	}
	if peak > memory {
		t.Errorf("peak memory of abl: got %d MB, want at most %d MB", peak>>20, memory>>20)
	}
	log := said(p, "p1-build-1.1")
	lines, bytes := 0, 0
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, `{"type":"output","text":"line `) {
			lines++
			bytes += len(line)
			if want := fmt.Sprintf("line %012d ", lines); !strings.Contains(line[:60], want) {
				t.Fatalf("line %d: got %.60s, want %q", lines, line, want)
			}
		}
	}
	if bytes != flood {
		t.Errorf("got %d stored lines of %d bytes, want %d", lines, bytes, int(flood))
	}
	if n := strings.Count(log, "z"); n < noEnd {
		t.Errorf("the line without an end: got %d bytes, want %d", n, int(noEnd))
	}
	if all := events(t, lab.Result{Stdout: out.String()}); len(all) > 200 {
		t.Errorf("got %d events, want at most 200", len(all))
	}
	wants(t, "abl config", p.Must(0, "config").Stdout, "limits.output                 1g ")
	t.Logf("peak memory of abl: %.1f MB", float64(peak)/(1<<20))
}

// peakOf runs a command under a separate parent and returns its peak memory. The kernel counts
// the memory of the parent at the fork for the child.
func peakOf(t *testing.T, cmd *exec.Cmd) int64 {
	t.Helper()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var peak int64
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	for {
		select {
		case <-done:
			// The kernel's value for the whole life covers what polling has missed.
			if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && peak == 0 {
				peak = usage.Maxrss << 10
			}
			return peak
		default:
			peak = max(peak, highWater(cmd.Process.Pid))
		}
	}
}

// highWater returns the peak memory of a running process in bytes, or 0 if it has ended.
func highWater(pid int) int64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	kib, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	return kib << 10
}

// A call that prints more than limits.output is killed, and abl reports it.
func TestOutputLimit(t *testing.T) {
	p := newProject(t, nodeApp, builds(agent.Step{Print: 2e6}, agent.Step{Sleep: agent.Duration(30e9)}))
	p.Write(".abl/config.yaml", strings.Replace(scripted, "memory: 1g", "memory: 1g, output: 1m", 1)+nodeApp)
	r := p.Must(5, "phase", "1", "--json")
	ends := of(events(t, r), state.CallEnd)
	if len(ends) != 2 {
		t.Errorf("got %d ended calls, want 2", len(ends))
	}
	for _, e := range ends {
		if e.Class != "flood" || !strings.Contains(e.Text, "limits.output") {
			t.Errorf("end of a call: got %+v, want class flood with limits.output", e)
		}
	}
	wants(t, "the error", r.Stderr, "limits.output")
	if got := p.Must(0, "config").Stdout; !strings.Contains(got, "1m") {
		t.Errorf("output of abl config: got %s, want one with 1m", got)
	}
	for _, row := range ledgerRows(p) {
		if row["outcome"] != "flood" {
			t.Errorf("row of the ledger: got %v, want outcome flood", row)
		}
	}
	checkNothingLeft(p)
}
