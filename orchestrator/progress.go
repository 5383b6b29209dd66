package orchestrator

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"abl/internal/failedspecs"
	"abl/internal/outcome"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/wording"
	"abl/orchestrator/evidence"
	"abl/roles"
)

// Attempt is what one iteration of a round came to, as far as progress shows in
// it.
type Attempt struct {
	Step    int
	Verdict Verdict
	Built   bool                // the Builder worked in it; false in one of the Verifier alone
	Tree    string              // of the source that was tested, the Builder's reports left out; "" is unknown
	Failed  []failedspecs.Entry // on a Fail
}

// Standstill is how long nothing has moved. The zero value is progress.
type Standstill struct {
	Times     int      // iterations in a row without progress
	Step      int      // the last of them
	Like      int      // the step that it repeats
	SameTree  bool     // the source is that of Like, else the observations are
	Contracts []string // that failed, by id, or in their own words when they have none
}

// StandstillOf looks at the iterations of a round, oldest first. There is no
// progress where the same contracts fail with the same observations as in the
// failed iteration before, or where the source is one that failed already in
// this round. What came to no verdict, or had no Builder, tells nothing.
func StandstillOf(round []Attempt) (s Standstill) {
	var before []Attempt
	for _, a := range round {
		if a.Verdict != Fail || !a.Built {
			continue
		}
		times := s.Times
		if s = compare(before, a); s.Times > 0 {
			s.Times += times
		}
		before = append(before, a)
	}
	return s
}

// compare is the standstill between an attempt and those before it.
func compare(before []Attempt, a Attempt) Standstill {
	if len(before) == 0 {
		return Standstill{}
	}
	last := before[len(before)-1]
	s := Standstill{Times: 1, Step: a.Step, Like: last.Step, Contracts: failedIn(a)}
	for _, b := range slices.Backward(before) {
		if s.SameTree = a.Tree != "" && a.Tree == b.Tree; s.SameTree {
			s.Like = b.Step
			break
		}
	}
	if !s.SameTree && !slices.Equal(observed(last), observed(a)) {
		return Standstill{}
	}
	return s
}

// Ends says whether the person wants to stop here: limit is loop.no_progress, 0
// for never.
func (s Standstill) Ends(limit int) bool { return limit > 0 && s.Times >= limit }

// ForBuilder is what the Builder is told, "" when there is nothing to say: it is
// told once, when the standstill begins.
func (s Standstill) ForBuilder() string {
	if s.Times != 1 {
		return ""
	}
	if s.SameTree {
		return fmt.Sprintf("The source that was tested last is the same, byte for byte, as that of step-%d, your reports left aside, and it failed then, too. "+
			"Only what you change in your working directory, and what git does not ignore there, is tested. "+
			"If you hold that the system is right, show it with the INPUT given below.", s.Like)
	}
	return fmt.Sprintf("Your last change made no difference: %s as in step-%d. "+
		"So the cause is not where you looked. Bring the failure about with the INPUT given below, follow it to its end, and doubt what the last attempts took for granted.",
		s.fails(), s.Like)
}

// ForPerson is the standstill in one line, "" for none.
func (s Standstill) ForPerson() string {
	if s.Times == 0 {
		return ""
	}
	what, long := s.fails(), ""
	if s.SameTree {
		what = "the source is the same"
	}
	if s.Times > 1 {
		long = fmt.Sprintf(", for %d iterations", s.Times)
	}
	return fmt.Sprintf("no progress in step-%d%s: %s as in step-%d (%s)", s.Step, long, what, s.Like, evidence.Few(s.Contracts, ", "))
}

// fails says that the same contracts fail as before.
func (s Standstill) fails() string {
	what := "the same contract fails"
	if n := len(s.Contracts); n > 1 {
		what = fmt.Sprintf("the same %d contracts fail", n)
	}
	return what + " with the same observations"
}

// Attempts are the iterations of p's round that were judged, oldest first. One
// whose finding is no longer on record tells nothing.
func Attempts(in state.Project, p state.Phase) (all []Attempt, err error) {
	for _, r := range p.History {
		if r.Round != p.Round {
			continue
		}
		a := Attempt{Step: r.Step, Verdict: Verdict(r.Verdict), Built: !r.VerifierOnly, Tree: r.Tree}
		f, kept, err := roles.Read[Finding](roles.Record{Dir: in.Call(r.Call)}, roles.FindingFile)
		if err != nil {
			return nil, err
		}
		if a.Failed = f.Entries; !kept && a.Verdict == Fail {
			a.Verdict = Unknown
		}
		all = append(all, a)
	}
	return all, nil
}

// standstill looks whether the iteration that f is about has moved anything.
func (l *Loop) standstill(p *state.Phase, f Finding) (s Standstill, tree string, err error) {
	if p.SrcCommit != "" {
		if tree, err = l.Src.TreeKey(p.SrcCommit, roles.Builder.Reports); err != nil {
			return s, "", fmt.Errorf("cannot compare the source with what was tested before: %w", err)
		}
	}
	round, err := Attempts(l.Project, *p)
	if err != nil || f.Verdict != Fail {
		return s, tree, err
	}
	s = StandstillOf(append(round, Attempt{Step: p.Step, Verdict: f.Verdict, Built: !p.VerifierOnly, Tree: tree, Failed: f.Entries}))
	if s.Step != p.Step {
		s = Standstill{} // of an earlier one
	}
	if text := s.ForPerson(); text != "" {
		if s.Ends(l.NoProgress) {
			text += fmt.Sprintf("; the phase ends (loop.no_progress: %d)", l.NoProgress)
		}
		l.say(p, text)
	}
	return s, tree, nil
}

