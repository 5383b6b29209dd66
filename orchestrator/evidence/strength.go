package evidence

import (
	"fmt"
	"slices"

	"abl/internal/helper"
	"abl/internal/tap"
	"abl/internal/witness"
	"abl/internal/wording"
)

// AllWeak stands for every contract in Suite.Allowed.
const AllWeak = "all"

// Alteration is a replay in which the answers that fit some contracts were altered, to
// see whether their tests notice.
type Alteration struct {
	What      witness.Alteration
	Contracts []string

	fault   string // of the machine, for which it could not be made
	tap     tap.Document
	touched map[string]string // by contract, what became of an answer, which its test should have noticed
}

// Tried adds such a replay. Its record is weighed here and not kept: there are many of them.
// One that broke off shows nothing.
func (s *Suite) Tried(a Alteration, r Run) {
	r = s.ranked(r)
	if a.tap, a.touched = r.TAP, map[string]string{}; r.Fault {
		a.fault = r.Gone
	}
	for _, c := range s.Contracts {
		if claim := s.claim(c); slices.Contains(a.Contracts, c.ID) && claim != nil && r.Gone == "" {
			if x, ok := touched(*claim, a.What, s.exchanges(r, *claim)); ok {
				a.touched[c.ID] = claim.Altered(a.What, x)
			}
		}
	}
	s.Altered = append(s.Altered, a)
}

// AlteredFault is the fault of the machine for which one of these replays could not be made,
// "" for none.
func (s Suite) AlteredFault() string {
	for _, a := range s.Altered {
		if a.fault != "" {
			return a.fault
		}
	}
	return ""
}

// claim is what a contract names that can be altered, nil for nothing.
func (s Suite) claim(c Contract) *witness.Claim {
	if s.Kind == helper.KindCommand {
		return c.Run
	}
	return c.Claim
}

// touched gives an altered answer that fits a claim. One that could not be altered may be
// the one that its test looks at: then there is none.
func touched(c witness.Claim, what witness.Alteration, record []witness.Exchange) (x witness.Exchange, ok bool) {
	for _, seen := range record {
		switch {
		case !c.Alters(what, seen):
		case !seen.Altered:
			return seen, false
		case !ok:
			x, ok = seen, true
		}
	}
	return x, ok
}

// alone says that no other contract's answers were altered.
func (a Alteration) alone(id string) bool { return len(a.Contracts) == 1 && a.Contracts[0] == id }

// none says that no answer was altered.
func (a Alteration) none() bool { return len(a.Contracts) == 0 }

// alterations are all that there are.
var alterations = []witness.Alteration{witness.OfStatus, witness.OfNamed}

// Alterations are the replays by which it is seen whether tests that are ok would notice:
// first all contracts at once, for what is still ok then notices for certain nothing, and
// of those that noticed each by itself, for it may have noticed what happened to another.
// Those that share a request with another contract come first: there may be no time for all.
// Before these comes one of none: what is not ok there goes by other signs.
func (s Suite) Alterations() (all []Alteration) {
	if len(s.Altered) == 0 {
		for _, what := range alterations {
			if ids := s.alterable(what); len(ids) > 0 {
				all = append(all, Alteration{What: what, Contracts: ids})
			}
		}
		return all
	}
	for _, c := range s.Contracts {
		what := s.own(c)
		tried := func(a Alteration) bool { return a.alone(c.ID) }
		if what != "" && s.unnoticed(c) == "" && !slices.ContainsFunc(s.Altered, tried) {
			all = append(all, Alteration{What: what, Contracts: []string{c.ID}})
		}
	}
	sharing := s.sharing()
	slices.SortStableFunc(all, func(a, b Alteration) int { return sharing[b.Contracts[0]] - sharing[a.Contracts[0]] })
	if len(all) > 0 && !slices.ContainsFunc(s.Altered, Alteration.none) {
		all = slices.Insert(all, 0, Alteration{What: witness.OfStatus})
	}
	return all
}

