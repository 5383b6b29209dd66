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
// runs, or took it away: then Unread says what is there now.
type Edited struct {
	Phase, Running int
	Unread         string
}

func (e Edited) Error() string {
	if e.Unread != "" {
		return fmt.Sprintf("the spec of phase %d can no longer be read (%s), so no further call begins; everything until here is committed", e.Phase, e.Unread)
	}
	return fmt.Sprintf("the spec of phase %d was changed while phase %d runs, so no further call begins; everything until here is committed", e.Phase, e.Running)
}

// Hint says what the person can do.
func (e Edited) Hint() string {
	if e.Phase != e.Running {
		return fmt.Sprintf("put the earlier text back and run abl phase %d again; what was added at its end needs abl phase %d first, and the rest of it is frozen", e.Running, e.Phase)
	}
	return fmt.Sprintf("run abl phase %d again, and a new round begins on the new text; to go on with this round put the earlier text back first", e.Running)
}

// refined notices that the person changed the spec since this round began, while
// no abl ran: a new round begins on the new text. A call that has begun is taken
// to its end first, for it is paid.
func (l *Loop) refined(p *state.Phase, step Step) (bool, error) {
	var role roles.Role
	switch step {
	case Build:
		role = roles.Builder
	case Verify:
		role = roles.Verifier
	default:
		return false, nil
	}
	if p.SpecSHA == "" || p.SpecSHA == l.Spec.SHA256 {
		return false, nil
	}
	rec := l.turn(role, p).record()
	_, begun, err := rec.Intent()
	_, ended, outcome := rec.Outcome()
	if err := errors.Join(err, outcome); err != nil || begun || ended {
		return false, err
	}
	l.emit(p, state.Event{Kind: state.Note, Text: "the spec changed since this round began: a new round begins on the new text"})
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
	edited := Edited{Phase: n, Running: l.Number}
	if problems := l.Specs.Now().Check(n); len(problems) > 0 {
		edited.Unread = l.Project.Rel(problems[0].File) + ": " + problems[0].Text
	}
	return edited
}

// outdated is the phase whose spec is no longer the one that p's round works on,
// 0 for none: a pass would be one on a text that nobody wants any more.
func (l *Loop) outdated(p *state.Phase) int {
	if p.SpecSHA != l.Spec.SHA256 {
		return l.Number
	}
	return l.Specs.changed(l.Number)
}
