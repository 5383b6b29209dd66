package orchestrator

import (
	"fmt"
	"slices"

	"abl/internal/failedspecs"
	"abl/internal/spec"
	"abl/internal/wording"
	"abl/orchestrator/evidence"
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

// past is how one contract fared in the failed iterations of a round.
type past struct {
	failed  int      // in how many it failed
	seen    []string // what was observed, each once
	brokeIn int      // step in which it failed again after it had held
	mended  []string // what that step mended
}

func (x explainer) past(id string) (p past) {
	var before *Attempt
	for i := range x.round {
		a := &x.round[i]
		if a.Verdict != Fail {
			continue
		}
		all := observed(*a)
		for _, o := range all[id] {
			if !slices.Contains(p.seen, o) {
				p.seen = append(p.seen, o)
			}
		}
		if len(all[id]) > 0 {
			if p.failed > 0 && before != nil && len(observed(*before)[id]) == 0 {
				p.brokeIn, p.mended = a.Step, minus(failedIn(*before), failedIn(*a))
			}
			p.failed++
		}
		before = a
	}
	return p
}

// advise says what could be changed about one failed contract.
func (x explainer) advise(e failedspecs.Entry) Advice {
	c, file, phase := x.find(e.Contract)
	a := Advice{Contract: e.Contract, File: file, Line: c.Line}
	p := x.past(contractOf(e))
	switch {
	case e.Spec == appContract.Spec:
		a.Contract, a.File = "", ".abl/config.yaml"
		a.Text = "the system does not start: look at command, port and ready in the app section, and at abl logs app; a spec cannot mend it unless it says how the system is started"
	case e.Spec == evidence.Runs:
		a.Contract, a.File = "", ".abl/config.yaml"
		a.Text = "the system ends by itself while it is tested: see abl logs app; where a contract wants it to end, declare a command that starts it and another that looks at its end"
	case file == "":
		a.Contract = ""
		a.Text = fmt.Sprintf("no contract says %q: add it as one if you want it, or say in the Context that you do not", contractOf(e))
	case p.brokeIn > 0 && len(p.mended) > 0:
		a.Text = fmt.Sprintf("it held, and failed again in step-%d, which mended %s: put them side by side, they may contradict each other", p.brokeIn, fewOf(p.mended))
	case phase < x.number:
		a.Text = fmt.Sprintf("it held when phase %d passed: something in phase %d may contradict it; its spec can only be appended to, so change phase%d.md", phase, x.number, x.number)
	case p.failed > 1 && len(p.seen) == 1:
		a.Text = fmt.Sprintf("the answer was the same all %d times: if it is right, write it into the contract; if not, say in the Context what the INPUT takes for granted (data, headers, order, state)", p.failed)
	case p.failed > 1:
		a.Text = "the answer changed from time to time: the words may allow more than one reading; give the exact request and the whole result, with an example in the Context"
	default:
		a.Text = "it failed last of all: see whether method, path, headers, body and the whole result are given exactly"
	}
	return a
}

// find is the contract of an id with its spec.
func (x explainer) find(id string) (c spec.Contract, file string, phase int) {
	for _, s := range x.specs {
		for _, c := range s.Contracts {
			if c.ID == id && id != "" {
				return c, s.File, s.Number
			}
		}
	}
	return c, "", 0
}

// general is advice about the phase as a whole.
func (x explainer) general() (all []Advice) {
	file := ""
	for _, s := range x.specs {
		if s.Number == x.number {
			file = s.File
		}
	}
	if s := StandstillOf(x.round); s.SameTree {
		all = append(all, Advice{Text: "the Builder left the source as it was: read its last report in builder_reports/, it may hold that the system is right"})
	}
	if x.wanders() {
		all = append(all, Advice{File: file, Text: "every attempt broke other contracts: the phase may be too large for one; move some of its contracts into a phase of their own"})
	}
	return append(all, Advice{File: file, Text: fmt.Sprintf("abl spec lint names words that leave room; after a change run abl phase %d again, which opens a new round", x.number)})
}

// wanders says that what failed in an iteration never failed in the one before,
// three times at least.
func (x explainer) wanders() bool {
	var fails []Attempt
	for _, a := range x.round {
		if a.Verdict == Fail {
			fails = append(fails, a)
		}
	}
	for i := 1; i < len(fails); i++ {
		if len(minus(failedIn(fails[i]), failedIn(fails[i-1]))) < len(failedIn(fails[i])) {
			return false
		}
	}
	return len(fails) >= 3
}
