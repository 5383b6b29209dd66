package evidence

import (
	"fmt"
	"slices"

	"abl/internal/witness"
)

// Alteration is a replay in which the answers that fit some contracts were altered, to
// see whether their tests notice.
type Alteration struct {
	What      witness.Alteration
	Contracts []string
	Run       Run // its record says which answers were
}

// Alterations are the replays by which it is seen whether tests that are ok would notice:
// first all contracts at once, for what is still ok then notices for certain nothing, and
// of those that noticed each by itself, for it may have noticed what happened to another.
// Those that share a request with another contract come first.
func (s Suite) Alterations() (all []Alteration) {
	for _, what := range []witness.Alteration{witness.OfStatus, witness.OfNamed} {
		ids := s.alterable(what)
		if len(s.Altered) == 0 && len(ids) > 0 {
			all = append(all, Alteration{What: what, Contracts: ids})
			continue
		}
		for _, id := range ids {
			made := func(a Alteration) bool { return a.What == what && slices.Contains(a.Contracts, id) }
			alone := func(a Alteration) bool { return made(a) && len(a.Contracts) == 1 }
			if slices.ContainsFunc(s.Altered, made) && !slices.ContainsFunc(s.Altered, alone) && s.unnoticed(id) == "" {
				all = append(all, Alteration{What: what, Contracts: []string{id}})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Alteration) int { return s.sharing(b.Contracts[0]) - s.sharing(a.Contracts[0]) })
	return all
}

// alterable lists the contracts with an answer that can be altered in this way.
func (s Suite) alterable(what witness.Alteration) (ids []string) {
	for _, c := range s.Contracts {
		if c.Claim != nil && c.Claim.Names(what) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// sharing counts the exchanges that fit another contract as well.
func (s Suite) sharing(id string) (n int) {
	if len(s.Real) == 0 {
		return 0
	}
	for _, x := range s.Real[0].Record {
		var fits []string
		for _, c := range s.Contracts {
			if c.Claim != nil && c.Claim.Fits(x) {
				fits = append(fits, c.ID)
			}
		}
		if len(fits) > 1 && slices.Contains(fits, id) {
			n++
		}
	}
	return n
}

// unnoticed says at which alteration the test of a contract was still ok, "" for none.
func (s Suite) unnoticed(id string) string {
	for _, c := range s.Contracts {
		for _, a := range s.Altered {
			if c.ID != id || !slices.Contains(a.Contracts, id) || !a.Run.TAP.Passes(id) {
				continue
			}
			at := slices.IndexFunc(a.Run.Record, func(x witness.Exchange) bool {
				return x.Altered && c.Claim.Alters(a.What, x)
			})
			if at >= 0 {
				x := a.Run.Record[at]
				return fmt.Sprintf("its test stays ok when %s", c.Claim.Altered(a.What, x))
			}
		}
	}
	return ""
}
