package orchestrator

import (
	"fmt"
	"slices"

	"abl/internal/state"
	"abl/orchestrator/evidence"
	"abl/roles"
)

// outdate marks the passes of later phases that were made on another source than
// that of p's: nobody has seen what they promise there.
func (l *Loop) outdate(p *state.Phase, tree string) {
	for n := l.Number + 1; l.File.Phases[fmt.Sprint(n)] != nil; n++ {
		later := *l.File.Phases[fmt.Sprint(n)]
		if later.Status != state.Passed {
			continue
		}
		if had, err := l.Src.TreeKey(later.SrcCommit, roles.Builder.Reports); err == nil && had == tree {
			continue
		}
		later.Status = state.Stale
		later.Note = fmt.Sprintf("stale since phase %d passed on another source: abl phase %d replays its tests there, which costs nothing while they hold", l.Number, n)
		l.File.Phases[fmt.Sprint(n)] = &later
		l.emit(p, state.Event{Kind: state.Note, Text: fmt.Sprintf("phase %d is %s", n, later.Note)})
	}
}

// recheckable says whether what a stale phase passed with can be replayed, and
// notes which tests these are.
func (l *Loop) recheckable(p *state.Phase) (ok bool, err error) {
	if p.Status != state.Stale {
		return false, nil
	}
	if p.TestsCommit, ok, err = l.Tests.TagCommit(passedTag(l.Number)); err != nil {
		return false, err
	}
	text := "what it passed with is replayed on the source as it is now, and no agent is called"
	switch {
	case l.Replay == nil:
		ok, text = false, "verify.evidence is off, so nothing is replayed: a Verifier says whether it still holds"
	case !ok:
		text = fmt.Sprintf("its tests have no tag %s, so nothing is replayed: a Verifier says whether it still holds", passedTag(l.Number))
	}
	l.emit(p, state.Event{Kind: state.Note, Text: text})
	return ok, nil
}

// rechecked holds a finding in which no agent had a part to every contract of the
// phases before this one: those are shown by the tests that their own phases
// passed with, or not at all.
func (v verification) rechecked(f Finding) (Finding, error) {
	f.ByReplay = true
	var earlier evidence.Finding
	if _, err := roles.KeptRegression(v.Project, v.key, &earlier); err != nil || f.Verdict != Pass {
		return f, err
	}
	if f.Evidence == nil {
		f.Missing = append(f.Missing, "verify.evidence is off, so what the phase passed with was not replayed")
	}
	if earlier.Verdict == evidence.Unverified {
		f.Missing = append(f.Missing, earlier.Reasons...)
	}
	for _, c := range contracts(v.Specs.Set, 1, v.Number-1) {
		shown := func(s evidence.Standing) bool { return s.Contract == c.ID && s.Is.Proven() }
		if !slices.ContainsFunc(earlier.Contracts, shown) {
			f.Missing = append(f.Missing, c.ID+" is not shown by the tests that its phase passed with")
		}
	}
	if len(f.Missing) > 0 {
		f.Verdict = Unknown
	}
	return f, nil
}
