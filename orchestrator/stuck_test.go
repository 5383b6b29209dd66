package orchestrator

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/failedspecs"
	"abl/internal/spec"
)

func stuckSpecs(t *testing.T) []spec.Spec {
	t.Helper()
	var specs []spec.Spec
	for i, contracts := range []string{"- GET /a → 200\n", "- GET /b → 200\n- GET /c → 200\n- GET /d → 200\n"} {
		n := string(rune('1' + i))
		s, problems := spec.Parse("/home/me/.abl/specs/phase"+n+".md", []byte("# Phase "+n+": X\n\n## Context\n\nC.\n\n## Contracts\n\n"+contracts), i+1)
		for _, p := range problems {
			if p.Stops() {
				t.Fatal(p)
			}
		}
		specs = append(specs, s)
	}
	return specs
}

func TestExplain(t *testing.T) {
	started := Attempt{Step: 2, Verdict: Fail, Built: true, Failed: []failedspecs.Entry{appContract}}
	const lint = "  abl spec lint lists ambiguous words; after a change run abl phase 2 again, which opens a new round"
	for _, c := range []struct {
		name  string
		round []Attempt
		want  []string
	}{
		{"the same answer each time, then the source left as it was",
			[]Attempt{attempt(1, "a", "P2.C1=404"), attempt(2, "b", "P2.C1=404"), open(3, true), attempt(4, "b", "P2.C1=404")},
			[]string{
				"what failed last:", "  P2.C1 the words of P2.C1", "    INPUT: step 4", "    OBSERVED: 404",
				"what was tried:",
				"  step-1: 1 contract failed (P2.C1)", "  step-2: 1 contract failed (P2.C1)",
				"  step-3: no verdict", "  step-4: 1 contract failed (P2.C1)",
				"what you could change:",
				"  P2.C1 (phase2.md:9): if the observation is right, write it into the contract; otherwise give the exact request and the whole result there, and an example in the Context",
				lint,
			}},
		{"broken by what another one needed, one of an earlier phase, one of none",
			[]Attempt{attempt(5, "a", "P2.C1=1", "P1.C1=x"), attempt(6, "b", "P2.C2=2"), attempt(7, "c", "P2.C1=3", "P1.C1=x", "nice=4", "P2.C3=5")},
			[]string{
				"what failed last:", "  P2.C1 the words of P2.C1", "    INPUT: step 7", "    OBSERVED: 3",
				"  P1.C1 the words of P1.C1", "    INPUT: step 7", "    OBSERVED: x",
				"  SPEC: the words of nice", "    INPUT: step 7", "    OBSERVED: 4",
				"  P2.C3 the words of P2.C3", "    INPUT: step 7", "    OBSERVED: 5",
				"what was tried:", "  step-5: 2 contracts failed (P1.C1, P2.C1)",
				"  step-6: 1 contract failed (P2.C2)",
				"  step-7: 4 contracts failed (P1.C1, P2.C1, P2.C3, the words of nice)",
				"what you could change:",
				"  P2.C1 (phase2.md:9): if the observation is right, write it into the contract; otherwise give the exact request and the whole result there, and an example in the Context",
				"  P1.C1 (phase1.md:9): it held when phase 1 passed, and phase 2 may contradict it: correct phase2.md",
				"  no contract says \"the words of nice\": add it as a contract, or exclude it in the Context",
				"  P2.C3 (phase2.md:11): if the observation is right, write it into the contract; otherwise give the exact request and the whole result there, and an example in the Context",
				lint,
			}},
		{"an earlier phase, and answers that change",
			[]Attempt{attempt(1, "a", "P1.C1=x", "P2.C2=1"), attempt(2, "b", "P1.C1=x", "P2.C2=2")},
			[]string{
				"what failed last:", "  P1.C1 the words of P1.C1", "    INPUT: step 2", "    OBSERVED: x", "  P2.C2 the words of P2.C2", "    INPUT: step 2", "    OBSERVED: 2",
				"what was tried:", "  step-1: 2 contracts failed (P1.C1, P2.C2)", "  step-2: 2 contracts failed (P1.C1, P2.C2)",
				"what you could change:",
				"  P1.C1 (phase1.md:9): it held when phase 1 passed, and phase 2 may contradict it: correct phase2.md",
				"  P2.C2 (phase2.md:10): if the observation is right, write it into the contract; otherwise give the exact request and the whole result there, and an example in the Context",
				lint,
			}},
		{"a system that does not start", []Attempt{started},
			[]string{
				"what failed last:", "  SPEC: start the app → ready on its port", "    INPUT: the command of the app section, in a fresh copy of the commit", "    OBSERVED: ",
				"what was tried:", "  step-2: 1 contract failed (start the app → ready on its port)",
				"what you could change:",
				"  .abl/config.yaml: the system does not start: check command, port and ready in the app section, and abl logs app",
				lint,
			}},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "-"), func(t *testing.T) {
			if diff := cmp.Diff(c.want, Explain(2, c.round, stuckSpecs(t))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// If the last iteration has no verdict, the entries are those of the last failed one, with abl's
// notes.
func TestExplainWithoutVerdictAtTheEnd(t *testing.T) {
	a := attempt(1, "a", "P2.C1=404")
	a.Failed[0].Note = "not reproduced"
	alone := attempt(3, "a", "P2.C1=404")
	alone.Built = false
	lines := strings.Join(Explain(2, []Attempt{a, open(2, true)}, stuckSpecs(t)), "\n")
	for _, want := range []string{"    OBSERVED: 404\n    (not reproduced)\n", "step-2: no verdict"} {
		if !strings.Contains(lines, want) {
			t.Errorf("explanation: got\n%s\nwant %q in it", lines, want)
		}
	}
	lines = strings.Join(Explain(2, []Attempt{a, alone, {Step: 4, Verdict: Pass}}, nil), "\n")
	for _, want := range []string{"step-3: 1 contract failed (P2.C1), without a Builder", "step-4: every contract held", "no contract says \"P2.C1\""} {
		if !strings.Contains(lines, want) {
			t.Errorf("explanation: got\n%s\nwant %q in it", lines, want)
		}
	}
}
