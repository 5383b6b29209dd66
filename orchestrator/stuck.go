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
	tried, last := []string{"what was tried:"}, Attempt{}
	for _, a := range round {
		tried = append(tried, fmt.Sprintf("  step-%d: %s", a.Step, a.came()))
		if a.Verdict == Fail {
			last = a
		}
	}
	failed, advice := []string{"what failed last:"}, []string{"what you could change:"}
	for _, e := range last.Failed {
		failed = append(failed, entryLines(e)...)
		if line := "  " + advise(number, specs, e); !slices.Contains(advice, line) {
			advice = append(advice, line)
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

// came is what an iteration came to.
func (a Attempt) came() string {
	switch a.Verdict {
	case Pass:
		return "every contract held"
	case Unknown:
		return "no verdict"
	}
	now := failedIn(a)
	text := fmt.Sprintf("%s failed (%s)", wording.Count(len(now), "contract"), evidence.Few(now, ", "))
	if !a.Built {
		text += ", without a Builder"
	}
	return text
}

// advise says what could be changed about one failed contract.
func advise(number int, specs []spec.Spec, e failedspecs.Entry) string {
	switch e.Spec {
	case appContract.Spec:
		return ".abl/config.yaml: the system does not start: look at command, port and ready in the app section, and at abl logs app; a spec cannot mend it unless it says how the system is started"
	case evidence.Runs:
		return ".abl/config.yaml: the system ends by itself while it is tested: see abl logs app; where a contract wants it to end, declare a command that starts it and another that looks at its end"
	}
	for _, s := range specs {
		for _, c := range s.Contracts {
			place := fmt.Sprintf("%s (%s:%d)", c.ID, s.File, c.Line)
			switch {
			case c.ID != e.Contract:
			case s.Number < number:
				return fmt.Sprintf("%s: it held when phase %d passed: something in phase %d may contradict it; its spec can only be appended to, so change phase%d.md", place, s.Number, number, number)
			default:
				return place + ": if what was observed is right, write it into the contract; if not, give the exact request and the whole result, with an example in the Context: its words may allow more than one reading"
			}
		}
	}
	return fmt.Sprintf("no contract says %q: add it as one if you want it, or say in the Context that you do not", contractOf(e))
}
