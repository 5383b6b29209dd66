package orchestrator

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"abl/internal/state"
	"abl/roles"
)

// stale returns a loop over phase 2 of two, which is stale, before its first call.
func stale(w *world, says map[string][]string) (*Loop, *tests) {
	w.Helper()
	replays := &tests{t: w.T, says: says}
	l := w.loop()
	l.Number, l.Replay, l.Specs = 2, replays, HeldSpecs{Set: twoEach(w.T, 2)}
	if l.File.Phases["2"] == nil {
		one, _ := l.Specs.Set.Phase(1)
		l.File.Phases["1"] = &state.Phase{Status: state.Passed, Round: 2, Iteration: 1, Step: 2, Attempt: 1, HeldTo: state.HeldTo{SpecSHA: one.SHA256}, SrcCommit: "p1-build-2.1"}
		l.File.Phases["2"] = &state.Phase{Status: state.Stale, Round: 1, Iteration: 1, Step: 1, Attempt: 1, HeldTo: state.HeldTo{SpecSHA: l.spec().SHA256, SpecSize: len(l.spec().Text)}, SrcCommit: "p2-build-1.1"}
		w.commits["src"] = []string{"phase1/build/step-2 p1-build-2.1"}
	}
	return l, replays
}

// The tests of a stale phase are replayed on the current source, without an agent. It passes only if
// every contract is proven.
func TestStalePhaseIsReplayed(t *testing.T) {
	no := suite(2, "--")
	sound := func(change map[string][]string) map[string][]string {
		all := map[string][]string{"phase1/passed": {suite(1, "++")}, "phase2/passed": {suite(2, "++")}, "no app": {no}, "empty": {no}, "500": {no}}
		for what, says := range change {
			all[what] = says
		}
		return all
	}
	for _, c := range []struct {
		name string
		says map[string][]string
		want string
	}{
		{"it holds", sound(nil), "passed round 2 iteration 0 step-2: pass by 500, empty, no app, phase1/passed, phase2/passed; src phase2/passed p1-build-2.1, tests phase2/passed tests of phase2/passed"},
		{"it is broken", sound(map[string][]string{"phase2/passed": {suite(2, "+-")}}), "building round 2 iteration 1 step-3: fail by 500, empty, no app, phase1/passed, phase2/passed, phase2/passed; P2.C2 500; "},
		{"an earlier one is broken", sound(map[string][]string{"phase1/passed": {suite(1, "-+")}}), "building round 2 iteration 1 step-3: fail by phase1/passed, phase1/passed; P1.C1 500; "},
		{"the app does not start", sound(map[string][]string{"phase1/passed": {"app: exit code 1"}}), "building round 2 iteration 1 step-3: fail by phase1/passed;  exit code 1; "},
		{"a test that is ok without the app", sound(map[string][]string{"no app": {suite(2, "++")}}), "verifying round 2 iteration 1 step-3: unverified by 500, empty, no app, phase1/passed, phase2/passed; P2.C1 is vacuous: its test is ok without the app (does it send requests to $ABL_APP_URL?) (the contract: GET /2/1 → 200)"},
		{"an earlier contract without a result", sound(map[string][]string{"phase1/passed": {suite(1, "+.")}}), "verifying round 2 iteration 1 step-3: unverified by 500, empty, no app, phase1/passed, phase2/passed; phase1/passed: P1.C2 is missing: no test line names it (the contract: GET /1/2 → 404)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.before = errors.New("a call costs")
			l, replays := stale(w, c.says)
			_, err := l.Run(t.Context())
			var f state.File
			if jerr := json.Unmarshal(w.disk, &f); jerr != nil || err != nil && !errors.Is(err, w.before) {
				t.Fatal(err, jerr)
			}
			p := f.Phases["2"]
			got := fmt.Sprintf("%s round %d iteration %d step-%d: %s by %s; ", p.Status, p.Round, p.Iteration, p.Step, p.History[0].Verdict, strings.Join(replays.order, ", "))
			for _, e := range p.Failed {
				got += e.Contract + " " + e.Observed + "; "
			}
			if len(p.Why) > 0 {
				got += p.Why[0]
			}
			if got += strings.Join(w.tags, ", "); got != c.want || w.asked > 1 || len(w.done) > 0 {
				t.Errorf("got  %s (asked %d times, calls %v)\nwant %s", got, w.asked, w.done, c.want)
			}
			for _, e := range w.events {
				if e.Round != 2 || e.Kind == state.Verdict && e.Role != "" {
					t.Errorf("got %s %q of round %d by %q, want round 2, and a verdict by no role", e.Kind, e.Text, e.Round, e.Role)
				}
			}
		})
	}
}

// An abl that is killed during this repeats it, with the same result.
func TestKilledWhileAStalePhaseIsReplayed(t *testing.T) {
	says := map[string][]string{"phase1/passed": {suite(1, "++")}, "phase2/passed": {suite(2, "++")}, "no app": {suite(2, "--")}, "empty": {suite(2, "--")}, "500": {suite(2, "--")}}
	for n := 1; ; n++ {
		w := newWorld(t, nil)
		l, _ := stale(w, says)
		w.save(l.File)
		w.dieAt = n
		if _, err := l.Run(t.Context()); err == nil {
			if n < 8 {
				t.Errorf("number of the last death: got %d, want at least 8", n)
			}
			return
		}
		w.dieAt = 0
		l, _ = stale(w, says)
		r, err := l.Run(t.Context())
		if err != nil || r.Status != state.Passed || r.Step != 2 || len(r.History) != 1 || len(w.done) > 0 {
			t.Errorf("run after death %d: got %v, %+v, calls %v, want a pass at step 2 without calls",
				n, err, r, w.done)
		}
	}
}

// A pass makes later phases stale if they passed on another source.
func TestOutdate(t *testing.T) {
	w := newWorld(t, nil)
	l := w.loop()
	for n, status := range map[string]state.Status{"2": state.Passed, "3": state.Stuck, "4": state.Passed} {
		l.File.Phases[n] = &state.Phase{Status: status, SrcCommit: "p2-build-1.1"}
	}
	l.File.Phases["4"].SrcCommit = "p4-build-1.1"
	tree, err := l.Src.TreeKey("p2-build-1.1", roles.Builder.Reports)
	if err != nil {
		t.Fatal(err)
	}
	l.outdate(&state.Phase{}, tree)
	got := ""
	for _, n := range []string{"2", "3", "4"} {
		got += string(l.File.Phases[n].Status) + " "
	}
	if got != "passed stuck stale " {
		t.Errorf("statuses: got %s, want passed stuck stale", got)
	}
}
