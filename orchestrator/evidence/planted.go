package evidence

import (
	"fmt"
	"slices"

	"abl/internal/witness"
)

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