// sameAnswer says whether the Verifier has left the same without a verdict for as
// often as the person allows, and notes in p how often that was.
func (l *Loop) sameAnswer(p *state.Phase, f Finding) bool {
	was := p.Repeated
	p.Repeated = 0
	if f.Verdict != Unknown || p.Recheck || p.Class != string(outcome.Done) {
		return false
	}
	if p.Repeated = 1; sameReasons(p.Why, f.Missing) {
		p.Repeated = was + 1
	}
	if l.NoVerdict == 0 || p.Repeated < l.NoVerdict {
		return false
	}
	l.say(p, fmt.Sprintf("the Verifier left the same gaps %d times in a row: the round ends (loop.no_progress.unverified: %d)", p.Repeated, l.NoVerdict))
	return true
}

// sameReasons compares what two answers lack, apart from what differs by chance.
func sameReasons(a, b []string) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool { return observation(a) == observation(b) })
}

// contractOf is what an entry's contract is known by: its id, or its words.
func contractOf(e failedspecs.Entry) string {
	if e.Contract != "" {
		return e.Contract
	}
	return wording.Cut(wording.OneLine(e.Spec), 80)
}

// failedIn are the contracts that an attempt failed, sorted.
func failedIn(a Attempt) (all []string) {
	for _, e := range a.Failed {
		all = append(all, contractOf(e))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// observed is what was observed of the contracts that an attempt failed, sorted.
func observed(a Attempt) (all []string) {
	for _, e := range a.Failed {
		all = append(all, contractOf(e)+": "+observation(e.Observed))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// chance is what differs from one run to the next, in order.
var chance = []*regexp.Regexp{
	regexp.MustCompile(`\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?\b`),
	regexp.MustCompile(`\b(?:mon|tue|wed|thu|fri|sat|sun), \d\d [a-z]{3} \d{4} \d\d:\d\d:\d\d gmt\b`),
	regexp.MustCompile(`\b\d+(?:\.\d+)? ?(?:ms|µs|s|seconds?|milliseconds?)\b`),
	regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`),
	regexp.MustCompile(`:\d{4,5}\b`),
	regexp.MustCompile(`\b\d{6,}\b`),
}

// withDigits may be a generated id: no word has two digits.
var withDigits = regexp.MustCompile(`\b[0-9a-z_]*\d[0-9a-z_]*\d[0-9a-z_]*\b`)

// observation is what was observed without what differs by chance from one run
// to the next: times, generated ids, long numbers, ports, case and spaces. Short
// numbers, such as a status, stay.
func observation(text string) string {
	text = strings.ToLower(wording.OneLine(text))
	for _, c := range chance {
		text = c.ReplaceAllString(text, "…")
	}
	return withDigits.ReplaceAllStringFunc(text, func(word string) string {
		if len(word) < 8 {
			return word
		}
		return "…"
	})
}

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
	}
	for _, line := range Advice(number, last.Failed, specs) {
		advice = append(advice, "  "+line)
	}
	return slices.Concat(failed, tried, advice)
}

// Advice says, a line each, what the user could change after these entries failed in a phase. specs are
// those of phases 1 to number.
func Advice(number int, failed []failedspecs.Entry, specs []spec.Spec) (lines []string) {
	for _, e := range failed {
		if line := advise(number, specs, e); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return append(lines, fmt.Sprintf("abl spec lint names words that leave room; after a change run abl phase %d again, which opens a new round", number))
}

// entryLines is an entry as text.
func entryLines(e failedspecs.Entry) []string {
	head := "SPEC:"
	if e.Contract != "" {
		head = e.Contract
	}
	lines := []string{
		"  " + head + " " + wording.OneLine(e.Spec),
		"    INPUT: " + wording.OneLine(e.Input),
		"    OBSERVED: " + wording.OneLine(e.Observed),
	}
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
		return ".abl/config.yaml: the system does not start: look at command, port and ready in the app section, and at abl logs app"
	case evidence.Runs:
		return ".abl/config.yaml: the system ends by itself while it is tested: see abl logs app; where a contract wants that, declare commands that start it and look at its end"
	}
	for _, s := range specs {
		for _, c := range s.Contracts {
			place := fmt.Sprintf("%s (%s:%d)", c.ID, s.File, c.Line)
			switch {
			case c.ID != e.Contract:
			case s.Number < number:
				return fmt.Sprintf("%s: it held when phase %d passed: something in phase %d may contradict it, so change phase%d.md", place, s.Number, number, number)
			default:
				return place + ": write what was observed into the contract if it is right, else the exact request and the whole result, with an example in the Context"
			}
		}
	}
	return fmt.Sprintf("no contract says %q: add it as one if you want it, or say in the Context that you do not", contractOf(e))
}
