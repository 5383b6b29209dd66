package orchestrator

import (
	"fmt"
	"strings"
	"testing"

	"abl/internal/audit"
	"abl/internal/failedspecs"
	"abl/orchestrator/evidence"
)

func clauses(n int) (all []audit.Clause) {
	for i := range n {
		all = append(all, audit.Clause{ID: fmt.Sprintf("P1.C%d", i+1), Phase: 1, Line: i + 1, Says: fmt.Sprintf("GET /%d → 200", i+1)})
	}
	return all
}

func standings(kinds ...string) (f evidence.Finding) {
	for i, k := range kinds {
		st := evidence.Standing{Contract: fmt.Sprintf("P1.C%d", i+1), Finding: audit.Finding{Is: k, Runs: []string{"ok"}}}
		st.Allowed = k == evidence.Weak
		if k == "too weak" {
			st.Is = evidence.Weak
		}
		if k == evidence.Failed || k == evidence.Flaky || k == evidence.Disputed {
			st.Runs, st.Input, st.Observed = []string{"not ok"}, "in", "out"
		}
		f.Contracts = append(f.Contracts, st)
	}
	return f
}

// Failures count from any source, a pass needs a replay, and all other results are unknown.
func TestRecordOf(t *testing.T) {
	second := []failedspecs.Entry{{Spec: "GET /2 → 200", Input: "GET /2", Observed: "500", Contract: "P1.C2"}}
	for _, c := range []struct {
		name    string
		finding Finding
		earlier evidence.Finding
		want    string
	}{
		{"a-proven-pass", Finding{Verdict: Pass, Evidence: standings(evidence.Verified, evidence.Weak)}, evidence.Finding{}, "pass by replay, pass by replay"},
		{"a-weak-test-that-does-not-count", Finding{Verdict: Unknown, Evidence: standings(evidence.Verified, "too weak")}, evidence.Finding{}, "pass by replay, unknown"},
		{"a-pass-without-a-replay", Finding{Verdict: Pass}, evidence.Finding{}, "pass by verifier, pass by verifier"},
		{"every-way-to-be-open", Finding{Verdict: Unknown, Evidence: standings(evidence.Disputed, evidence.Vacuous, evidence.Missing, evidence.Untried)}, evidence.Finding{}, "unknown (in: out), unknown, unknown, unknown"},
		{"proven-but-for-one", Finding{Verdict: Unknown, Evidence: standings(evidence.Verified, evidence.Vacuous)}, evidence.Finding{}, "pass by replay, unknown"},
		{"nothing-to-go-by", Finding{Verdict: Unknown}, evidence.Finding{}, "unknown, unknown"},
		{"refuted-and-replayed", Finding{Verdict: Fail, Entries: second, Evidence: standings(evidence.Untried, evidence.Failed)}, evidence.Finding{}, "unknown, fail by replay (in: out)"},
		{"refuted-and-not-reproduced", Finding{Verdict: Fail, Entries: second, Evidence: standings(evidence.Untried, evidence.NotReproduced)}, evidence.Finding{}, "unknown, fail by verifier (GET /2: 500)"},
		{"refuted-without-a-replay", Finding{Verdict: Fail, Entries: second}, evidence.Finding{}, "unknown, fail by verifier (GET /2: 500)"},
		{"flaky", Finding{Verdict: Fail, ByReplay: true, Entries: second, Evidence: standings(evidence.Verified, evidence.Flaky)}, evidence.Finding{}, "pass by replay, fail by replay (in: out)"},
		{"a-regression", Finding{Verdict: Fail, ByReplay: true, Entries: second}, standings(evidence.Verified, evidence.Failed), "pass by replay, fail by replay (in: out)"},
		{"it-held-before-and-does-not-now", Finding{Verdict: Fail, Entries: second, Evidence: standings(evidence.Untried, evidence.Failed)}, standings(evidence.Verified, evidence.Verified), "unknown, fail by replay (in: out)"},
		{"an-app-that-does-not-start", Finding{Verdict: Fail, ByReplay: true, Entries: []failedspecs.Entry{appContract}}, evidence.Finding{}, "unknown, unknown"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.finding.Held = audit.Held{Clauses: clauses(max(2, len(c.finding.Evidence.Contracts)))}
			var got []string
			for _, k := range recordOf(c.finding, c.earlier).Contracts {
				text := k.Result
				if k.By != "" {
					text += " by " + k.By
				}
				if k.Input != "" {
					text += " (" + k.Input + ": " + k.Observed + ")"
				}
				got = append(got, text)
			}
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}