// Altering is what the witness does in such a replay.
func (s Suite) Altering(a Alteration) *witness.Altering {
	altering := witness.Altering{What: a.What}
	for _, c := range s.Contracts {
		if claim := s.claim(c); claim != nil && slices.Contains(a.Contracts, c.ID) {
			altering.Claims = append(altering.Claims, *claim)
		}
	}
	return &altering
}

// alterable lists the contracts with an answer that can be altered in this way, none where
// nobody watched.
func (s Suite) alterable(what witness.Alteration) (ids []string) {
	for _, c := range s.Contracts {
		if claim := s.claim(c); s.watched() && claim != nil && claim.Names(what) {
			ids = append(ids, c.ID)
		}
	}
	return ids
}

// own is how the answers of a contract are altered when no other's are: by all that it names
// besides the status, or by the status where it names nothing else, "" where nothing can be.
func (s Suite) own(c Contract) (what witness.Alteration) {
	for _, a := range alterations {
		if slices.Contains(s.alterable(a), c.ID) {
			what = a
		}
	}
	return what
}

func (s Suite) watched() bool {
	return slices.ContainsFunc(s.Real, func(r Run) bool { return r.Watched })
}

// allows says that the test of a contract may be weak: the person wants it so, or nobody
// watched, and then nothing more could be asked for. A program that is silent, or one that
// fails, may be what a contract says; both are not.
func (s Suite) allows(c Contract) bool {
	both := s.Empty != nil && s.Empty.TAP.Passes(c.ID) && s.Broken != nil && s.Broken.TAP.Passes(c.ID)
	return s.Kind == helper.KindCommand && !both && s.unnoticed(c) == "" || !s.watched() ||
		slices.Contains(s.Allowed, c.ID) || slices.Contains(s.Allowed, AllWeak)
}

// sharing counts, by contract, the exchanges that fit another one as well.
func (s Suite) sharing() map[string]int {
	n := map[string]int{}
	if len(s.Real) == 0 {
		return n
	}
	for _, x := range s.Real[0].Record {
		var fits []string
		for _, c := range s.Contracts {
			if claim := s.claim(c); claim != nil && claim.Fits(x) {
				fits = append(fits, c.ID)
			}
		}
		for i := 0; len(fits) > 1 && i < len(fits); i++ {
			n[fits[i]]++
		}
	}
	return n
}

// unnoticed says at which alteration the test of a contract was still ok, "" for none.
func (s Suite) unnoticed(c Contract) string {
	for _, a := range s.Altered {
		if became := a.touched[c.ID]; became != "" && a.tap.Passes(c.ID) {
			return "its test stays ok when " + became
		}
	}
	return ""
}

// strength says of how many contracts it is shown that their tests notice alterations of
// their own answers, and why not of all; "" where that was not to be tried.
func (s Suite) strength() string {
	of, shown, astray := 0, 0, 0
	for _, c := range s.Contracts {
		if s.own(c) == "" {
			continue
		}
		of++
		noticed := func(a Alteration) bool { return a.alone(c.ID) && a.touched[c.ID] != "" }
		anyway := func(a Alteration) bool { return a.none() && !a.tap.Passes(c.ID) }
		switch {
		case s.unnoticed(c) != "" || !slices.ContainsFunc(s.Altered, noticed):
		case slices.ContainsFunc(s.Altered, anyway):
			astray++
		default:
			shown++
		}
	}
	if of > 0 && s.Waived.Strength {
		return "not tried, since verify.strength_time is 0"
	}
	if of == 0 || len(s.Altered) == 0 {
		return ""
	}
	text := fmt.Sprintf("shown for %d of %s", shown, wording.Count(of, "contract"))
	if astray > 0 {
		text += fmt.Sprintf(", %d not ok although nothing was altered", astray)
	}
	if left := slices.DeleteFunc(s.Alterations(), Alteration.none); len(left) > 0 {
		text += fmt.Sprintf(", %d not reached", len(left))
	}
	return text
}
