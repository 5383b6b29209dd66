package orchestrator

import (
	"errors"
	"fmt"

	"abl/internal/spec"
	"abl/internal/state"
	"abl/roles"
)

// HeldSpecs is the specs that a phase is held to, as they were read when it was taken
// up, and how to read them again. Without Now nobody looks.
type HeldSpecs struct {
	Set spec.Set
	Now func() spec.Set
}

// changed is the first of phases 1 to n whose spec is no longer what it was, 0 for none.
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

// Edited means that a person changed a spec while a phase that is held to it
// runs, or took it away.
type Edited struct{ Refused }

// edited is that of a phase while another or the same runs; unread says what is there now,
// "" when it can be read.
func edited(phase, running int, unread string) Edited {
	how := fmt.Sprintf("was changed while phase %d runs", running)
	if unread != "" {
		how = "can no longer be read (" + unread + ")"
	}
	do := "run abl phase %[1]d again, and a new round begins on the new text; to go on with this round put the earlier text back first"
	if phase != running {
		do = "put the earlier text back and run abl phase %[1]d again; what was added at its end needs abl phase %[2]d first, and the rest of it is frozen"
	}
	return Edited{Refused{
		fmt.Sprintf("the spec of phase %d %s, so no further call begins; everything until here is committed", phase, how),
		fmt.Sprintf(do, running, phase),
	}}
}

// refined notices that the person changed the spec since this round began, while
// no abl ran: a new round begins on the new text. A call that has begun is taken
// to its end first, for it is paid.
func (l *Loop) refined(p *state.Phase, step Step) (bool, error) {
	role, is := map[Step]roles.Role{Build: roles.Builder, Verify: roles.Verifier}[step]
	if !is || p.SpecSHA == "" || p.SpecSHA == l.Spec.SHA256 {
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

// specDrift stops before a call that would work on a spec that the person has
// changed meanwhile: it may be half written.
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

// outdated is the phase whose spec is no longer the one that p's round works on,
// 0 for none: a pass would be one on a text that nobody wants any more.
func (l *Loop) outdated(p *state.Phase) int {
	if p.SpecSHA != l.Spec.SHA256 {
		return l.Number
	}
	return l.Specs.changed(l.Number)
}
