package orchestrator

import (
	"fmt"
	"slices"

	"abl/internal/failedspecs"
	"abl/internal/spec"
	"abl/orchestrator/evidence"
)

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
