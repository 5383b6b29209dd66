package evidence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"abl/internal/failedspecs"
	"abl/internal/tap"
	"abl/internal/wording"
)

// Verdict is the result of claims and replays.
type Verdict string

// The three verdicts. Only a proof passes.
const (
	Pass       Verdict = "pass"
	Fail       Verdict = "fail"
	Unverified Verdict = "unverified"
)

// Finding is the verdict with its reasons.
type Finding struct {
	Verdict   Verdict    `json:"verdict"`
	Contracts []Standing `json:"contracts"`
	Reasons   []string   `json:"reasons,omitempty"`        // why it is not a pass, the deciding ones first
	Ended     []string   `json:"ended,omitempty"`          // how the app ended without a request, with a code other than 0: a fail
	Notes     []string   `json:"notes,omitempty"`          // for the user
	Strength  string     `json:"strength_shown,omitempty"` // older findings have a "strength" with another meaning
}

// Decide returns the verdict from the claims of a failed_specs.md and the replays. An entry is
// always a fail, and so is a contract with changing results. A pass needs that each suite proves
// all of its contracts and that no replay is doubtful.
func Decide(claims Claims, suites ...Suite) Finding {
	var f Finding
	var fails, opens []string
	named := map[string]bool{}
	for _, s := range suites {
		for _, c := range s.Contracts {
			st := judge(claims, s, c)
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
			f.Notes = append(f.Notes, s.prefix()+"abl cannot read the app's responses as HTTP and only counted bytes")
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
	f.Verdict = Pass
	switch {
	case len(fails) > 0:
		f.Verdict = Fail
		opens = f.soFar(opens)
	case len(opens) > 0:
		f.Verdict = Unverified
	}
	f.Reasons = append(fails, opens...)
	return f
}

// soFar marks the contracts that were ok when the iteration failed elsewhere, without further
// checks. It removes their reasons from opens and returns the others.
func (f *Finding) soFar(opens []string) []string {
	for i := range f.Contracts {
		if st := &f.Contracts[i]; st.later {
			opens = slices.DeleteFunc(opens, func(reason string) bool {
				return strings.Contains(reason,
					st.Contract+" is "+Untried+": "+st.Why)
			})
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

// doubts returns why the i-th replay is doubtful.
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
		all = append(all, fmt.Sprintf("%s: it ended with exit code %d, but no test line is \"not ok\"", where, r.Exit))
	}
	for _, p := range r.TAP.Doubts() {
		all = append(all, where+": "+at(p))
	}
	proves := func(id string) bool {
		return slices.ContainsFunc(s.Contracts, func(c Contract) bool { return c.ID == id })
	}
	for _, p := range r.TAP.Strange(proves) {
		switch {
		case len(p.IDs) == 0:
		case i == 0 && s.Known != nil && !slices.Contains(s.Known, p.IDs[0]):
			all = append(all, fmt.Sprintf("%s: line %d of its output names %s, which is not in a spec", where, p.Line, p.IDs[0]))
		case !p.OK:
			all = append(all, fmt.Sprintf("%s: line %d of its output is not ok and names %s, which this suite does not test",
				where, p.Line, p.IDs[0]))
		}
	}
	return all
}

func at(p tap.Problem) string {
	if p.Line == 0 {
		return p.Text
	}
	return fmt.Sprintf("line %d of its output: %s", p.Line, p.Text)
}

// Entries returns the failures that only the replays prove, for a failed_specs.md: regressions that
// the Verifier did not report, and contracts with changing results.
func (f Finding) Entries() (all []failedspecs.Entry) {
	for _, st := range f.Contracts {
		if st.Is != Flaky && (st.Is != Failed || st.Entries > 0) {
			continue
		}
		input := st.Input
		if input == "" {
			input = "the saved test of this contract, which does not print its input"
		}
		all = append(all, failedspecs.Sanitize(failedspecs.Entry{
			Spec:     st.says,
			Input:    input,
			Observed: st.Observed,
			Contract: st.Contract,
		}))
	}
	if len(f.Ended) > 0 {
		all = append(all, Ended("the requests of the saved tests", f.Ended))
	}
	return all
}

// Older is a suite that refuted a source, with replays on the same source, which passes now.
type Older struct {
	Step    int    // in which it refuted the source
	Claims  Claims // of that step's failed_specs.md
	Suite   Suite
	Changed []string // files of the tests that have changed since
}

// Weigh returns why the pass of the current tests is doubtful, and notes for the user. It ignores an
// older test that is ok now, and one that is also ok against null apps, because it was wrong.
func (o Older) Weigh() (doubts, notes []string) {
	for _, c := range o.Suite.Contracts {
		t, claimed := tally(o.Suite.Real, c.ID), o.Claims.of(c.ID) > 0
		wrong := o.Suite.vacuous(c)
		switch {
		case t.n > 0 && t.ok == t.n && claimed:
			notes = append(notes, fmt.Sprintf("step-%d refuted %s on the same source, and its own test is ok there now", o.Step,
				c.ID))
		case t.n > 0 && t.ok == t.n, t.notOK == 0 && !claimed: // nothing refutes the contract
		case t.notOK == t.n && wrong != "":
			notes = append(notes, fmt.Sprintf("the test of %s with which step-%d refuted the same source was wrong: %s", c.ID,
				o.Step, wrong))
		default:
			doubts = append(doubts, o.doubt(t, c))
		}
	}
	return doubts, notes
}

func (o Older) doubt(t tallied, c Contract) string {
	said := "does not report it: " + t.silence(o.Suite.Real)
	switch {
	case t.mixed():
		said = "is not ok in each replay: " + t.gave()
	case t.notOK > 0:
		said = "is still not ok: " + brief(observed(t.refuted))
	}
	changed := "no file of the tests"
	if len(o.Changed) > 0 {
		changed = wording.Few(o.Changed, MostShown, ", ")
	}
	return fmt.Sprintf("%s passes only by its new test: step-%d refuted the same source, and its test %s; "+
		"changed since: %s (the contract: %s)",
		c.ID, o.Step, said, changed, c.Says)
}
