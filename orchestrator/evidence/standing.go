package evidence

import (
	"fmt"
	"slices"
	"strings"

	"abl/internal/audit"
	"abl/internal/tap"
	"abl/internal/wording"
)

// The values of audit.Finding.Is. Verified counts towards a pass, and so do Weak and NotRead if they
// are allowed. Failed, Flaky and NotReproduced make a fail. The others leave the verdict open.
const (
	Verified      = "verified"
	Weak          = "weak"           // its test is also ok for other responses
	NotRead       = "not read"       // abl did not read the body that it names
	Failed        = "failed"         // the Verifier or, without a Verifier, a replay reports a failure
	NotReproduced = "not reproduced" // the Verifier reports a failure, and the replays are ok
	Flaky         = "flaky"          // ok in some replays, not ok in others
	Disputed      = "disputed"       // a replay is not ok, and the Verifier reports no failure
	Vacuous       = "vacuous"        // its test is also ok against null apps
	NotWitnessed  = "not witnessed"  // no recorded exchange matches it
	Missing       = "missing"        // the replays have no result for it
	OKSoFar       = "ok so far"      // its test is ok, and the iteration failed elsewhere
	Untried       = "untried"        // some replays are missing
)

// Proven reports whether a contract counts towards a pass.
func Proven(f audit.Finding) bool {
	return f.Is == Verified || (f.Is == Weak || f.Is == NotRead) && f.Allowed
}

// Standing is the finding on one contract. Observed of a flaky one lists the results of the replays.
type Standing struct {
	Contract string `json:"contract"`
	Suite    string `json:"suite,omitempty"` // "" for the current tests
	audit.Finding

	says  string
	later bool // its test is ok, and only the replays against null apps are missing
}

// maxTestLine is the largest size of a test's line in a finding, in bytes.
const maxTestLine = 300

// judge returns the finding on one contract of a suite.
func judge(claims Claims, s Suite, c Contract) Standing {
	t := tally(s.Real, c.ID)
	st := Standing{
		Contract: c.ID,
		Suite:    s.Name,
		Finding:  audit.Finding{Entries: claims.of(c.ID), Under: s.under(c.ID)},
		says:     c.Says,
	}
	seen := s.witnessed(c)
	st.Witness, st.Unread = seen.exchange, seen.blind
	if seen.unread != "" {
		st.Witness += ", with a body that abl did not read"
	}
	if !s.Waived.Strength && len(s.Altered) > 0 {
		st.Unshown = s.unshown(c)
	}
	for _, r := range t.results {
		st.Runs = append(st.Runs, string(r.Status))
		if st.Test == "" && len(r.Points) > 0 {
			st.Test = wording.Short(fmt.Sprintf("line %d: %s", r.Points[0].Line, r.Points[0].Text), maxTestLine)
		}
	}
	if t.notOK > 0 {
		st.Input, st.Observed = t.refuted.Fields["input"], observed(t.refuted)
	}
	switch {
	case s.Fault() != "" && st.Entries == 0 && !t.mixed():
		st.Is, st.Why = Untried, "its tests could not be replayed: "+s.Fault()
	case t.mixed():
		st.Is, st.Observed = Flaky, t.gave()
		st.Why = brief(st.Observed)
	case t.notOK > 0 && (st.Entries > 0 || s.Unreported):
		st.Is, st.Why = Failed, fmt.Sprintf("%d of %d replays are not ok: %s", t.notOK, t.n, brief(st.Observed))
	case t.notOK > 0:
		st.Is, st.Why = Disputed, fmt.Sprintf("the Verifier reports no failure, and %d of %d replays are not ok: %s", t.notOK,
			t.n, brief(st.Observed))
	case t.n > 0 && t.ok == t.n && st.Entries > 0:
		st.Is, st.Why = NotReproduced, fmt.Sprintf("the Verifier reports a failure, and its test is ok in all of %s",
			wording.Count(t.n, "replay"))
		if why := s.vacuous(c); why != "" { // so its test could not fail
			st.Why += "; but " + why
		}
	case t.n > 0 && t.ok == t.n:
		if st.Is, st.Why = s.challenged(c); st.Is == Flaky {
			st.Observed = st.Why
		}
		st.later = st.Is == Untried && s.Away == nil && s.Empty == nil && s.Broken == nil
		st.Allowed = st.Is == Weak && s.mayBeWeak(c) || st.Is == NotRead && allows(s.Allowed.Unread, c.ID)
	case st.Entries > 0:
		st.Is, st.Why = Failed, "the Verifier reports it, the replays have no result: "+t.silence(s.Real)
	default:
		st.Is, st.Why = Missing, t.silence(s.Real)
	}
	return st
}

// brief returns an observation on one short line.
func brief(s string) string { return wording.Cut(wording.OneLine(s), 200) }

// observed returns the observation in a test line that is not ok.
func observed(p tap.Point) string {
	for _, key := range []string{"observed", "comment"} {
		if v := p.Fields[key]; v != "" {
			return v
		}
	}
	return "not ok, without an observation"
}

// gave lists the results of a flaky contract, the failures first.
func (t tallied) gave() string {
	var texts []string
	for _, r := range t.results {
		if r.Status == tap.NotOK && !slices.Contains(texts, observed(r.Points[0])) {
			texts = append(texts, observed(r.Points[0]))
		}
	}
	return fmt.Sprintf("%d of %d runs gave: %s; %d of %d gave the contract's result",
		t.notOK, t.n, strings.Join(texts, "; or "), t.ok, t.n)
}

// silence returns why the replays have no result for a contract.
func (t tallied) silence(runs []Run) string {
	if t.n == 0 {
		return "its tests were not replayed"
	}
	for i, r := range t.results {
		why := r.Why
		switch {
		case r.Status == tap.OK || r.Status == tap.NotOK:
			continue
		case runs[i].Gone != "":
			why = runs[i].Gone
		case runs[i].Late && r.Status == tap.Missing:
			why = "run.sh was stopped at its time limit before this contract"
		}
		if t.n == 1 {
			return why
		}
		return fmt.Sprintf("in replay %d of %d %s", i+1, t.n, why)
	}
	return ""
}
