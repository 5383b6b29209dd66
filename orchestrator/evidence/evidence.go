// Package evidence decides what replays of the Verifier's saved tests prove. It is pure: the caller
// runs the replays and passes their output. A contract without a result is not fulfilled. A test
// that is ok against a null app proves nothing. A missing replay is reported as untried.
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
	"abl/internal/wording"
)

// MaxRuns is the largest number of replays of one suite against the real app. Results that do not
// fit are repeated.
const MaxRuns = 4

// minLimit is the minimum time of a replay against a null app. A test that is stopped too early
// would count as one that detects the null app.
const minLimit = 5 * time.Second

// Contract is one contract that a suite has to prove.
type Contract struct {
	ID      string
	Says    string         // its text on one line
	Absence bool           // its result is that something is refused or gone
	Claim   *witness.Claim // the exchange that it describes, nil if abl cannot read one
	Run     *witness.Claim // the run of a program that it describes, nil if abl cannot read one
}

// Run is one replay.
type Run struct {
	TAP  tap.Document
	Exit int
	Late bool   // it was stopped at its time limit
	Gone string // why it proves nothing, such as "run.sh is missing"; "" if it does

	Fault bool // Gone is a fault of the machine, not of the tests

	Watched bool               // a witness recorded the exchanges
	Record  []witness.Exchange // these exchanges
	ranks   []int              // Suite.rank of each exchange; nil if not computed

	Broke []string // how the app ended without a request during the tests, with a code other than 0
	Other []string // other ends of the app, for the user
}

// Runs is the contract of an app that must not end on its own while it is tested.
const Runs = "run the app → it runs until it is stopped"

// Ended returns the entry for an app that did.
func Ended(under string, seen []string) failedspecs.Entry {
	return failedspecs.Sanitize(failedspecs.Entry{Spec: Runs, Input: under, Observed: wording.Few(seen, MostShown, "; ")})
}

// MostShown is the number of texts that a list in a finding shows.
const MostShown = 5

// Suite is a version of the tests with all of its replays.
type Suite struct {
	Name       string     // of the version, such as "phase1/passed"; "" for the current tests
	Contracts  []Contract // that it has to prove
	Unreported bool       // there is no Verifier's report, so the replays decide
	Known      []string   // ids of all contracts; nil if unknown
	Real       []Run      // against the app, each freshly started from the same commit
	Kind       string     // of the app, "" for HTTP
	Unread     bool       // abl cannot read the app's protocol, so it only counts bytes

	// Against no app, against an app that answers every request with an empty 200, and against one
	// that answers every request with 500. Nil if there was no such replay.
	Away, Empty, Broken *Run

	Altered []Alteration // with altered responses of the app
	Allowed Allowed

	Waived Waived

	planned []Alteration      // the first replays with altered responses, nil if not planned yet
	order   func(n int) []int // permutation of the numbers below n, nil for a random one
}

// Allowed lists the contracts that count although they are not verified, by id or as All.
type Allowed struct{ Weak, Unread []string }

// All means every contract in Allowed.
const All = "all"

func allows(ids []string, id string) bool {
	return slices.Contains(ids, id) || slices.Contains(ids, All)
}

// Waived lists checks that are not needed, because the user switched them off or because they were
// made when the same tests passed.
type Waived struct{ Away, Null, Strength bool }

// Claims are the contracts of the complete entries of failed_specs.md, "" for an entry without one.
type Claims []string

func (c Claims) of(id string) (n int) {
	for _, claimed := range c {
		if claimed == id {
			n++
		}
	}
	return n
}

// Limit returns the time limit of a replay against a null app, from the time of the real one.
func Limit(real time.Duration) time.Duration { return max(2*real, minLimit) }

