package orchestrator

import (
	"fmt"
	"slices"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
)

// Attempts are the iterations of p's round that were judged, oldest first. One
// whose finding is no longer on record tells nothing.
func Attempts(in state.Project, p state.Phase) (all []Attempt, err error) {
	for _, r := range p.History {
		if r.Round != p.Round {
			continue
		}
		a := Attempt{Step: r.Step, Verdict: Verdict(r.Verdict), Built: !r.VerifierOnly, Tree: r.Tree}
		var f Finding
		kept := false
		if r.Call != "" {
			if kept, err = roles.KeptFinding(in, r.Call, &f); err != nil {
				return nil, err
			}
		}
		if a.Failed = f.Entries; !kept && a.Verdict == Fail {
			a.Verdict = Unknown
		}
		all = append(all, a)
	}
	return all, nil
}

// standstill looks whether the iteration that f is about has moved anything.
func (l *Loop) standstill(p *state.Phase, f Finding) (s Standstill, tree string, err error) {
	if p.SrcCommit != "" {
		if tree, err = l.Src.TreeKey(p.SrcCommit, roles.Builder.Reports); err != nil {
			return s, "", fmt.Errorf("cannot compare the source with what was tested before: %w", err)
		}
	}
	round, err := Attempts(l.Project, *p)
	if err != nil || f.Verdict != Fail {
		return s, tree, err
	}
	s = StandstillOf(append(round, Attempt{Step: p.Step, Verdict: f.Verdict, Built: !p.VerifierOnly, Tree: tree, Failed: f.Entries}))
	if s.Step != p.Step {
		s = Standstill{} // of an earlier one
	}
	if text := s.ForPerson(); text != "" {
		if s.Ends(l.NoProgress) {
			text += fmt.Sprintf("; the phase ends here, for loop.no_progress is %d", l.NoProgress)
		}
		l.emit(p, state.Event{Kind: state.Note, Text: text})
	}
	return s, tree, nil
}

// sameAnswer says whether the Verifier has left the same without a verdict for as
// often as the person allows, and notes in p how often that was.
func (l *Loop) sameAnswer(p *state.Phase, f Finding) bool {
	was := p.Repeated
	p.Repeated = 0
	if f.Verdict != Unknown || p.Recheck || p.Class != string(outcome.Done) {
		return false
	}
	if p.Repeated = 1; sameReasons(p.Why, f.Missing) {
		p.Repeated = was + 1
	}
	if l.NoVerdict == 0 || p.Repeated < l.NoVerdict {
		return false
	}
	l.emit(p, state.Event{Kind: state.Note, Text: fmt.Sprintf("what a verdict lacks did not change: the round ends here, for loop.no_progress.unverified is %d", l.NoVerdict)})
	return true
}

// sameReasons compares what two answers lack, apart from what differs by chance.
func sameReasons(a, b []string) bool {
	plain := func(reasons []string) []string {
		all := make([]string, len(reasons))
		for i, r := range reasons {
			all[i] = observation(r)
		}
		return all
	}
	return slices.Equal(plain(a), plain(b))
}
