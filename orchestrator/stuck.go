package orchestrator

import (
	"fmt"
	"slices"

	"abl/internal/failedspecs"
	"abl/internal/spec"
	"abl/internal/wording"
)

// Impasse is what a person is told about a phase that is stuck.
type Impasse struct {
	Entries  []failedspecs.Entry `json:"entries"`  // of the last failed iteration
	Attempts []string            `json:"attempts"` // one line an iteration, oldest first
	Advice   []Advice            `json:"advice"`
}

// Advice is something that a person could change in a spec.
type Advice struct {
	Contract string `json:"contract,omitempty"` // id
	File     string `json:"file,omitempty"`     // of the spec
	Line     int    `json:"line,omitempty"`     // of the contract, 0 for none
	Text     string `json:"text"`
}

// Place is where the advice is about, "" for the phase as a whole.
func (a Advice) Place() string {
	switch {
	case a.File != "" && a.Contract != "":
		return fmt.Sprintf("%s (%s:%d)", a.Contract, a.File, a.Line)
	case a.Contract != "":
		return a.Contract
	}
	return a.File
}

// Explain says what a stuck phase is stuck on: the entries, the attempts of the
// round, oldest first, and what could be changed. specs are those of phases 1 to
// number.
func Explain(number int, round []Attempt, specs []spec.Spec) Impasse {
	x := explainer{number: number, round: round, specs: specs}
	i := Impasse{Attempts: x.attempts()}
	for _, a := range slices.Backward(round) {
		if a.Verdict == Fail {
			i.Entries = a.Failed
			break
		}
	}
	told := map[string]bool{}
	for _, e := range i.Entries {
		if id := contractOf(e); !told[id] {
			told[id] = true
			i.Advice = append(i.Advice, x.advise(e))
		}
	}
	i.Advice = append(i.Advice, x.general()...)
	return i
}

// Lines is the impasse as text, one line each.
func (i Impasse) Lines() []string {
	lines := []string{"what failed last:"}
	for _, e := range i.Entries {
		head := "  SPEC: " + wording.OneLine(e.Spec)
		if e.Contract != "" {
			head = "  " + e.Contract + " " + wording.OneLine(e.Spec)
		}
		lines = append(lines, head, "    INPUT: "+wording.OneLine(e.Input), "    OBSERVED: "+wording.OneLine(e.Observed))
		if e.Note != "" {
			lines = append(lines, "    ("+wording.OneLine(e.Note)+")")
		}
	}
	lines = append(lines, "what was tried:")
	for _, a := range i.Attempts {
		lines = append(lines, "  "+a)
	}
	lines = append(lines, "what you could change:")
	for _, a := range i.Advice {
		text := "  " + a.Text
		if place := a.Place(); place != "" {
			text = "  " + place + ": " + a.Text
		}
		lines = append(lines, text)
	}
	return lines
}

// explainer looks back on a round.
type explainer struct {
	number int
	round  []Attempt
	specs  []spec.Spec
}

// attempts tells each iteration in one line, with what changed in it.
func (x explainer) attempts() (lines []string) {
	for i, a := range x.round {
		lines = append(lines, fmt.Sprintf("step-%d: %s", a.Step, x.came(i, a)))
	}
	return lines
}

// came is what the i-th iteration came to.
func (x explainer) came(i int, a Attempt) string {
	switch a.Verdict {
	case Pass:
		return "every contract held"
	case Unknown:
		return "no verdict"
	}
	now := failedIn(a)
	text := fmt.Sprintf("%s (%s)", wording.Count(len(now), "contract")+" failed", fewOf(now))
	if !a.Built {
		text += ", without a Builder"
	}
	before := x.failedBefore(i)
	if before == nil {
		return text
	}
	was := failedIn(*before)
	if fixed := minus(was, now); len(fixed) > 0 {
		text += "; mended: " + fewOf(fixed)
	}
	if broke := minus(now, was); len(broke) > 0 {
		text += "; not failed before it: " + fewOf(broke)
	}
	if s := StandstillOf(x.round[:i+1]); s.Step == a.Step && s.SameTree {
		text += fmt.Sprintf("; the source was that of step-%d", s.Like)
	} else if s.Step == a.Step && s.SameFails {
		text += fmt.Sprintf("; all as in step-%d", s.Like)
	}
	return text
}

// failedBefore is the last failed iteration before the i-th, nil for none.
func (x explainer) failedBefore(i int) *Attempt {
	for i--; i >= 0; i-- {
		if x.round[i].Verdict == Fail {
			return &x.round[i]
		}
	}
	return nil
}

// minus are the names of a that b lacks.
func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
