package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"abl/cmd/internal/ground"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/testing/failpoint"
	"abl/orchestrator/event"
	"abl/orchestrator/state"
	"abl/roles"
)

// sweep removes what an earlier abl left, but for the call that this run takes
// up and what that call stands on.
func (st *stage) sweep(ctx context.Context) error {
	for _, dir := range []string{filepath.Dir(st.project.State()), st.project.Logs()} {
		if err := hostfs.SweepTemps(dir); err != nil {
			return err
		}
	}
	live, err := st.live(ctx)
	if err != nil {
		return err
	}
	_, err = st.engine.Sweep(ctx, st.ours(), func(box sandbox.Status) bool {
		return live != "" && (box.Labels[sandbox.LabelCall] == live || box.Labels[sandbox.LabelKind] == "holder")
	})
	if err != nil {
		return err
	}
	failpoint.Here("stage.swept")
	return nil
}

// ours are the labels of all that belongs to the project.
func (st *stage) ours() map[string]string {
	return map[string]string{sandbox.LabelProject: st.file.Project}
}

// live is the call that the phase rests in when its box is on the engine and
// its end is not on disk, else "".
func (st *stage) live(ctx context.Context) (string, error) {
	key := callAtRest(st.file, fmt.Sprint(st.phase))
	if key == "" {
		return "", nil
	}
	if _, ended, err := (roles.Record{Dir: st.project.Call(key)}).Outcome(); ended || err != nil {
		return "", err
	}
	boxes, err := st.engine.List(ctx, st.ours())
	if err != nil {
		return "", err
	}
	for _, box := range boxes {
		if box.Labels[sandbox.LabelCall] == key && box.Labels[sandbox.LabelKind] == "role" {
			return key, nil
		}
	}
	return "", nil
}

// callAtRest is the call that a phase rests in, "" between calls.
func callAtRest(f *state.File, phase string) string {
	p := f.Phases[phase]
	if p == nil || p.Status != state.Building && p.Status != state.Verifying {
		return ""
	}
	return p.Call
}

// abandon notes of every call at rest that it is about to be ended on request.
func (s *session) abandon(f *state.File) error {
	for phase := range f.Phases {
		key := callAtRest(f, phase)
		if key == "" {
			continue
		}
		rec := roles.Record{Dir: s.project.Call(key)}
		if _, begun, err := rec.Intent(); err != nil || !begun {
			continue // there is nothing to end
		}
		if err := rec.Stop(roles.Interrupted); err != nil {
			return err
		}
	}
	return nil
}

// retreat takes the stage down after something went wrong. A call whose end is
// not on disk has been paid for: it stays with what it stands on, for the next
// run to attach to, unless the person wants to stop.
func (st *stage) retreat(ctx context.Context, stopping bool) error {
	if st.engine == nil {
		return nil
	}
	defer st.forwards.Close()   //nolint:errcheck // nothing is asked of it any more
	if st.held.Still() != nil { // all of it may be another abl's by now
		st.engine.Close()
		return nil
	}
	live, err := st.live(ctx)
	switch {
	case err != nil:
		st.engine.Close()
		return st.untidy(err)
	case live == "":
	case stopping:
		if err := st.abandon(st.file); err != nil {
			return st.untidy(err)
		}
	default:
		err := st.sweep(ctx)
		st.engine.Close()
		if err != nil {
			return st.untidy(err)
		}
		st.out.Emit(event.Event{Time: time.Now().UTC(), Kind: event.Note, Phase: st.phase, Call: live,
			Text: "call " + live + " is left as it is: the next run attaches to it, abl clean ends it"})
		return nil
	}
	return st.strike(ctx)
}

// strike takes everything down: boxes, networks, volumes, and then lent files
// back, when no box is left that could still write to them.
func (st *stage) strike(ctx context.Context) error {
	_, err := st.engine.Sweep(ctx, st.ours(), nil)
	st.engine.Close()
	if err = errors.Join(err, st.forwards.Close()); err != nil {
		return st.untidy(err)
	}
	failpoint.Here("strike.swept")
	if err := st.giveBack(st.file, st.out); err != nil {
		return st.untidy(err)
	}
	failpoint.Here("strike.done")
	return nil
}

// untidy words what could not be taken down, and tells it at once: a signal's
// own sentence may take the place of this one.
func (st *stage) untidy(err error) error {
	err = fmt.Errorf("cannot tidy up (the next run, or abl clean, will): %w", err)
	st.out.Emit(event.Event{Time: time.Now().UTC(), Kind: event.Note, Phase: st.phase, Text: err.Error()})
	return err
}

// tidyAtRest removes what a run that was killed after its last save has left:
// boxes where an engine answers, for there is nothing else to ask one for, and
// what is lent.
func (s *session) tidyAtRest(ctx context.Context, f *state.File, out event.Sink) error {
	eng, _, err := ground.Connect(ctx)
	if err == nil {
		_, err = eng.Sweep(ctx, map[string]string{sandbox.LabelProject: f.Project}, nil)
		err = errors.Join(onEngine(err), eng.Close())
		if err != nil {
			return err
		}
	}
	return s.giveBack(f, out)
}
