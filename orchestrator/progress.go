package orchestrator

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"abl/internal/failedspecs"
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
	return fmt.Sprintf("Your last change made no difference: %s with the same observations as in step-%d. "+
		"So the cause is not where you looked. Bring the failure about with the INPUT given below, follow it to its end, and doubt what the last attempts took for granted.",
		plural(len(s.Contracts), "the same contract fails", "the same %d contracts fail"), s.Like)
}

// ForPerson is the standstill in one line, "" for none.
func (s Standstill) ForPerson() string {
	if s.Times == 0 {
		return ""
	}
	what := plural(len(s.Contracts), "the same contract fails", "the same %d contracts fail") + " with the same observations"
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

func plural(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return fmt.Sprintf(many, n)
}

// fewOf joins a few names.
func fewOf(names []string) string {
	const shown = 8
	if len(names) > shown {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
	}
	return strings.Join(names, ", ")
}
