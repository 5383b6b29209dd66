package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"abl/internal/failedspecs"
	"abl/internal/tap"
)

// Verdict is what claims and replays come to.
type Verdict string

// The three verdicts. Only what is proven passes.
const (
	Pass       Verdict = "pass"
	Fail       Verdict = "fail"
	Unverified Verdict = "unverified"
)

// Finding is the verdict with all that it stands on.
type Finding struct {
	Verdict   Verdict    `json:"verdict"`
	Contracts []Standing `json:"contracts"`
	Reasons   []string   `json:"reasons,omitempty"`        // why it is no pass, the deciding ones first
	Ended     []string   `json:"ended,omitempty"`          // how the app ended by itself, with a code other than 0: a fail
	Notes     []string   `json:"notes,omitempty"`          // what a person should know besides
	Strength  string     `json:"strength_shown,omitempty"` // older findings have a "strength" of another kind
}

// Decide weighs the claims of a failed_specs.md and the replays. An entry is a
// fail, always, and so is what replays now so, now so; a pass needs that every
// contract is proven in every suite that has to prove it, and that nothing
// casts doubt on a replay.
func Decide(claims Claims, suites ...Suite) Finding {
	var f Finding
	var fails, opens []string
	named := map[string]bool{}
	for _, s := range suites {
		for _, c := range s.Contracts {
			st := stand(claims, s, c)
			reason := s.prefix() + c.ID + " is " + st.Is + ": " + st.Why
			switch {
			case st.Is == Failed || st.Is == Flaky || st.Is == NotReproduced:
				fails = append(fails, reason)
			case !Proven(st.Finding):
				opens = append(opens, reason+" (the contract: "+c.Says+")")
			case st.Is == Verified && len(s.repeated(c)) == 1:
				f.Notes = append(f.Notes, s.prefix()+c.ID+": "+s.repeated(c)[0])
			}
			named[c.ID] = true
			f.Contracts = append(f.Contracts, st)
		}
		for i, r := range s.Real {
			opens = append(opens, s.doubts(i, r)...)
			f.Ended, f.Notes = append(f.Ended, r.Broke...), append(f.Notes, r.Other...)
		}
		if s.Unread {
			f.Notes = append(f.Notes, s.prefix()+"what the app answers is no HTTP that abl can read: bytes were counted")
		}
		f.Strength = cmp.Or(f.Strength, s.strength())
	}
	fails = append(fails, f.Ended...)
	if n := len(slices.DeleteFunc(slices.Clone(claims), func(id string) bool { return named[id] })); n > 0 {
		fails = append(fails, fmt.Sprintf("failed_specs.md has %d entries whose contract was not replayed", n))
	}
	if len(f.Contracts) == 0 {
		opens = append(opens, "there is no contract to prove")
	}
	switch f.Verdict = Pass; {
	case len(fails) > 0:
		f.Verdict = Fail
		opens = f.soFar(opens)
	case len(opens) > 0:
		f.Verdict = Unverified
	}
	f.Reasons = append(fails, opens...)
	return f
}

// soFar tells of a fail which contracts were ok, and that they were not tried further for it; opens are
// the reasons without these.
func (f *Finding) soFar(opens []string) []string {
	for i := range f.Contracts {
		if st := &f.Contracts[i]; st.later {
			opens = slices.DeleteFunc(opens, func(reason string) bool { return strings.Contains(reason, st.Contract+" is "+Untried+": "+st.Why) })
			st.Is, st.Why = OKSoFar, ""
		}
	}
	return opens
}

func (s Suite) prefix() string {
	if s.Name == "" {
		return ""
	}
	return s.Name + ": "
}

