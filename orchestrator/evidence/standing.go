package evidence

import (
	"fmt"
	"strings"

	"abl/internal/witness"
	"abl/internal/wording"
)

// Kind is where a contract stands.
type Kind string

// Verified and Weak count towards a pass, Failed, Flaky and NotReproduced make
// a fail, the others leave it open.
const (
	Verified      Kind = "verified"
	Weak          Kind = "weak"           // its test is ok under a null app too
	Failed        Kind = "failed"         // the Verifier says so, or the replay where it goes alone
	NotReproduced Kind = "not reproduced" // the Verifier says that it fails, and it replays ok
	Flaky         Kind = "flaky"          // ok in some runs, not ok in others
	Disputed      Kind = "disputed"       // it replays not ok, and the Verifier reports no failure
	Vacuous       Kind = "vacuous"        // its test is ok where nothing can be
	Missing       Kind = "missing"        // the replay says nothing of it
	Untried       Kind = "untried"        // its test was not held against what it has to be
)

// Proven says that the kind counts towards a pass.
func (k Kind) Proven() bool { return k == Verified || k == Weak }

// Standing is one contract with what was found.
type Standing struct {
	Contract string           `json:"contract"`
	Suite    string           `json:"suite,omitempty"` // "" is today's
	Is       Kind             `json:"is"`
	Why      string           `json:"why,omitempty"`      // in plain words, without the contract's id
	Runs     []witness.Status `json:"runs,omitempty"`     // of the replays, in order
	Entries  int              `json:"entries,omitempty"`  // of failed_specs.md
	Input    string           `json:"input,omitempty"`    // of the first replay that was not ok
	Observed string           `json:"observed,omitempty"` // likewise; of a flaky one, how many runs gave what
	Under    []string         `json:"under,omitempty"`    // where its test is ok besides: away, empty 200, 500

	says string
}

// stand weighs one contract of a suite.
func stand(claims Claims, s Suite, c Contract) Standing {
	t := tally(s.Real, c.ID)
	st := Standing{Contract: c.ID, Suite: s.Name, Entries: claims.of(c.ID), says: c.Says, Under: s.under(c.ID)}
	for _, r := range t.results {
		st.Runs = append(st.Runs, r.Status)
		if r.Status == witness.NotOK && st.Observed == "" {
			st.Input, st.Observed = r.Points[0].Fields["input"], observed(r.Points[0])
		}
	}
	switch {
	case t.mixed():
		st.Is, st.Observed = Flaky, t.gave()
		st.Why = brief(st.Observed)
	case t.notOK > 0 && (st.Entries > 0 || s.Alone):
		st.Is, st.Why = Failed, fmt.Sprintf("%d of %d replays say not ok: %s", t.notOK, t.n, brief(st.Observed))
	case t.notOK > 0:
		st.Is, st.Why = Disputed, fmt.Sprintf("the Verifier reports no failure, and %d of %d replays say not ok: %s", t.notOK, t.n, brief(st.Observed))
	case t.n > 0 && t.ok == t.n && st.Entries > 0:
		st.Is, st.Why = NotReproduced, fmt.Sprintf("the Verifier reports a failure, and all of %s ok%s", replays(t.n), s.hollow(c))
	case t.n > 0 && t.ok == t.n:
		st.Is, st.Why = s.challenged(c)
	case st.Entries > 0:
		st.Is, st.Why = Failed, "the Verifier reports it, the replay says nothing of it: "+t.silence(s.Real)
	default:
		st.Is, st.Why = Missing, t.silence(s.Real)
	}
	return st
}

// brief is an observation on one line of a report.
func brief(s string) string { return wording.Cut(wording.OneLine(s), 200) }

func replays(n int) string {
	if n == 1 {
		return "1 replay is"
	}
	return fmt.Sprintf("%d replays are", n)
}

// observed is what a test line that is not ok tells.
func observed(p witness.Point) string {
	for _, key := range []string{"observed", "comment"} {
		if v := p.Fields[key]; v != "" {
			return v
		}
	}
	return "not ok, without a word on what was observed"
}

// gave tells what the runs of a flaky contract gave, the failures first.
func (t tallied) gave() string {
	var texts []string
	count := map[string]int{}
	for _, r := range t.results {
		if r.Status != witness.NotOK {
			continue
		}
		text := observed(r.Points[0])
		if count[text]++; count[text] == 1 {
			texts = append(texts, text)
		}
	}
	var parts []string
	for _, text := range texts {
		parts = append(parts, fmt.Sprintf("%d of %d runs gave: %s", count[text], t.n, text))
	}
	parts = append(parts, fmt.Sprintf("%d of %d gave what the contract says", t.ok, t.n))
	if none := t.n - t.ok - t.notOK; none > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d gave nothing", none, t.n))
	}
	return strings.Join(parts, "; ")
}

// silence says why the replay is no statement on a contract.
func (t tallied) silence(runs []Run) string {
	if t.n == 0 {
		return "its tests were not replayed"
	}
	for i, r := range t.results {
		why := r.Why
		switch {
		case r.Status == witness.OK || r.Status == witness.NotOK:
			continue
		case runs[i].Gone != "":
			why = runs[i].Gone
		case runs[i].Late && r.Status == witness.Missing:
			why = "run.sh was stopped at its time limit before it came to this contract"
		}
		if t.n == 1 {
			return why
		}
		return fmt.Sprintf("in replay %d of %d %s", i+1, t.n, why)
	}
	return ""
}
