// Package phase runs whole phases through the real abl on a real engine.
package phase

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/internal/audit"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/internal/testing/lab"
)

// promptOf returns the standard input of an agent.
func promptOf(p *lab.Project, call string) string {
	p.Helper()
	return p.Read(".abl/logs/calls/" + call + "/in/prompt.md")
}

func TestDemo(t *testing.T) {
	lab.Engine(t)
	p := lab.Demo(t)
	if testing.Short() { // TestWitnessJudgesSuites tests altered responses
		p.Env = append(p.Env, "ABL_VERIFY_STRENGTH_TIME=0")
	}
	lock := filepath.Join(p.Dir, ".abl", "lock")
	r := watch(p, func(e state.Event, _ *os.Process) {
		if e.Kind != state.Note || e.Phase != 1 {
			return
		}
		if held, err := hostfs.Hold(lock); !errors.Is(err, hostfs.ErrHeld) {
			t.Errorf("the lock between the phases: got %v, want %v", err, hostfs.ErrHeld)
			_ = held.Unlock()
		}
	}, "run", "--through")
	if r.Code != 0 {
		t.Fatalf("got exit %d, want 0: %s", r.Code, r.Stderr)
	}
	for _, want := range []string{`"verdict":"fail"`, `"verdict":"pass"`, `"text":"phase 1: passed"`} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("got no event with %s, want one", want)
		}
	}
	all := events(t, r)
	if last := all[len(all)-1]; len(of(all, state.Outcome)) != 1 || last.Kind != state.Outcome ||
		*last.Exit != 0 || last.Phase != 2 {
		t.Errorf("got the outcomes %v and the last event %v, want one outcome, at the end", of(all, state.Outcome), last)
	}
	demoHistories(p, "phase1/passed\nphase2/passed", map[string]string{
		"src":        "phase1/build/step-1\nphase1/build/step-2\nphase2/build/step-1",
		".abl/tests": "phase1/verify/step-1\nphase1/verify/step-2\nphase2/verify/step-1",
	})
	failed := p.Git(".abl/tests", "show", "phase1/passed~1:failed_specs.md")
	wants(t, "failed_specs.md of the first iteration", failed, "SPEC: GET /links/C after a restart")
	for _, role := range []string{"build", "verify"} {
		first, second := promptOf(p, "p1-"+role+"-1.1"), promptOf(p, "p1-"+role+"-2.1")
		same := 0
		for same < min(len(first), len(second)) && first[same] == second[same] {
			same++
		}
		if same*10 < len(second)*9 {
			const form = "%s: got %d bytes that a provider's cache can serve, want 90 %% of %d"
			t.Errorf(form, role, same, len(second))
		}
	}
	if n := strings.Count(p.Read(".abl/logs/tokens.csv"), "\n"); n != 7 {
		t.Errorf("got %d lines in tokens.csv, want a header and 6 rows", n)
	}
	checkNothingLeft(p)
	for _, r := range []audit.Record{auditRecord(p, 1, 2), auditRecord(p, 2, 1)} {
		checkNoDoubts(p, r)
		if !testing.Short() {
			checkStrength(p, r)
		}
	}
	checkStoredProofs(p)
	page := p.Read(".abl/reports/phase1.html")
	for _, want := range []string{"Passed: all 9 contracts hold after 2 iterations.", "149,250",
		"Exchange that the witness recorded<", "{&#34;status&#34;:&#34;ok&#34;}",
		`<span class="what path">store.mjs</span>`, "<ins>&#43;", "A restart loses the hits.", "Every check passed."} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of phase 1: got no %s, want one", want)
		}
	}
	again := p.Must(0, "phase", "1")
	wants(t, "a passed phase", again.Stderr, "has already passed")
}
