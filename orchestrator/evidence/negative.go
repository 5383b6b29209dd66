package evidence

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/witness"
)

// The runs in which nothing can be ok, as they are called.
const (
	inAway   = "away"
	inEmpty  = "empty 200"
	inBroken = "500"
)

// passes says that a negative run claims ok for a contract. No answer is not ok.
func (r *Run) passes(id string) bool { return r != nil && r.Gone == "" && r.TAP.Passes(id) }

// under lists the negative runs in which a contract is ok.
func (s Suite) under(id string) (all []string) {
	for _, run := range []struct {
		name string
		run  *Run
	}{{inAway, s.Away}, {inEmpty, s.Empty}, {inBroken, s.Broken}} {
		if run.run.passes(id) {
			all = append(all, run.name)
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
	case len(under) > 0 && under[0] == inAway && !c.Absence:
		return "its test is ok with the app away (does it ask $ABL_APP_URL?)"
	}
	return ""
}

// hollow adds to a contract that was not reproduced that its test could not have.
func (s Suite) hollow(c Contract) string {
	if why := s.vacuous(c); why != "" {
		return "; but " + why
	}
	return ""
}

// challenged weighs the test of a contract that is ok in every replay.
func (s Suite) challenged(c Contract) (is, why string) {
	if why := s.vacuous(c); why != "" {
		return Vacuous, why
	}
	var untried, weak []string
	if s.Away == nil && !s.Waived.Away {
		untried = append(untried, "with the app away")
	}
	if s.Empty == nil && !s.Waived.Null {
		untried = append(untried, "under an app that answers everything with an empty 200")
	}
	if s.Broken == nil && !s.Waived.Null {
		untried = append(untried, "under an app that answers everything with 500")
	}
	if len(untried) > 0 {
		return Untried, "its tests were not tried " + strings.Join(untried, " and ")
	}
	for _, name := range s.under(c.ID) {
		if name != inAway {
			weak = append(weak, name)
		}
	}
	switch len(weak) {
	case 0:
		return Verified, ""
	case 1:
		return Weak, "its test is ok under an app that answers everything with " + strings.Replace(weak[0], "empty", "an empty", 1)
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
		tried := 0
		for _, r := range []*Run{s.Away, s.Empty, s.Broken} {
			if r == nil {
				continue
			}
			if tried++; r.Gone != "" || r.TAP.Of(c.ID).Status != witness.Missing {
				return false
			}
		}
		return tried > 0
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
