package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles"
)

// because puts the reason why ctx ended in the place of an error that says no
// more than that it ended.
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// judgedFor is whether a judgement ended the iteration: it did not when the
// Verifier is asked once more, or called again because it did not end properly.
func judgedFor(was, now state.Phase) bool {
	return now.Iteration != was.Iteration || now.Status != state.Verifying
}

// record is what is remembered of the iteration that was judged.
func record(was state.Phase, h Happened) state.IterationRecord {
	return state.IterationRecord{
		Round: was.Round, Iteration: was.Iteration, Step: was.Step, Verdict: string(h.Verdict), Entries: len(h.Entries),
		SrcCommit: was.SrcCommit, TestsCommit: h.Commit, When: time.Now().UTC(),
		Call: was.Call, Tree: h.Tree, VerifierOnly: was.VerifierOnly,
	}
}

// save makes durable where the phase rests now, and with it the id of the call
// that is about to begin.
func (l *Loop) save(p state.Phase) error {
	switch p.Status {
	case state.Building:
		p.Call = l.turn(roles.Builder, &p).key
	case state.Verifying:
		p.Call = l.turn(roles.Verifier, &p).key
	}
	if next, err := Next(p); err == nil && next == Rest {
		p.Ended = time.Now().UTC()
	}
	l.File.Phases[fmt.Sprint(l.Number)] = &p
	l.File.Updated = time.Now().UTC()
	failpoint.Here("state.before")
	if err := l.Alone(); err != nil {
		return err
	}
	if err := l.Save(); err != nil {
		return fmt.Errorf("cannot save the state: %w", err)
	}
	failpoint.Here("state.after")
	return nil
}
