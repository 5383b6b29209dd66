package orchestrator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"abl/internal/failedspecs"
)

// attempt returns a failed iteration with a Builder: contracts with their observations, such as
// "P1.C1=404".
func attempt(step int, tree string, fails ...string) Attempt {
	a := Attempt{Step: step, Verdict: Fail, Built: true, Tree: tree}
	for _, f := range fails {
		id, seen, _ := strings.Cut(f, "=")
		e := failedspecs.Entry{Spec: "the words of " + id, Input: "step " + fmt.Sprint(step), Observed: seen}
		if strings.HasPrefix(id, "P") {
			e.Contract = id
		}
		a.Failed = append(a.Failed, e)
	}
	return a
}

func open(step int, built bool) Attempt { return Attempt{Step: step, Verdict: Unknown, Built: built} }

func TestStandstill(t *testing.T) {
	unbuilt := attempt(2, "a", "P1.C1=404")
	unbuilt.Built = false
	for _, c := range []struct {
		name     string
		round    []Attempt
		forUser  string // "" is progress
		inPrompt bool   // to the Builder
	}{
		{"nothing-yet", nil, "", false},
		{"the-first", []Attempt{attempt(1, "a", "P1.C1=404")}, "", false},
		{"other-trees-other-observations", []Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "b", "P1.C1=500")}, "", false},
		{"one-contract-fewer", []Attempt{attempt(1, "a", "P1.C1=404", "P1.C2=404"), attempt(2, "b", "P1.C1=404")}, "", false},
		{"one-contract-more", []Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "b", "P1.C1=404", "P1.C2=404")}, "", false},
		{"the-same-again", []Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "b", "P1.C1=404")},
			"no progress in step-2: the same contract fails with the same observations as in step-1 (P1.C1)", true},
		{"in-another-order-and-twice", []Attempt{attempt(1, "a", "P1.C1=404", "P1.C2=x"), attempt(2, "b", "P1.C2=X ", "P1.C1=404", "P1.C1=404")},
			"no progress in step-2: the same 2 contracts fail with the same observations as in step-1 (P1.C1, P1.C2)", true},
		{"two-observations-in-another-order", []Attempt{attempt(1, "a", "P1.C1=404", "P1.C1=500"), attempt(2, "b", "P1.C1=500", "P1.C1=404")},
			"no progress in step-2: the same contract fails with the same observations as in step-1 (P1.C1)", true},
		{"a-further-observation", []Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "b", "P1.C1=404", "P1.C1=500")}, "", false},
		{"no-contract-the-same-words", []Attempt{attempt(1, "a", "it=404"), attempt(2, "b", "it=404")},
			"no progress in step-2: the same contract fails with the same observations as in step-1 (the words of it)", true},
		{"the-same-tree", []Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "a", "P1.C1=500")},
			"no progress in step-2: the source is the same as in step-1 (P1.C1)", true},
		{"a-tree-from-before", []Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "b", "P1.C2=404"), attempt(3, "a", "P1.C1=500")},
			"no progress in step-3: the source is the same as in step-1 (P1.C1)", true},
		{"both", []Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "a", "P1.C1=404")},
			"no progress in step-2: the source is the same as in step-1 (P1.C1)", true},
		{"unknown-trees-are-not-the-same", []Attempt{attempt(1, "", "P1.C1=404"), attempt(2, "", "P1.C1=500")}, "", false},
		{"three-times", []Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "b", "P1.C1=404"), attempt(3, "c", "P1.C1=404")},
			"no progress in step-3, for 2 iterations: the same contract fails with the same observations as in step-2 (P1.C1)", false},
		{"moved-in-between", []Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "b", "P1.C1=404"), attempt(3, "c", "P1.C1=500"), attempt(4, "d", "P1.C1=500")},
			"no progress in step-4: the same contract fails with the same observations as in step-3 (P1.C1)", true},
		{"moved-at-last", []Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "b", "P1.C1=404"), attempt(3, "c", "P1.C1=500")}, "", false},
		{"no-verdict-in-between", []Attempt{attempt(1, "a", "P1.C1=404"), open(2, true), attempt(3, "b", "P1.C1=404")},
			"no progress in step-3: the same contract fails with the same observations as in step-1 (P1.C1)", true},
		{"a-second-call-of-the-Verifier-does-not-count", []Attempt{attempt(1, "a", "P1.C1=404"), unbuilt}, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := StandstillOf(c.round)
			if got := s.ForUser(); got != c.forUser {
				t.Errorf("got %q, want %q", got, c.forUser)
			}
			if got := s.ForBuilder(); (got != "") != c.inPrompt {
				t.Errorf("got %q for the Builder, want a text: %t", got, c.inPrompt)
			}
		})
	}
}