// doubts says what keeps the i-th replay from being believed.
func (s Suite) doubts(i int, r Run) (all []string) {
	where := s.prefix() + "run.sh"
	if len(s.Real) > 1 {
		where = fmt.Sprintf("%s in replay %d of %d", where, i+1, len(s.Real))
	}
	failed := slices.ContainsFunc(r.TAP.Points, func(p tap.Point) bool { return !p.OK })
	switch {
	case r.Gone != "":
		return []string{where + ": " + r.Gone}
	case r.Late:
		all = append(all, where+": it was stopped at its time limit")
	case r.Exit != 0 && !failed:
		all = append(all, fmt.Sprintf("%s: it ended with exit code %d, and no line says not ok", where, r.Exit))
	}
	for _, p := range r.TAP.Doubts() {
		all = append(all, where+": "+at(p))
	}
	for _, p := range r.TAP.Strange(s.asks) {
		switch {
		case len(p.IDs) == 0:
		case i == 0 && s.Known != nil && !slices.Contains(s.Known, p.IDs[0]):
			all = append(all, fmt.Sprintf("%s: line %d of its output names %s, which no spec has", where, p.Line, p.IDs[0]))
		case !p.OK:
			all = append(all, fmt.Sprintf("%s: line %d of its output is not ok and names %s, which these tests are not asked for", where, p.Line, p.IDs[0]))
		}
	}
	return all
}

// asks says whether the suite has to prove a contract.
func (s Suite) asks(id string) bool {
	return slices.ContainsFunc(s.Contracts, func(c Contract) bool { return c.ID == id })
}

func at(p tap.Problem) string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d of its output: %s", p.Line, p.Text)
}

// Entries are the failures that the replays prove by themselves, for a
// failed_specs.md that abl writes or adds to: regressions that the Verifier did
// not report, and contracts that are ok in some runs alone.
func (f Finding) Entries() (all []failedspecs.Entry) {
	for _, st := range f.Contracts {
		if st.Is != Flaky && (st.Is != Failed || st.Entries > 0) {
			continue
		}
		input := st.Input
		if input == "" {
			input = "the saved test of this contract, which says no more about its input"
		}
		all = append(all, failedspecs.Sanitize(failedspecs.Entry{Spec: st.says, Input: input, Observed: st.Observed, Contract: st.Contract}))
	}
	if len(f.Ended) > 0 {
		all = append(all, Ended("the requests of the saved tests", f.Ended))
	}
	return all
}

// Older are tests that refuted a source which passes now as it is, with their replays
// on it.
type Older struct {
	Step    int    // in which they did
	Claims  Claims // of its failed_specs.md
	Suite   Suite
	Changed []string // files of the tests that are others now
}

// Weigh says for which contracts the pass of today's tests is not to be believed,
// and what else a person should know. Those that are ok now too have nothing to say,
// nor have those that are ok where nothing can be: they were wrong.
func (o Older) Weigh() (doubts, notes []string) {
	for _, c := range o.Suite.Contracts {
		t, claimed := tally(o.Suite.Real, c.ID), o.Claims.of(c.ID) > 0
		wrong := o.Suite.vacuous(c)
		switch {
		case t.n > 0 && t.ok == t.n && claimed:
			notes = append(notes, fmt.Sprintf("step-%d refuted %s on this very source, and its own test is ok there now", o.Step, c.ID))
		case t.n > 0 && t.ok == t.n, t.notOK == 0 && !claimed:
		case t.notOK == t.n && wrong != "":
			notes = append(notes, fmt.Sprintf("the test of %s with which step-%d refuted this very source was wrong: %s", c.ID, o.Step, wrong))
		default:
			doubts = append(doubts, o.doubt(t, c))
		}
	}
	return doubts, notes
}

func (o Older) doubt(t tallied, c Contract) string {
	said := "says nothing of it: " + t.silence(o.Suite.Real)
	switch {
	case t.mixed():
		said = "is not ok in each replay: " + t.gave()
	case t.notOK > 0:
		said = "is still not ok: " + brief(observed(t.refuted))
	}
	changed := "no file of the tests"
	if len(o.Changed) > 0 {
		changed = Few(o.Changed, ", ")
	}
	return fmt.Sprintf("%s passes by its test alone: step-%d refuted this very source, and its test %s; changed since: %s (the contract: %s)",
		c.ID, o.Step, said, changed, c.Says)
}
