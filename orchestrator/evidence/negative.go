package evidence

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/witness"
)

// try is a run in which nothing can be ok.
type try struct {
	name, how string
	run       *Run // nil was not made
	waived    bool
}

func (s Suite) tries() []try {
	return []try{
		{"away", "with the app away", s.Away, s.Waived.Away},
		{"empty 200", "under an app that answers everything with an empty 200", s.Empty, s.Waived.Null},
		{"500", "under an app that answers everything with 500", s.Broken, s.Waived.Null},
	}
}

// passes says that the run claims ok for a contract. No answer is not ok.
func (t try) passes(id string) bool { return t.run != nil && t.run.Gone == "" && t.run.TAP.Passes(id) }

// under lists the tries in which a contract is ok.
func (s Suite) under(id string) (all []string) {
	for _, t := range s.tries() {
		if t.passes(id) {
			all = append(all, t.name)
		}
	}
	return all
}

// vacuous says why the test of a contract is no evidence, "" when it is: it is
// ok with the app away, or, where what is absent is the result, under all three.
func (s Suite) vacuous(c Contract) string {
	under := s.under(c.ID)
	switch {
	case len(under) == 3:
		return "its test is ok with the app away and under both null apps: it cannot fail"
	case len(under) > 0 && under[0] == "away" && !c.Absence:
		return "its test is ok with the app away (does it ask $ABL_APP_URL?)"
	}
	return ""
}

// challenged weighs the test of a contract that is ok in every replay.
func (s Suite) challenged(c Contract) (is, why string) {
	if why := s.vacuous(c); why != "" {
		return Vacuous, why
	}
	var untried, weak []string
	for i, t := range s.tries() {
		switch {
		case t.run == nil && !t.waived:
			untried = append(untried, t.how)
		case i > 0 && t.passes(c.ID):
			weak = append(weak, t.how)
		}
	}
	switch {
	case len(untried) > 0:
		return Untried, "its tests were not tried " + strings.Join(untried, " and ")
	case len(weak) == 0:
		return Verified, ""
	case len(weak) == 1:
		return Weak, "its test is ok " + weak[0]
	}
	return Weak, "its test is ok under both null apps: it asks for no more than any answer"
}

// Suspect says that a suite is to be tried with witness.Planted: it says ok of a contract,
// and nothing at all, ok or not, wherever the app answers nothing. Mostly it has
// given up before, as shells do that end with the first failure; but the line may
// as well have been the app's own.
func Suspect(s Suite) bool {
	return slices.ContainsFunc(s.Contracts, func(c Contract) bool {
		t := tally(s.Real, c.ID)
		if t.n == 0 || t.ok < t.n {
			return false
		}
		tried := slices.DeleteFunc(s.tries(), func(t try) bool { return t.run == nil })
		return len(tried) > 0 && !slices.ContainsFunc(tried, func(t try) bool {
			return t.run.Gone != "" || t.run.TAP.Of(c.ID).Status != witness.Missing
		})
	})
}

// repeats says that the suite prints what the app answers as test lines.
func (s Suite) repeats() string {
	if s.Planted == nil {
		return ""
	}
	for _, p := range s.Planted.TAP.Points {
		if slices.Contains(p.IDs, witness.PlantedID) {
			return fmt.Sprintf("%srun.sh: it prints what the app answers as test lines of its own, so the app could pass itself", s.prefix())
		}
	}
	return ""
}
