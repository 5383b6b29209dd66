package phase

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/internal/testing/lab"
)

// One abl plays many phases on one engine. It leaves nothing, and its memory does not grow. With
// ABL_SOAK it plays 200.
func TestSoakPhases(t *testing.T) {
	lab.Long(t)
	phases, early := 2, 1
	if os.Getenv("ABL_SOAK") != "" {
		phases, early = 200, 20
	}
	p := newProject(t, nodeApp, builds(write("server.mjs", server)), verifies())
	for n := 2; n <= phases; n++ {
		p.Write(fmt.Sprintf(".abl/specs/phase%d.md", n),
			strings.Replace(strings.Replace(oneSpec, "Phase 1", fmt.Sprint("Phase ", n), 1), "GET / →", fmt.Sprintf("GET /%d →", n), 1))
	}
	temp := t.TempDir()
	p.Env = append(p.Env, "TMPDIR="+temp)
	var at, then int
	r := watch(p, func(e state.Event, abl *os.Process) {
		switch {
		case e.Kind != state.Verdict:
		case e.Phase == early:
			then = rss(abl.Pid)
		case e.Phase == phases:
			at = rss(abl.Pid)
		}
	}, "run", "--through")
	if r.Code != 0 {
		t.Fatalf("got exit %d, want 0: %s", r.Code, r.Stderr)
	}
	if got := strings.Count(r.Stdout, `"event":"verdict"`); got != phases {
		t.Errorf("got %d verdicts, want %d", got, phases)
	}
	const slack = 24 << 10 // KiB of variation by the garbage collector
	if then == 0 || at > then+slack {
		t.Errorf("abl's memory: got %d KiB at first and %d KiB at the end, want at most %d KiB more", then, at, slack)
	}
	t.Logf("%d phases in %v, %d KiB then, %d KiB at the end", phases, r.Took, then, at)
	if left := p.Left(); left != "" {
		t.Errorf("left on the engine: got %s, want nothing", left)
	}
	own, err := os.ReadDir(temp)
	if err != nil || len(own) > 0 {
		t.Errorf("left in the folder for temporary files: got %v, error %v, want nothing", own, err)
	}
}

// rss returns a process's memory in KiB, or 0 if it is unknown.
func rss(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	n, _ := strconv.Atoi(strings.Fields(after + " 0")[0])
	return n
}
