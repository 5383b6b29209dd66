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
	Of map[string]witness.Alteration // by contract, what was altered in its responses

	fault   string // of the machine, which prevented the replay
	tap     tap.Document
	touched map[string]string // by contract, how a response changed that its test should have detected
}

// RanAltered adds a replay with altered responses. It does not keep the record, because there are
// many replays. An incomplete replay proves nothing.
func (s *Suite) RanAltered(a Alteration, r Run) {
	r = s.ranked(r)
	a.tap, a.touched = r.TAP, map[string]string{}
	if r.Fault {
		a.fault = r.Gone
	}
	for _, c := range s.Contracts {
		if claim, what := s.claim(c), a.Of[c.ID]; what != "" && claim != nil && r.Gone == "" {
			if x, ok := touched(*claim, what, s.exchanges(r, *claim)); ok {
				a.touched[c.ID] = claim.Altered(what, x)
			}
		}
	}
	s.Altered = append(s.Altered, a)
}

// AlteredFault returns the fault of the machine that prevented a replay with altered responses, or
// "".
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

// Alterations returns the missing replays that show whether tests detect altered responses, in an
// order that the tests cannot know. The first ones are those of plan. The others alter what is still
// open: responses of several contracts together if earlier replays showed that their tests ignore
// each other's alterations. So each contract is altered in one way before it is altered in another.
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
	var begun, others []Contract
	for _, i := range order {
		switch c := s.Contracts[i]; {
		case len(s.open(c)) == 0:
		case slices.ContainsFunc(s.Altered, func(a Alteration) bool { return a.Of[c.ID] != "" }):
			begun = append(begun, c)
		default:
			others = append(others, c)
		}
	}
	contracts := slices.Concat(others, begun)
	if len(begun) >= enoughBegun {
		contracts = slices.Concat(begun, others)
	}
	for nth := range alterations {
		for _, c := range contracts {
			open := s.open(c)
			if nth >= len(open) {
				continue
			}
			at := slices.IndexFunc(all, func(a Alteration) bool { return fitsInto(a, s.Altered, c.ID, open[nth]) })
			if at < 0 {
				at, all = len(all), append(all, Alteration{Of: map[string]witness.Alteration{}})
			}
			all[at].Of[c.ID] = open[nth]
		}
	}
	return all
}

// enoughBegun is the number of contracts altered in one way only from which their other alterations
// are next, often several in one replay. Later ones might not be reached within the time limit.
const enoughBegun = 4

// open returns the alterations of a contract for which further replays are needed.
func (s Suite) open(c Contract) []witness.Alteration {
	if s.unnoticed(c) != "" {
		return nil
	}
	return slices.DeleteFunc(s.kinds(c), func(what witness.Alteration) bool {
		return s.noticed(c, what) || alteredSeparately(s.Altered, c.ID, what)
	})
}

// fitsInto reports whether replay a can also alter the responses of contract id. The replays so far
// must show that its test and the tests of the other contracts in a ignore each other's
// alterations. If an earlier replay met no response to alter, the contract needs its own replay.
func fitsInto(a Alteration, made []Alteration, id string, what witness.Alteration) bool {
	for _, before := range made {
		if before.Of[id] == what && before.touched[id] == "" {
			return false
		}
	}
	for other, of := range a.Of {
		if other == id || !ignores(made, id, other, of) || !ignores(made, other, id, what) {
			return false
		}
	}
	return true
}

// oftenAsked is the number of matching exchanges from which a contract is not altered together with
// others at first, because many tests would fail.
const oftenAsked = 3

// plan returns the first replays. Each contract is altered in a different half of them. So for each
// pair of contracts, one replay alters the first but not the second, and another the second but not
// the first: 6 replays are enough for 20 contracts, 8 for 70.
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
	var halves []uint
	for ; len(halves) < len(several); plan = append(plan, Alteration{Of: map[string]witness.Alteration{}}) {
		halves = halvesOf(len(plan) + 1)
	}
	for i, at := range s.shuffled(len(halves))[:len(several)] {
		c, kinds := several[i], s.kinds(several[i])
		for nth := 0; halves[at] != 0; nth++ {
			replay := bits.TrailingZeros(halves[at])
			plan[replay].Of[c.ID] = kinds[nth%len(kinds)]
			halves[at] &^= 1 << replay
		}
	}
	return plan
}

// halvesOf returns all sets of n/2 of n replays, each as a bit mask.
func halvesOf(n int) (all []uint) {
	for set := uint(1); set < 1<<n; set++ {
		if bits.OnesCount(set) == max(1, n/2) {
			all = append(all, set)
		}
	}
	return all
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

// alteredSeparately reports whether there was a replay that only altered this contract's responses.
func alteredSeparately(made []Alteration, id string, what witness.Alteration) bool {
	return slices.ContainsFunc(made, func(a Alteration) bool { return len(a.Of) == 1 && a.Of[id] == what })
}

// noticed reports whether the test of a contract detects an alteration of its own responses: it is
// not ok in a replay with the alteration, and ignores everything else that the replay alters.
func (s Suite) noticed(c Contract, what witness.Alteration) bool {
	for _, a := range s.Altered {
		own := a.Of[c.ID] == what && a.touched[c.ID] != "" && !a.tap.Passes(c.ID)
		for other, of := range a.Of {
			own = own && (other == c.ID || ignores(s.Altered, c.ID, other, of))
		}
		if own {
			return true
		}
	}
	return false
}

// ignores reports whether the test of a contract was ok in a replay that altered another contract's
// responses but not its own. If there was no such replay with this alteration, one with the other
// alteration counts.
func ignores(made []Alteration, id, other string, what witness.Alteration) (is bool) {
	failed := false
	for _, a := range made {
		if a.Of[id] != "" || a.touched[other] == "" {
			continue
		}
		switch passes, same := a.tap.Passes(id), a.Of[other] == what; {
		case passes && same:
			return true
		case passes:
			is = true
		case same:
			failed = true
		}
	}
	return is && !failed
}

// detects reports whether the test of a contract detects each alteration of its responses.
func (s Suite) detects(c Contract) bool {
	kinds := s.kinds(c)
	return len(kinds) > 0 && s.unnoticed(c) == "" &&
		!slices.ContainsFunc(kinds, func(what witness.Alteration) bool { return !s.noticed(c, what) })
}

// Altering returns the instructions for the witness in a replay with an alteration.
func (s Suite) Altering(a Alteration) *witness.Altering {
	var altering witness.Altering
	for _, c := range s.Contracts {
		if claim, what := s.claim(c), a.Of[c.ID]; claim != nil && what != "" {
			altering.Answers = append(altering.Answers, witness.Altered{Claim: *claim, What: what})
		}
	}
	return &altering
}

func (s Suite) watched() bool {
	return slices.ContainsFunc(s.Real, func(r Run) bool { return r.Watched })
}

// mayBeWeak reports whether the test of a contract may be weak: the user allows it, or there is no
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

// Others names the altered responses in a message.
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
	case alteredSeparately(s.Altered, c.ID, kinds[left]):
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
