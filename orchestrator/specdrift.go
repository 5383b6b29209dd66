package orchestrator

import (
	"errors"
	"fmt"

	"abl/internal/spec"
	"abl/internal/state"
	"abl/roles"
)

// HeldSpecs has the specs of a run as they were read at its start. Now reads them again. Without
// Now, changes are not detected.
type HeldSpecs struct {
	Set spec.Set
	Now func() spec.Set
}

// changed returns the first of phases 1 to n whose spec has changed, or 0.
func (h HeldSpecs) changed(n int) int {
	if h.Now == nil {
		return 0
	}
	now := h.Now()
	for _, was := range h.Set.UpTo(n) {
		if is, ok := now.Phase(was.Number); !ok || is.SHA256 != was.SHA256 {
			return was.Number
		}
	}
	return 0
}

// Edited means that the user changed or deleted a spec that the running phase depends on.
type Edited struct{ Refused }

// edited returns the error for the spec of a phase while phase running runs. unread is why the spec
// can no longer be read, "" if it can.
func edited(phase, running int, unread string) Edited {
	how := fmt.Sprintf("was changed while phase %d runs", running)
	if unread != "" {
		how = "can no longer be read (" + unread + ")"
	}
	do := "run abl phase %[1]d again, and a new round begins on the new text; " +
		"to continue this round restore the earlier text first"
	if phase != running {
		do = "restore the earlier text and run abl phase %[1]d again; text that was added at its end needs abl phase %[2]d " +
			"first, and the rest of it is frozen"
	}
	return Edited{Refused{
		fmt.Sprintf("the spec of phase %d %s, so abl begins no further call; everything so far is committed", phase, how),
		fmt.Sprintf(do, running, phase),
	}}
}

// restartRound reports whether the user changed the spec between two runs: then a new round begins
// on the new text. A call that has begun is completed first, because it is paid for.
func (l *Loop) restartRound(p *state.Phase, step Step) (bool, error) {
	role, is := map[Step]roles.Role{Build: roles.Builder, Verify: roles.Verifier}[step]
	if !is || p.SpecSHA == "" || p.SpecSHA == l.spec().SHA256 {
		return false, nil
	}
	rec := l.turn(role, p).record()
	_, begun, err := rec.Intent()
	_, ended, outcome := rec.Outcome()
	if err := errors.Join(err, outcome); err != nil || begun || ended || rec.Started() {
		return false, err
	}
	l.say(p, "the spec changed since this round began: a new round begins on the new text")
	p.Status = state.Ready
	return true, nil
}

// specDrift fails if the user has changed a spec since the run began, so that no call works on a
// spec that may be half written.
func (l *Loop) specDrift() error {
	n := l.Specs.changed(l.Number)
	if n == 0 {
		return nil
	}
	unread := ""
	if problems := l.Specs.Now().Check(n); len(problems) > 0 {
		unread = l.Project.Rel(problems[0].File) + ": " + problems[0].Text
	}
	return edited(n, l.Number, unread)
}

// outdated returns the phase whose spec has changed since p's round began, or 0. A pass would be
// about an outdated text.
func (l *Loop) outdated(p *state.Phase) int {
	if p.SpecSHA != l.spec().SHA256 {
		return l.Number
	}
	return l.Specs.changed(l.Number)
}
