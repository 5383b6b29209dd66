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

// Alteration is a replay in which the responses that fit some contracts were altered, to check
// whether their tests detect it.
type Alteration struct {
	Of []Altered

	fault   string // of the machine, which prevented the replay
	tap     tap.Document
	touched map[string]string // by contract, how a response changed that its test should have detected
}

// Altered is a contract whose responses were altered.
type Altered struct {
	Contract string
	What     witness.Alteration
}

// of returns what was altered in a contract's responses, or "".
func (a Alteration) of(id string) witness.Alteration {
	for _, one := range a.Of {
		if one.Contract == id {
			return one.What
		}
	}
	return ""
}

// Tried adds such a replay. It only keeps what it needs of the record, because there are many
// replays. A replay that broke off shows nothing.
func (s *Suite) Tried(a Alteration, r Run) {
	r = s.ranked(r)
	a.tap, a.touched = r.TAP, map[string]string{}
	if r.Fault {
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

// AlteredFault returns the fault of the machine that prevented one of these replays, or "".
func (s Suite) AlteredFault() string {
	for _, a := range s.Altered {
		if a.fault != "" {
			return a.fault
		}
	}
	return ""
}

// claim returns the part of a contract that can be altered, or nil.
func (s Suite) claim(c Contract) *witness.Claim {
	if s.Kind == helper.KindCommand {
		return c.Run
	}
	return c.Claim
}

// touched returns an altered response that fits a claim. It returns false if a fitting response
// could not be altered, because the test may look at that one.
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

// alterations lists all types of alteration.
var alterations = []witness.Alteration{witness.OfStatus, witness.OfNamed}

// kinds returns the types by which the responses of a contract can be altered, the status first. It
// is empty without a witness.
func (s Suite) kinds(c Contract) (all []witness.Alteration) {
	claim := s.claim(c)
	for _, what := range alterations {
		if claim != nil && s.watched() && claim.Names(what) {
			all = append(all, what)
		}
	}
	return all
}

// Alterations returns the missing replays that show whether tests detect altered responses. Each
// contract gets a random number, so that the tests cannot know when it is altered. For each bit of
// the numbers there are two replays: one alters the responses of the contracts with the bit, the
// other those of the rest. So for each pair there is a replay in which only one of the two is
// altered, and 2·log2(n) replays show which test detects what. A contract whose responses many
// tests use would make them all fail. It gets its own replay, and so do contracts that are still
// open.
func (s *Suite) Alterations() (all []Alteration) {
	if s.planned == nil {
		s.planned = s.plan()
	}
	if made := len(s.Altered); made < len(s.planned) {
		return s.planned[made:]
	}
	order := s.shuffled(len(s.Contracts))
	slices.SortStableFunc(order, func(a, b int) int { // those that need it for their verdict first
		return len(s.under(s.Contracts[b].ID)) - len(s.under(s.Contracts[a].ID))
	})
	for _, i := range order {
		c := s.Contracts[i]
		for _, what := range s.kinds(c) {
			if s.unnoticed(c) == "" && !s.noticed(c, what) && !s.triedAlone(c.ID, what) {
				all = append(all, Alteration{Of: []Altered{{c.ID, what}}})
			}
		}
	}
	return all
}

// oftenAsked is the number of matching exchanges from which a contract gets its own replay.
const oftenAsked = 3

// plan returns the first replays.
func (s *Suite) plan() []Alteration {
	var several []Contract
	for _, c := range s.Contracts {
		if len(s.kinds(c)) > 0 && s.fitting(c) < oftenAsked {
			several = append(several, c)
		}
	}
	plan := []Alteration{}
	if len(several) < 3 { // single replays are not more
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

// shuffled returns the numbers below n in random order.
func (s *Suite) shuffled(n int) []int {
	if s.order != nil {
		return s.order(n)
	}
	return rand.Perm(n)
}

// fitting counts the exchanges of the first replay that match a contract.
func (s Suite) fitting(c Contract) (n int) {
	claim := s.claim(c)
	for _, x := range s.exchanges(s.Real[0], *claim) {
		if claim.Misses(x) == "" {
			n++
		}
	}
	return n
}

// triedAlone returns true if there was a replay that only altered this contract's responses.
func (s Suite) triedAlone(id string, what witness.Alteration) bool {
	return slices.ContainsFunc(s.Altered, func(a Alteration) bool { return len(a.Of) == 1 && a.of(id) == what })
}

// noticed returns true if the test of a contract detects an alteration of its own responses. Either
// it is not ok in a replay with the alteration and ok in each replay that only alters others, or it
// is not ok in a replay that alters nothing else.
func (s Suite) noticed(c Contract, what witness.Alteration) bool {
	own, others := false, false
	for _, a := range s.Altered {
		switch of := a.of(c.ID); {
		case of == "":
			others = others || !a.tap.Passes(c.ID)
		case of == what && a.touched[c.ID] != "" && !a.tap.Passes(c.ID):
			own = true
			if len(a.Of) == 1 {
				return true
			}
		}
	}
	return own && !others
}

// detects returns true if the test of a contract detects each alteration of its responses.
func (s Suite) detects(c Contract) bool {
	kinds := s.kinds(c)
	return len(kinds) > 0 && s.unnoticed(c) == "" &&
		!slices.ContainsFunc(kinds, func(what witness.Alteration) bool { return !s.noticed(c, what) })
}

// Altering returns the instructions for the witness in such a replay.
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

// mayBeWeak returns true if the test of a contract may be weak: the user allows it, or there is no
// witness. A contract of a program may be fulfilled by a silent or by a failing program, but not by
// both.
func (s Suite) mayBeWeak(c Contract) bool {
	both := s.Empty != nil && s.Empty.TAP.Passes(c.ID) && s.Broken != nil && s.Broken.TAP.Passes(c.ID)
	return s.Kind == helper.KindCommand && !both && s.unnoticed(c) == "" || !s.watched() || allows(s.Allowed.Weak, c.ID)
}

// unnoticed returns the alteration that the test of a contract did not detect, or "".
func (s Suite) unnoticed(c Contract) string {
	for _, a := range s.Altered {
		if became := a.touched[c.ID]; became != "" && a.tap.Passes(c.ID) {
			return "its test stays ok when " + became
		}
	}
	return ""
}

// Why it is not shown that a test detects altered responses.
const (
	notReached  = "not reached"
	notAltered  = "with nothing to alter"
	goesByOther = "weak"
)

// Others names the altered responses of these replays.
func (s Suite) Others() string { return "altered " + s.vocabulary().answers }

// unshown returns why it is not shown that the test of a contract detects altered responses. It
// returns "" if it is shown, or if its responses cannot be altered.
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

// StrengthText returns the strength of an audit record as a sentence. program selects the word for
// the output of a program.
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

// strength returns for how many contracts it is shown that their tests detect altered responses, and
// why not for the others. It returns "" if this was not checked.
func (s Suite) strength() string {
	of, why := 0, map[string]int{}
	for _, c := range s.Contracts {
		if len(s.kinds(c)) > 0 {
			of++
			why[s.unshown(c)]++
		}
	}
	if of > 0 && s.Waived.Strength {
		return "not checked, because verify.strength_time is 0"
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
