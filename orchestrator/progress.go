package orchestrator

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"abl/internal/failedspecs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/wording"
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
	SameTree  bool     // the source is that of Like
	SameFails bool     // the same contracts failed with the same observations
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
		now := compare(before, a)
		if now.Times > 0 {
			now.Times += s.Times
		}
		s = now
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
	s.SameFails = maps.EqualFunc(observed(last), observed(a), slices.Equal)
	for _, b := range slices.Backward(before) {
		if a.Tree != "" && a.Tree == b.Tree {
			s.SameTree = true
			if !s.SameFails {
				s.Like = b.Step
			}
			break
		}
	}
	if !s.SameTree && !s.SameFails {
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
		return fmt.Sprintf("The source that was tested last is the same, byte for byte, as that of step-%d, your reports left aside, and it failed then as well. "+
			"Only what you change in your working directory, and what git does not ignore there, is tested. "+
			"If you hold that the system is right, show it with the INPUT given below before you leave it as it is.", s.Like)
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
	what := s.fails()
	switch {
	case s.SameTree && s.SameFails:
		what = "the source is the same and " + what
	case s.SameTree:
		what = "the source is the same"
	}
	long := ""
	if s.Times > 1 {
		long = fmt.Sprintf(", for %d iterations", s.Times)
	}
	return fmt.Sprintf("no progress in step-%d%s: %s as in step-%d (%s)", s.Step, long, what, s.Like, fewOf(s.Contracts))
}

// fails says that the same contracts fail as before.
func (s Standstill) fails() string {
	what := "the same contract fails"
	if n := len(s.Contracts); n > 1 {
		what = fmt.Sprintf("the same %d contracts fail", n)
	}
	return what + " with the same observations"
}

// fewOf joins a few names.
func fewOf(names []string) string {
	const shown = 8
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
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
			text += fmt.Sprintf("; the phase ends here, for loop.no_progress is %d", l.NoProgress)
		}
		l.emit(p, state.Event{Kind: state.Note, Text: text})
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
	l.emit(p, state.Event{Kind: state.Note, Text: fmt.Sprintf("what a verdict lacks did not change: the round ends here, for loop.no_progress.unverified is %d", l.NoVerdict)})
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
func failedIn(a Attempt) []string { return slices.Sorted(maps.Keys(observed(a))) }

// observed is what was observed of each contract that failed, sorted.
func observed(a Attempt) map[string][]string {
	all := map[string][]string{}
	for _, e := range a.Failed {
		id, o := contractOf(e), observation(e.Observed)
		if !slices.Contains(all[id], o) {
			all[id] = append(all[id], o)
		}
	}
	for _, o := range all {
		slices.Sort(o)
	}
	return all
}

// chance is what differs from one run to the next, in order.
var chance = []struct {
	what *regexp.Regexp
	mark string
}{
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?\b`), "<time>"},
	{regexp.MustCompile(`\b(?:mon|tue|wed|thu|fri|sat|sun), \d\d [a-z]{3} \d{4} \d\d:\d\d:\d\d gmt\b`), "<time>"},
	{regexp.MustCompile(`\b\d+(?:\.\d+)? ?(?:ms|µs|s|seconds?|milliseconds?)\b`), "<time>"},
	{regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b`), "<id>"},
	{regexp.MustCompile(`:\d{4,5}\b`), ":<port>"},
	{regexp.MustCompile(`\b\d{6,}\b`), "<number>"},
	{regexp.MustCompile(`\b[0-9a-z_]*\d[0-9a-z_]*\d[0-9a-z_]*\b`), "<id>"}, // when it is long: no word has two digits
}

// observation is what was observed without what differs by chance from one run
// to the next: times, generated ids, long numbers, ports, case and spaces. Short
// numbers, such as a status, stay.
func observation(text string) string {
	text = strings.ToLower(strings.Join(strings.Fields(text), " "))
	for _, c := range chance {
		text = c.what.ReplaceAllStringFunc(text, func(found string) string {
			if c.mark == "<id>" && len(found) < 8 {
				return found
			}
			return c.mark
		})
	}
	return text
}
