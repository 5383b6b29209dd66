package orchestrator

import (
	"fmt"
	"path/filepath"
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

// Attempt is the result of one iteration of a round, as far as it matters for progress.
type Attempt struct {
	Step    int
	Verdict Verdict
	Built   bool                // a Builder's call was part of it
	Tree    string              // hash of the tested source without the Builder's reports; "" if unknown
	Failed  []failedspecs.Entry // on a Fail
}

// Standstill describes iterations without progress. The zero value means progress.
type Standstill struct {
	Times     int      // iterations in a row without progress
	Step      int      // the last of them
	Like      int      // the step that it repeats
	SameTree  bool     // it has the source of Like; otherwise the same observations
	Contracts []string // that failed, by id, or by their text without an id
}

// StandstillOf compares the iterations of a round, oldest first. There is no progress if the same
// contracts fail with the same observations as in the last failed iteration, or if the source
// already failed in this round. Iterations without a verdict or a Builder are ignored.
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

// compare returns the standstill between an attempt and the earlier ones.
func compare(before []Attempt, a Attempt) Standstill {
	if len(before) == 0 {
		return Standstill{}
	}
	last := before[len(before)-1]
	s := Standstill{Times: 1, Step: a.Step, Like: last.Step, Contracts: failedIn(a)}
	for _, b := range slices.Backward(before) {
		s.SameTree = a.Tree != "" && a.Tree == b.Tree
		if s.SameTree {
			s.Like = b.Step
			break
		}
	}
	if !s.SameTree && !slices.Equal(observed(last), observed(a)) {
		return Standstill{}
	}
	return s
}

// Ends reports whether the phase should end. limit is loop.no_progress, 0 for no limit.
func (s Standstill) Ends(limit int) bool { return limit > 0 && s.Times >= limit }

// ForBuilder returns the message for the Builder, "" without one. The message is sent once, when a
// standstill begins.
func (s Standstill) ForBuilder() string {
	if s.Times != 1 {
		return ""
	}
	if s.SameTree {
		return fmt.Sprintf("The last tested source is identical to the source of step-%d, except for your reports, "+
			"and it failed then, too. "+
			"Only changes in your working directory that git does not ignore are tested. "+
			"If you think that the system is right, prove it with the INPUT given below.", s.Like)
	}
	return fmt.Sprintf("Your last change made no difference: %s as in step-%d. "+
		"So the cause is elsewhere. Reproduce the failure with the INPUT given below, trace it to its cause, "+
		"and question the assumptions of the last attempts.",
		s.fails(), s.Like)
}

// ForUser returns the standstill in one line, "" without one.
func (s Standstill) ForUser() string {
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
	return fmt.Sprintf("no progress in step-%d%s: %s as in step-%d (%s)", s.Step, long, what, s.Like,
		wording.Few(s.Contracts, evidence.MostShown, ", "))
}

// fails returns that the same contracts fail as before.
func (s Standstill) fails() string {
	what := "the same contract fails"
	if n := len(s.Contracts); n > 1 {
		what = fmt.Sprintf("the same %d contracts fail", n)
	}
	return what + " with the same observations"
}

// Attempts returns the judged iterations of p's round, oldest first. An iteration without a finding
// on record counts as without a verdict.
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
		a.Failed = f.Entries
		if !kept && a.Verdict == Fail {
			a.Verdict = Unknown
		}
		all = append(all, a)
	}
	return all, nil
}

// standstill compares the iteration of f with earlier ones, and reports a standstill.
func (l *Loop) standstill(p *state.Phase, f Finding) (s Standstill, tree string, err error) {
	if p.SrcCommit != "" {
		if tree, err = l.Src.TreeKey(p.SrcCommit, roles.Builder.Reports); err != nil {
			return s, "", fmt.Errorf("cannot compare the source with earlier ones: %w", err)
		}
	}
	round, err := Attempts(l.Project, *p)
	if err != nil || f.Verdict != Fail {
		return s, tree, err
	}
	s = StandstillOf(append(round, Attempt{
		Step:    p.Step,
		Verdict: f.Verdict,
		Built:   !p.VerifierOnly,
		Tree:    tree,
		Failed:  f.Entries,
	}))
	if s.Step != p.Step {
		s = Standstill{} // of an earlier one
	}
	if text := s.ForUser(); text != "" {
		if s.Ends(l.NoProgress) {
			text += fmt.Sprintf("; the phase ends (loop.no_progress: %d)", l.NoProgress)
		}
		l.say(p, text)
	}
	return s, tree, nil
}

