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
	memory = 60 << 20 // bytes that abl may take
	noEnd  = 600e3    // bytes of a line without an end
)

// An agent that prints 100 MB, and a line without an end, loses none of it, and abl does not
// grow with it. What abl shows of it is e2e/hostile's (TestTerminalHolds).
func TestMuchOutput(t *testing.T) {
	lab.Long(t)
	p := newProject(t, nodeApp, builds(write("server.mjs", server), agent.Step{Print: flood},
		run(fmt.Sprintf("head -c %d /dev/zero | tr '\\000' z", int(noEnd)))), verifies())
	cmd := p.Cmd("phase", "1", "--json")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	peak := peakOf(t, cmd)
	if cmd.ProcessState.ExitCode() != 0 {
		t.Fatalf("exit %d: %s", cmd.ProcessState.ExitCode(), out.String())
	}
	if peak > memory {
		t.Errorf("abl took %d MB", peak>>20)
	}
	log := said(p, "p1-build-1.1")
	lines, bytes := 0, 0
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, `{"type":"output","text":"line `) {
			lines++
			bytes += len(line)
			if want := fmt.Sprintf("line %012d ", lines); !strings.Contains(line[:60], want) {
				t.Fatalf("line %d is %.60s", lines, line)
			}
		}
	}
	if bytes != flood {
		t.Errorf("%d lines of %d bytes were kept of %d", lines, bytes, int(flood))
	}
	if n := strings.Count(log, "z"); n < noEnd {
		t.Errorf("the line without an end: got %d bytes, want %d", n, int(noEnd))
	}
	if all := events(t, lab.Result{Stdout: out.String()}); len(all) > 200 {
		t.Errorf("%d events", len(all))
	}
	wants(t, "abl config", p.Must(0, "config").Stdout, "limits.output                 1g ")
	t.Logf("peak memory of abl: %.1f MB", float64(peak)/(1<<20))
}

// peakOf runs a command under a parent that nothing else is measured with: a
// child's own figure would begin with that of the process it was forked from.
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
			// The kernel's figure of the whole life covers what polling has not seen.
			if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && peak == 0 {
				peak = usage.Maxrss << 10
			}
			return peak
		default:
			peak = max(peak, highWater(cmd.Process.Pid))
		}
	}
}

// highWater is the peak memory of a process that runs, in bytes; 0 when it has ended.
func highWater(pid int) int64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, _ := strings.Cut(string(data), "VmHWM:")
	kib, _ := strconv.ParseInt(strings.Fields(rest + " 0")[0], 10, 64)
	return kib << 10
}

// Beyond limits.output a call is killed, and that is said.
func TestTooMuchOutput(t *testing.T) {
	p := newProject(t, nodeApp, builds(agent.Step{Print: 2e6}, agent.Step{Sleep: agent.Duration(30e9)}))
	p.Write(".abl/config.yaml", strings.Replace(scripted, "memory: 1g", "memory: 1g, output: 1m", 1)+nodeApp)
	r := p.Must(5, "phase", "1", "--json")
	ends := of(events(t, r), state.CallEnd)
	if len(ends) != 2 {
		t.Errorf("%d calls ended", len(ends))
	}
	for _, e := range ends {
		if e.Class != "flood" || !strings.Contains(e.Text, "limits.output") {
			t.Errorf("a call ended as %+v", e)
		}
	}
	wants(t, "the error", r.Stderr, "limits.output")
	if got := p.Must(0, "config").Stdout; !strings.Contains(got, "1m") {
		t.Errorf("abl config: %s", got)
	}
	for _, row := range ledgerRows(p) {
		if row["outcome"] != "flood" {
			t.Errorf("ledger row %v", row)
		}
	}
	noLeftovers(p)
}