func TestStandstillForBuilder(t *testing.T) {
	same := StandstillOf([]Attempt{attempt(1, "a", "P1.C1=404", "P1.C2=1"), attempt(2, "b", "P1.C1=404", "P1.C2=1")}).ForBuilder()
	if !strings.HasPrefix(same, "Your last change made no difference: the same 2 contracts fail with the same observations as in step-1. ") {
		t.Errorf("text for the Builder: got %q, want the same 2 contracts as in step-1", same)
	}
	tree := StandstillOf([]Attempt{attempt(1, "a", "P1.C1=404"), attempt(2, "a", "P1.C1=404")}).ForBuilder()
	if !strings.HasPrefix(tree, "The last tested source is identical to the source of step-1") {
		t.Errorf("text for the Builder: got %q, want the identical source of step-1", tree)
	}
}

func TestStandstillEnds(t *testing.T) {
	for _, c := range []struct {
		times, limit int
		want         bool
	}{{0, 0, false}, {3, 0, false}, {0, 1, false}, {1, 1, true}, {1, 2, false}, {2, 2, true}, {3, 2, true}} {
		if got := (Standstill{Times: c.times}).Ends(c.limit); got != c.want {
			t.Errorf("Ends(%d) after %d times: got %t, want %t", c.limit, c.times, got, c.want)
		}
	}
}

// Random differences do not make another observation; others do.
func TestObservation(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"404", "404\n", true},
		{"404", "405", false},
		{"No answer  within 10 s", "no answer within 12.5 seconds", true},
		{`{"id": 12}`, `{"id": 13}`, false}, // short numbers may matter
		{`{"id": "3f2c8a90-1b2c-4d5e-8f90-a1b2c3d4e5f6"}`, `{"id": "00000000-1b2c-4d5e-8f90-a1b2c3d4e5ff"}`, true},
		{`{"id": 1700000000123}`, `{"id": 1700000099999}`, true},
		{"at 2026-01-02T03:04:05.678Z", "at 2027-11-12T13:14:15Z", true},
		{"Date: Fri, 02 Jan 2026 03:04:05 GMT", "Date: Mon, 12 Jan 2026 13:14:15 GMT", true},
		{"user_1a2b3c4d is missing", "user_9f8e7d6c is missing", true},
		{"redirect to http://app:3000/a", "redirect to http://app:41234/a", true},
		{"redirect to /login", "redirect to /logout", false},
		{"200 {\"n\": 1}", "200 {\"n\": 2}", false},
		{"password is missing", "username is missing", false},
		{"k of n: 1 of 3", "k of n: 2 of 3", false},
	} {
		if got := observation(c.a) == observation(c.b); got != c.same {
			t.Errorf("%q and %q are the same: got %t, want %t, as %q and %q",
				c.a, c.b, got, c.same, observation(c.a), observation(c.b))
		}
	}
	if diff := cmp.Diff("not at …: …, …", observation("Not at 2026-01-02 03:04: abcd1234x,\n 1234567")); diff != "" {
		t.Errorf("observation (-want +got)\n%s", diff)
	}
}
