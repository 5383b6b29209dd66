package evidence

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"

	"abl/internal/helper"
	"abl/internal/tap"
	"abl/internal/witness"
	"abl/internal/wording"
)

// Alteration is a replay in which the answers that fit some contracts were altered, to
// see whether their tests notice.
type Alteration struct {
	Of []Altered

	fault   string // of the machine, for which it could not be made
	tap     tap.Document
	touched map[string]string // by contract, what became of an answer, which its test should have noticed
}

// Altered is a contract whose answers were altered.
type Altered struct {
	Contract string
	What     witness.Alteration
}

// of says what of a contract's answers was altered, "" for nothing.
func (a Alteration) of(id string) witness.Alteration {
	for _, one := range a.Of {
		if one.Contract == id {
			return one.What
		}
	}
	return ""
}

// Tried adds such a replay. Its record is weighed here and not kept: there are many of them.
// One that broke off shows nothing.
func (s *Suite) Tried(a Alteration, r Run) {
	r = s.ranked(r)
	if a.tap, a.touched = r.TAP, map[string]string{}; r.Fault {
		a.fault = r.Gone
	}
	for _, c := range s.Contracts {
		if claim, what := s.claim(c), a.of(c.ID); what != "" && claim != nil && r.Gone == "" {
			if x, ok := touched(*claim, what, s.exchanges(r, *claim)); ok {
				a.touched[c.ID] = claim.Altered(what, x)
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

// alterations are all that there are.
var alterations = []witness.Alteration{witness.OfStatus, witness.OfNamed}

// kinds are how the answers of a contract can be altered, by the status
// first; none where nobody watched.
func (s Suite) kinds(c Contract) (all []witness.Alteration) {
	claim := s.claim(c)
	for _, what := range alterations {
		if claim != nil && s.watched() && claim.Names(what) {
			all = append(all, what)
		}
	}
	return all
}

// Alterations are the replays that are still to be made, by which it is seen whether tests that are ok
// would notice other answers. Each contract has a number, which the tests cannot know. For each bit of
// these numbers there are two replays: in one the answers of the contracts that have the bit are
// altered, in the other those of the rest. So for each pair there is a replay in which only one of the
// two is altered, and 2·log2(n) replays tell which test notices what. A contract whose answers many
// tests look at would make them all fail: it is tried by itself, and so is what these replays leave open.
func (s *Suite) Alterations() (all []Alteration) {
	if s.planned == nil {
		s.planned = s.plan()
	}
	if made := len(s.Altered); made < len(s.planned) {
		return s.planned[made:]
	}
	for _, i := range s.shuffled(len(s.Contracts)) {
		c := s.Contracts[i]
		for _, what := range s.kinds(c) {
			if s.unnoticed(c) == "" && !s.noticed(c, what) && !s.triedAlone(c.ID, what) {
				all = append(all, Alteration{Of: []Altered{{c.ID, what}}})
			}
		}
	}
	return all
}

// oftenAsked is how many exchanges fit a contract whose answers other tests look at, too.
const oftenAsked = 3

// plan is the replays with which one begins.
func (s *Suite) plan() []Alteration {
	var several []Contract
	for _, c := range s.Contracts {
		if len(s.kinds(c)) > 0 && s.fitting(c) < oftenAsked {
			several = append(several, c)
		}
	}
	plan := []Alteration{}
	if len(several) < 3 { // each by itself takes no more
		return plan
	}
	numbers := s.shuffled(len(several))
	for bit := range max(2, bits.Len(uint(len(several)-1))) {
		for _, has := range []int{1, 0} {
			var a Alteration
			for i, c := range several {
				if kinds := s.kinds(c); numbers[i]>>bit&1 == has {
					a.Of = append(a.Of, Altered{c.ID, kinds[bit%len(kinds)]})
				}
			}
			if len(a.Of) > 0 {
				plan = append(plan, a)
			}
		}
	}
	return plan
}

// shuffled are the numbers below n in an order that nobody knows.
func (s *Suite) shuffled(n int) []int {
	if s.order != nil {
		return s.order(n)
	}
	return rand.Perm(n)
}

// fitting counts the exchanges of the first replay that fit a contract.
func (s Suite) fitting(c Contract) (n int) {
	claim := s.claim(c)
	for _, x := range s.exchanges(s.Real[0], *claim) {
		if claim.Misses(x) == "" {
			n++
		}
	}
	return n
}

// triedAlone says that no other contract's answers were altered in a replay.
func (s Suite) triedAlone(id string, what witness.Alteration) bool {
	return slices.ContainsFunc(s.Altered, func(a Alteration) bool { return len(a.Of) == 1 && a.of(id) == what })
}

// noticed says that the test of a contract notices such an alteration of its own answers, and that it
// is not others' answers that it goes by: it is not ok in a replay with the alteration, and ok in
// each in which only other answers are altered; or it was not ok when nothing else was altered.
func (s Suite) noticed(c Contract, what witness.Alteration) bool {
	own, others := false, false
	for _, a := range s.Altered {
		switch of := a.of(c.ID); {
		case of == "":
			others = others || !a.tap.Passes(c.ID)
		case of == what && a.touched[c.ID] != "" && !a.tap.Passes(c.ID):
			if own = true; len(a.Of) == 1 {
				return true
			}
		}
	}
	return own && !others
}

// Altering is what the witness does in such a replay.
func (s Suite) Altering(a Alteration) *witness.Altering {
	var altering witness.Altering
	for _, c := range s.Contracts {
		if claim, what := s.claim(c), a.of(c.ID); claim != nil && what != "" {
			altering.Answers = append(altering.Answers, witness.Altered{Claim: *claim, What: what})
		}
	}
	return &altering
}

func (s Suite) watched() bool {
	return slices.ContainsFunc(s.Real, func(r Run) bool { return r.Watched })
}

// mayBeWeak says that the test of a contract may be weak: the person wants it so, or nobody
// watched, and then nothing more could be asked for. A program that is silent, or one that
// fails, may be what a contract says; both are not.
func (s Suite) mayBeWeak(c Contract) bool {
	both := s.Empty != nil && s.Empty.TAP.Passes(c.ID) && s.Broken != nil && s.Broken.TAP.Passes(c.ID)
	return s.Kind == helper.KindCommand && !both && s.unnoticed(c) == "" || !s.watched() || allows(s.Allowed.Weak, c.ID)
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

// Why it is not shown that the test of a contract notices other answers.
const (
	notReached  = "not reached"
	notAltered  = "with nothing to alter"
	goesByOther = "weak"
)

// Others is what a suite is run with to see whether its tests notice it.
func (s Suite) Others() string { return "altered " + s.words().answers }

// unshown says why it is not shown of a contract, "" where it is, or where nothing of its answers can
// be altered.
func (s Suite) unshown(c Contract) string {
	kinds := s.kinds(c)
	lacks := func(what witness.Alteration) bool { return !s.noticed(c, what) }
	switch left := slices.IndexFunc(kinds, lacks); {
	case s.unnoticed(c) != "":
		return goesByOther
	case left < 0:
		return ""
	case s.triedAlone(c.ID, kinds[left]):
		return notAltered
	}
	return notReached
}

// StrengthText returns the strength of an audit record as a sentence. The responses of a program are its
// output.
func StrengthText(strength string, program bool) string {
	what := "responses"
	if program {
		what = "output"
	}
	if of, is := strings.CutPrefix(strength, "shown for "); is {
		return "the tests detect altered " + what + " for " + of
	}
	return "detection of altered " + what + ": " + strength
}

// strength says of how many contracts it is shown that their tests notice alterations of
// their own answers, and why not of all; "" where that was not to be tried.
func (s Suite) strength() string {
	of, why := 0, map[string]int{}
	for _, c := range s.Contracts {
		if len(s.kinds(c)) > 0 {
			of++
			why[s.unshown(c)]++
		}
	}
	if of > 0 && s.Waived.Strength {
		return "not tried, since verify.strength_time is 0"
	}
	if of == 0 || len(s.Altered) == 0 {
		return ""
	}
	text := fmt.Sprintf("shown for %d of %s", why[""], wording.Count(of, "contract"))
	for _, is := range []string{goesByOther, notAltered, notReached} {
		if why[is] > 0 {
			text += fmt.Sprintf(", %d %s", why[is], is)
		}
	}
	return text
}
