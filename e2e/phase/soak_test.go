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

// One abl plays phase after phase on one engine: nothing is left of any, and abl
// does not grow. ABL_SOAK plays 200 of them.
func TestSoakPhases(t *testing.T) {
	lab.Long(t)
	phases, early := 2, 1
	if os.Getenv("ABL_SOAK") != "" {
		phases, early = 200, 20
	}
	p := newProject(t, nodeApp, builds(write("server.mjs", server)), verifies())
	for n := 2; n <= phases; n++ {
		p.Write(fmt.Sprintf(".abl/specs/phase%d.md", n), strings.Replace(strings.Replace(oneSpec, "Phase 1", fmt.Sprint("Phase ", n), 1), "GET / →", fmt.Sprintf("GET /%d →", n), 1))
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
		t.Fatalf("exit %d: %s", r.Code, r.Stderr)
	}
	if got := strings.Count(r.Stdout, `"event":"verdict"`); got != phases {
		t.Errorf("%d verdicts of %d phases", got, phases)
	}
	const slack = 24 << 10 // KiB: what a garbage collector may do as it likes
	if then == 0 || at > then+slack {
		t.Errorf("abl has grown from %d KiB to %d KiB", then, at)
	}
	t.Logf("%d phases in %v, %d KiB then, %d KiB at the end", phases, r.Took, then, at)
	if left := p.Left(); left != "" {
		t.Errorf("on the engine there is left: %s", left)
	}
	own, err := os.ReadDir(temp)
	if err != nil || len(own) > 0 {
		t.Errorf("in its folder for temporary files there is left: %v, %v", own, err)
	}
}

// rss is a process's memory in KiB, 0 when nobody knows.
func rss(pid int) int {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	n, _ := strconv.Atoi(strings.Fields(after + " 0")[0])
	return n
}