// sameAnswer reports whether the Verifier has left the same gaps as often as the settings allow. It
// counts them in p.
func (l *Loop) sameAnswer(p *state.Phase, f Finding) bool {
	was := p.Repeated
	p.Repeated = 0
	if f.Verdict != Unknown || p.Recheck || p.Class != string(outcome.Done) {
		return false
	}
	p.Repeated = 1
	if sameReasons(p.Why, f.Missing) {
		p.Repeated = was + 1
	}
	if l.NoVerdict == 0 || p.Repeated < l.NoVerdict {
		return false
	}
	l.say(p, fmt.Sprintf("the Verifier left the same gaps %d times in a row: "+
		"the round ends (loop.no_progress.unverified: %d)", p.Repeated, l.NoVerdict))
	return true
}

// sameReasons reports whether two calls left the same gaps. It ignores text that differs from run to
// run.
func sameReasons(a, b []string) bool {
	return slices.EqualFunc(a, b, func(a, b string) bool { return observation(a) == observation(b) })
}

// contractOf returns the id of an entry's contract, or its text without an id.
func contractOf(e failedspecs.Entry) string {
	if e.Contract != "" {
		return e.Contract
	}
	return wording.Cut(wording.OneLine(e.Spec), 80)
}

// failedIn returns the sorted contracts that an attempt failed.
func failedIn(a Attempt) (all []string) {
	for _, e := range a.Failed {
		all = append(all, contractOf(e))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// observed returns the sorted observations of the contracts that an attempt failed.
func observed(a Attempt) (all []string) {
	for _, e := range a.Failed {
		all = append(all, contractOf(e)+": "+observation(e.Observed))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// chance matches text that differs from one run to the next.
var chance = []*regexp.Regexp{
	regexp.MustCompile(`\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?\b`),
	regexp.MustCompile(`\b(?:mon|tue|wed|thu|fri|sat|sun), \d\d [a-z]{3} \d{4} \d\d:\d\d:\d\d gmt\b`),
	regexp.MustCompile(`\b\d+(?:\.\d+)? ?(?:ms|µs|s|seconds?|milliseconds?)\b`),
	regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`),
	regexp.MustCompile(`:\d{4,5}\b`),
	regexp.MustCompile(`\b\d{6,}\b`),
}

// withDigits matches words with two digits, which may be generated ids.
var withDigits = regexp.MustCompile(`\b[0-9a-z_]*\d[0-9a-z_]*\d[0-9a-z_]*\b`)

// observation returns an observation without text that differs from one run to the next: times,
// generated ids, long numbers, ports, case and spaces. Short numbers, such as a status, stay.
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

// Explain returns lines that explain why a phase is stuck: the last failures, the results of the
// round's attempts, oldest first, and possible changes. specs are those of phases 1 to number.
func Explain(number int, round []Attempt, specs []spec.Spec) []string {
	tried, last := []string{"what was tried:"}, Attempt{}
	for _, a := range round {
		tried = append(tried, fmt.Sprintf("  step-%d: %s", a.Step, a.result()))
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

// Advice returns one line per change that the user could make after these entries failed in a
// phase. specs are those of phases 1 to number.
func Advice(number int, failed []failedspecs.Entry, specs []spec.Spec) (lines []string) {
	for _, e := range failed {
		if line := advise(number, specs, e); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return append(lines, fmt.Sprintf("abl spec lint lists ambiguous words; after a change run abl phase %d again, "+
		"which opens a new round", number))
}

// entryLines returns an entry as text.
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

// result returns the result of an iteration as text.
func (a Attempt) result() string {
	switch a.Verdict {
	case Pass:
		return "every contract held"
	case Unknown:
		return "no verdict"
	}
	now := failedIn(a)
	text := fmt.Sprintf("%s failed (%s)", wording.Count(len(now), "contract"), wording.Few(now, evidence.MostShown, ", "))
	if !a.Built {
		text += ", without a Builder"
	}
	return text
}

// advise returns what the user could change about one failed contract.
func advise(number int, specs []spec.Spec, e failedspecs.Entry) string {
	switch e.Spec {
	case appContract.Spec:
		return ".abl/config.yaml: the system does not start: check command, port and ready in the app section, " +
			"and abl logs app"
	case evidence.Runs:
		return ".abl/config.yaml: the system ends on its own while it is tested: see abl logs app; " +
			"if a contract wants that, declare commands that start it and check its end"
	}
	for _, s := range specs {
		for _, c := range s.Contracts {
			place := fmt.Sprintf("%s (%s:%d)", c.ID, filepath.Base(s.File), c.Line)
			switch {
			case c.ID != e.Contract:
			case s.Number < number:
				return fmt.Sprintf("%s: it held when phase %d passed, and phase %d may contradict it: correct phase%d.md", place,
					s.Number, number, number)
			default:
				return place + ": if the observation is right, write it into the contract; otherwise give the exact " +
					"request and the whole result there, and an example in the Context"
			}
		}
	}
	return fmt.Sprintf("no contract says %q: add it as a contract, or exclude it in the Context", contractOf(e))
}
