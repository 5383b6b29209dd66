// Package evidence weighs replays of the Verifier's saved tests, and decides
// what they prove. It is pure: whoever makes the replays gives it what they
// printed. A contract that nothing speaks for is not fulfilled, a test that is
// ok where nothing can be ok proves nothing, and what was not tried is said to
// be untried.
package evidence

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"abl/internal/failedspecs"
	"abl/internal/helper"
	"abl/internal/tap"
	"abl/internal/witness"
)

// MaxRuns is how often one suite is replayed against the real app at most: once,
// and up to three times more where its results do not fit.
const MaxRuns = 4

// minLimit is the least time that a negative replay is given: one that is cut
// off too early would count for a test that notices.
const minLimit = 5 * time.Second

// Contract is one contract that a suite has to prove.
type Contract struct {
	ID      string
	Says    string         // on one line, as the spec has it
	Absence bool           // its result is that something is refused or gone
	Claim   *witness.Claim // what it names of an exchange, nil: nothing that abl can read
	Run     *witness.Claim // what it names of a run of a program, likewise
}

// Run is one replay.
type Run struct {
	TAP  tap.Document
	Exit int
	Late bool   // it was stopped at its time limit
	Gone string // why it shows nothing, as "run.sh is missing"; "" when it does

	Fault bool // Gone is a fault of the machine, and no statement on the tests

	Watched bool               // by a witness at the app's door
	Record  []witness.Exchange // what that saw
	ranks   []int              // of each exchange, as Suite.rank has it; nil: not known yet

	Broke []string // how the app ended by itself under the tests, with a code other than 0
	Other []string // what else a person should know of the app's end
}

// Runs is the contract of an app that ends by itself while it is tested.
const Runs = "run the app → it goes on until it is stopped"

// Ended is the entry of an app that did.
func Ended(under string, seen []string) failedspecs.Entry {
	return failedspecs.Sanitize(failedspecs.Entry{Spec: Runs, Input: under, Observed: Few(seen, "; ")})
}

