package orchestrator

import (
	"fmt"
	"slices"

	"abl/internal/failedspecs"
	"abl/internal/spec"
	"abl/internal/wording"
	"abl/orchestrator/evidence"
)

// Explain says in lines what a stuck phase is stuck on: what failed last, what the
// attempts of the round came to, oldest first, and what could be changed. specs are
// those of phases 1 to number.
func Explain(number int, round []Attempt, specs []spec.Spec) []string {
	x := explainer{number: number, specs: specs}
	tried := []string{"what was tried:"}
	for i, a := range round {
		tried = append(tried, fmt.Sprintf("  step-%d: %s", a.Step, x.came(a, round[:i+1])))
		if a.Verdict == Fail {
			x.fails = append(x.fails, a)
		}
	}
	failed, advice, told := []string{"what failed last:"}, []string{"what you could change:"}, map[string]bool{}
	for _, a := range x.fails[max(len(x.fails)-1, 0):] {
		for _, e := range a.Failed {
			failed = append(failed, entryLines(e)...)
			if id := contractOf(e); !told[id] {
				told[id] = true
				advice = append(advice, "  "+x.advise(e))
			}
		}
	}
	general := fmt.Sprintf("  abl spec lint names words that leave room; after a change run abl phase %d again, which opens a new round", number)
	return append(slices.Concat(failed, tried, advice), general)
}

// entryLines is an entry as text.
func entryLines(e failedspecs.Entry) []string {
	head := "SPEC:"
	if e.Contract != "" {
		head = e.Contract
	}
	lines := []string{"  " + head + " " + wording.OneLine(e.Spec), "    INPUT: " + wording.OneLine(e.Input), "    OBSERVED: " + wording.OneLine(e.Observed)}
	if e.Note != "" {
		lines = append(lines, "    ("+wording.OneLine(e.Note)+")")
	}
	return lines
}

// explainer looks back on a round.
type explainer struct {
	number int
	specs  []spec.Spec
	fails  []Attempt // the failed iterations until now
}

// came is what an iteration came to, the last of those until then.
func (x explainer) came(a Attempt, until []Attempt) string {
	switch a.Verdict {
	case Pass:
		return "every contract held"
	case Unknown:
		return "no verdict"
	}
	now := failedIn(a)
	text := fmt.Sprintf("%s failed (%s)", wording.Count(len(now), "contract"), fewOf(now))
	if !a.Built {
		text += ", without a Builder"
	}
	if n := len(x.fails); n > 0 {
		if mended := minus(failedIn(x.fails[n-1]), now); len(mended) > 0 {
			text += "; mended: " + fewOf(mended)
		}
	}
	if s := StandstillOf(until); s.Step == a.Step && s.SameTree {
		text += fmt.Sprintf("; the source was that of step-%d", s.Like)
	} else if s.Step == a.Step && s.SameFails {
		text += fmt.Sprintf("; all as in step-%d", s.Like)
	}
	return text
}

// advise says what could be changed about one failed contract.
func (x explainer) advise(e failedspecs.Entry) string {
	id, times, seen := contractOf(e), 0, map[string]bool{}
	for _, a := range x.fails {
		all := observed(a)[id]
		times += min(len(all), 1)
		for _, o := range all {
			seen[o] = true
		}
	}
	place, phase := x.find(e.Contract)
	switch {
	case e.Spec == appContract.Spec:
		return ".abl/config.yaml: the system does not start: look at command, port and ready in the app section, and at abl logs app; a spec cannot mend it unless it says how the system is started"
	case e.Spec == evidence.Runs:
		return ".abl/config.yaml: the system ends by itself while it is tested: see abl logs app; where a contract wants it to end, declare a command that starts it and another that looks at its end"
	case place == "":
		return fmt.Sprintf("no contract says %q: add it as one if you want it, or say in the Context that you do not", id)
	case phase < x.number:
		return fmt.Sprintf("%s: it held when phase %d passed: something in phase %d may contradict it; its spec can only be appended to, so change phase%d.md", place, phase, x.number, x.number)
	case times > 1 && len(seen) == 1:
		return fmt.Sprintf("%s: the answer was the same all %d times: if it is right, write it into the contract; if not, say in the Context what the INPUT takes for granted (data, headers, order, state)", place, times)
	}
	return place + ": give the exact request and the whole result, with an example in the Context: its words may allow more than one reading"
}

// find is where the contract of an id stands, "" for none, and in the spec of which phase.
func (x explainer) find(id string) (place string, phase int) {
	for _, s := range x.specs {
		for _, c := range s.Contracts {
			if c.ID == id && id != "" {
				return fmt.Sprintf("%s (%s:%d)", id, s.File, c.Line), s.Number
			}
		}
	}
	return "", 0
}

// minus are the names of a that b lacks.
func minus(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}