// Again reports whether a suite must be replayed once more against the real app, because a result
// is not conclusive. A regression is repeated once, a contradiction to the Verifier up to MaxRuns.
func Again(claims Claims, s Suite) bool {
	most := MaxRuns
	if s.Unreported {
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

// Fault returns the fault of the machine that prevented a replay against the app, or "".
func (s Suite) Fault() string {
	for _, r := range s.Real {
		if r.Fault {
			return r.Gone
		}
	}
	return ""
}

// tallied counts the results of the real replays for one contract.
type tallied struct {
	n, ok, notOK int
	results      []tap.Result
	refuted      tap.Point // the first result that is not ok
}

// tally counts the results of a contract in several replays.
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

// try is a replay in which no test should be ok.
type try struct {
	name, how string
	status    int  // of every response, 0 without an app
	run       *Run // nil if it was not made
	waived    bool
}

func (s Suite) tries() []try {
	return []try{
		{"away", "with the " + s.vocabulary().app + " away", 0, s.Away, s.Waived.Away},
		{"empty 200", "under " + s.vocabulary().empty, 200, s.Empty, s.Waived.Null},
		{"500", "under " + s.vocabulary().broken, 500, s.Broken, s.Waived.Null},
	}
}

// vocabulary has the words for the app and its exchanges, which depend on the kind of the app.
type vocabulary struct {
	app, empty, broken, asks, none string
	answer, answers                string // the app's output, and what abl alters
	never, otherwise, every, early string // how the tests missed the contract's request
}

func (s Suite) vocabulary() vocabulary {
	w := vocabulary{
		app:       "app",
		empty:     "an app that responds to everything with an empty 200",
		broken:    "an app that responds to everything with 500",
		asks:      "does it send requests to $ABL_APP_URL?",
		none:      "the tests sent the app no request",
		answer:    "a response of the app",
		answers:   "responses",
		never:     "the tests never sent this request",
		otherwise: "the tests sent this request only with other headers or another body",
		every:     "every response to this request differs from the contract: ",
		early:     "the tests sent this request only before the earlier request of the contract, or with another path than that",
	}
	switch s.Kind {
	case helper.KindTCP:
		w.empty = "an app that accepts connections and sends nothing"
		w.broken = "an app that responds to everything with a fixed line"
	case helper.KindCommand:
		w = vocabulary{
			app:       "program",
			empty:     "a program that does nothing and ends with 0",
			broken:    "a program that fails with 1",
			asks:      "does it run abl-cmd app?",
			none:      "the tests never ran the program",
			answer:    "output of the program",
			answers:   "output",
			never:     "the tests never ran the program in this way",
			otherwise: "the tests ran it only with other input",
			every:     "every run of this differs from the contract: ",
		}
	}
	return w
}

// passes reports whether the test of a contract is ok in this replay.
func (t try) passes(id string) bool { return t.run != nil && t.run.Gone == "" && t.run.TAP.Passes(id) }

// right reports whether the response of this replay is what the contract says, so its test may be ok.
func (t try) right(c Contract) bool {
	return c.Claim != nil && c.Claim.Misses(witness.Exchange{Status: t.status}) == ""
}

// under returns the names of the replays in which a contract's test should not be ok, but is.
func (s Suite) under(id string) (all []string) {
	for _, t := range s.tries() {
		if t.passes(id) {
			all = append(all, t.name)
		}
	}
	return all
}

// vacuous returns why the test of a contract proves nothing, or "". The test is ok without the app
// or, if the contract expects an absence, in all three replays. A test that detects altered responses
// proves something in spite of that: some programs accept empty input.
func (s Suite) vacuous(c Contract) string {
	under := s.under(c.ID)
	switch {
	case s.detects(c):
	case len(under) == 3:
		return fmt.Sprintf("its test is ok without the %s and with both null %[1]ss: it cannot fail", s.vocabulary().app)
	case len(under) > 0 && under[0] == "away" && !c.Absence:
		return fmt.Sprintf("its test is ok without the %s (%s)", s.vocabulary().app, s.vocabulary().asks)
	}
	return ""
}

// challenged judges a contract whose test is ok in every replay against the app.
func (s Suite) challenged(c Contract) (is, why string) {
	again, seen := s.repeated(c), s.witnessed(c)
	switch why := s.vacuous(c); {
	case !slices.ContainsFunc(s.Real, Run.asked):
		return Vacuous, s.vocabulary().none
	case s.echoed(c):
		return Vacuous, fmt.Sprintf("its test line is %s: run.sh prints it unchanged, so the %s could pass itself",
			s.vocabulary().answer, s.vocabulary().app)
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
		case i > 0 && t.passes(c.ID) && !t.right(c) && !s.detects(c):
			weak = append(weak, t.how)
		}
	}
	switch {
	case s.unnoticed(c) != "":
		return Weak, s.unnoticed(c)
	case len(s.kinds(c)) > 0 && s.AlteredFault() != "":
		return Untried, "its tests were not run with altered " + s.vocabulary().answers + ": " + s.AlteredFault()
	case len(untried) > 0:
		return Untried, "its tests were not run " + strings.Join(untried, " and ")
	case len(weak) > 0:
		return Weak, "its test is ok " + strings.Join(weak, " and ")
	case seen.unread != "":
		return NotRead, "abl did not read the body of " + seen.exchange + ": " + seen.unread
	}
	return Verified, ""
}