// Few joins the first of some texts, and counts the others.
func Few(texts []string, between string) string {
	const most = 5
	if more := len(texts) - most; more > 0 {
		texts = append(slices.Clone(texts[:most]), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, between)
}

// Suite is a tree of tests with all its replays.
type Suite struct {
	Name      string     // of the tree when it is not today's: "phase1/passed"
	Contracts []Contract // that it has to prove; others that it tests count for nothing
	Alone     bool       // no Verifier was asked yet: what the replay says, goes
	Known     []string   // ids of all contracts that a spec has; nil: nobody looked
	Real      []Run      // against the app, each freshly started from the same commit
	Kind      string     // of the app, "" for HTTP
	Unread    bool       // the app speaks what abl cannot read: bytes are counted, no claim is held against it

	// Against no app, one that answers everything with an empty 200, and one
	// that answers everything with 500. Nil was not tried.
	Away, Empty, Broken *Run

	Altered []Alteration // in which answers of the app were altered
	Allowed Allowed

	Waived Waived

	planned []Alteration      // the replays with which one begins, nil: not yet
	order   func(n int) []int // of numbers below n, nil for one that nobody knows
}

// Allowed are the contracts that count although they are not verified, each or All.
type Allowed struct{ Weak, Unread []string }

// All stands for every contract in Allowed.
const All = "all"

func allows(ids []string, id string) bool {
	return slices.Contains(ids, id) || slices.Contains(ids, All)
}

// Waived is what need not be tried: the person switched it off, or it was tried
// when these very tests passed.
type Waived struct{ Away, Null, Strength bool }

// Claims are the complete entries of failed_specs.md: of each the contract's id,
// "" for one that names no contract.
type Claims []string

func (c Claims) of(id string) (n int) {
	for _, claimed := range c {
		if claimed == id {
			n++
		}
	}
	return n
}

// Limit is the time that a negative replay gets: twice that of the real one, and
// no less than a suite needs to say ok by mistake.
func Limit(real time.Duration) time.Duration { return max(2*real, minLimit) }

// Again says whether a suite is to be replayed once more against the real app: a
// result does not fit, and whether it would come out otherwise is not known yet.
// A regression is confirmed once; what the Verifier saw otherwise is tried to
// the end.
func Again(claims Claims, s Suite) bool {
	most := MaxRuns
	if s.Alone {
		most = 2
	}
	if len(s.Real) == 0 || len(s.Real) >= most || len(s.Real[len(s.Real)-1].Broke) > 0 || s.Fault() != "" {
		return len(s.Real) == 0
	}
	for _, c := range s.Contracts {
		t := tally(s.Real, c.ID)
		claimed := claims.of(c.ID) > 0
		if !t.mixed() && (claimed && t.ok == t.n || !claimed && t.notOK > 0) || len(s.repeated(c)) == 1 && len(s.Real) == 1 {
			return true
		}
	}
	return false
}

// Fault is the fault of the machine for which a replay against the app could not be made, ""
// for none.
func (s Suite) Fault() string {
	for _, r := range s.Real {
		if r.Fault {
			return r.Gone
		}
	}
	return ""
}

// tallied is what the real runs say of one contract.
type tallied struct {
	n, ok, notOK int
	results      []tap.Result
	refuted      tap.Point // the first that is not ok
}

func tally(runs []Run, id string) tallied {
	t := tallied{n: len(runs)}
	for _, r := range runs {
		result := r.TAP.Of(id)
		t.results = append(t.results, result)
		switch result.Status {
		case tap.OK:
			t.ok++
		case tap.NotOK:
			if t.notOK++; t.notOK == 1 {
				t.refuted = result.Points[0]
			}
		}
	}
	return t
}

func (t tallied) mixed() bool { return t.ok > 0 && t.notOK > 0 }

// try is a run in which nothing can be ok.
type try struct {
	name, how string
	status    int  // of every answer, 0 for none
	run       *Run // nil was not made
	waived    bool
}

func (s Suite) tries() []try {
	return []try{
		{"away", "with the " + s.words().app + " away", 0, s.Away, s.Waived.Away},
		{"empty 200", "under " + s.words().empty, 200, s.Empty, s.Waived.Null},
		{"500", "under " + s.words().broken, 500, s.Broken, s.Waived.Null},
	}
}

// words are how the null apps and what passes between tests and app are told of, which depends on
// the kind of the app.
type words struct {
	app, empty, broken, asks, none string
	answer, answers                string // what the app gives, and what is altered
	never, otherwise, every        string // what a test did in place of the contract's request
}

func (s Suite) words() words {
	w := words{
		app: "app", empty: "an app that answers everything with an empty 200", broken: "an app that answers everything with 500",
		asks: "does it ask $ABL_APP_URL?", none: "the tests sent the app no request", answer: "an answer of the app's", answers: "answers",
		never: "the tests never sent this request", otherwise: "the tests sent this request with other headers or another body only",
		every: "every answer to this request was another than the contract says: ",
	}
	switch s.Kind {
	case helper.KindTCP:
		w.empty, w.broken = "an app that takes connections and says nothing", "an app that answers everything with a line of its own"
	case helper.KindCommand:
		w = words{
			app: "program", empty: "a program that does nothing and ends with 0", broken: "a program that fails with 1",
			asks: "does it run abl-cmd app?", none: "the tests never ran the program", answer: "output of the program's", answers: "output",
			never: "the tests never ran the program in this way", otherwise: "the tests ran it with other input only",
			every: "every run of this left something else than the contract says: ",
		}
	}
	return w
}

// passes says that the run claims ok for a contract. No answer is not ok.
func (t try) passes(id string) bool { return t.run != nil && t.run.Gone == "" && t.run.TAP.Passes(id) }

// right says that the answer of this try is what the contract says: its test is ok as it
// should be.
func (t try) right(c Contract) bool {
	return c.Claim != nil && c.Claim.Misses(witness.Exchange{Status: t.status}) == ""
}

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
		return fmt.Sprintf("its test is ok with the %s away and under both null %[1]ss: it cannot fail", s.words().app)
	case len(under) > 0 && under[0] == "away" && !c.Absence:
		return fmt.Sprintf("its test is ok with the %s away (%s)", s.words().app, s.words().asks)
	}
	return ""
}

// challenged weighs the test of a contract that is ok in every replay.
func (s Suite) challenged(c Contract) (is, why string) {
	again, seen := s.repeated(c), s.witnessed(c)
	switch why := s.vacuous(c); {
	case !slices.ContainsFunc(s.Real, Run.asked):
		return Vacuous, s.words().none
	case s.echoed(c):
		return Vacuous, fmt.Sprintf("its test line is %s: run.sh prints it as it is, so the %s could pass itself", s.words().answer, s.words().app)
	case seen.lacks != "":
		return NotWitnessed, seen.lacks
	case why != "":
		return Vacuous, why
	case len(again) > 1:
		return Flaky, again[0]
	}
	var untried, weak []string
	for i, t := range s.tries() {
		switch {
		case t.run == nil && !t.waived:
			untried = append(untried, t.how)
		case t.run != nil && t.run.Gone != "":
			untried = append(untried, t.how+" ("+t.run.Gone+")")
		case i > 0 && t.passes(c.ID) && !t.right(c):
			weak = append(weak, t.how)
		}
	}
	switch {
	case s.unnoticed(c) != "":
		return Weak, s.unnoticed(c)
	case len(s.kinds(c)) > 0 && s.AlteredFault() != "":
		return Untried, "its tests were not tried with altered " + s.words().answers + ": " + s.AlteredFault()
	case len(untried) > 0:
		return Untried, "its tests were not tried " + strings.Join(untried, " and ")
	case len(weak) > 0:
		return Weak, "its test is ok " + strings.Join(weak, " and ")
	case seen.unread != "":
		return NotRead, "abl did not read the body of " + seen.exchange + ": " + seen.unread
	}
	return Verified, ""
}
