package orchestrator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"abl/orchestrator/dirs"
	"abl/orchestrator/event"
	"abl/orchestrator/evidence"
	"abl/orchestrator/state"
	"abl/roles"
)

// mutate replays the tests against small changes of the app's answers, each
// against a freshly started app. Only changes that would find something to
// change are tried: a run without any tells which.
func (l *Loop) mutate(ctx context.Context, p *state.Phase, s *evidence.Suite, limit time.Duration) error {
	control, _, err := l.replay(ctx, p, l.mutant(p, dirs.NoMutation, limit))
	if err != nil {
		return err
	}
	weighedControl := weighed(control)
	s.Control = &weighedControl
	could := control.Mutated.Could
	l.emit(p, event.Event{Kind: event.Note, Role: roles.Verifier.Name, Text: fmt.Sprintf("the tests are tried against %s of the app's answers", counted(len(could), "small change"))})
	for i, name := range could {
		l.emit(p, event.Event{Kind: event.Note, Role: roles.Verifier.Name, Text: fmt.Sprintf("change %d of %d: %s", i+1, len(could), name)})
		run, _, err := l.replay(ctx, p, l.mutant(p, name, limit))
		if err != nil {
			return err
		}
		s.Mutants = append(s.Mutants, evidence.Mutant{Name: name, Applied: run.Mutated.Applied, Run: weighed(run)})
	}
	return nil
}

func (l *Loop) mutant(p *state.Phase, name string, limit time.Duration) roles.Replay {
	return roles.Replay{Key: l.replayKey(p, "mutant-"+name), Against: roles.TheApp, Mutate: name, Limit: limit}
}

// measured is the verification strength in one line, "" where none was measured.
func measured(s *evidence.Strength) string {
	if s == nil {
		return ""
	}
	share, ok := s.Share()
	if !ok {
		return "verification strength is unknown: no change that abl can make found anything in the app's answers"
	}
	text := fmt.Sprintf("verification strength %.0f %%: the tests notice %d of %s in the app's answers", 100*share, s.Noticed, counted(s.Applied, "change"))
	if len(s.Missed) > 0 {
		text += "; not " + strings.Join(s.Missed, ", ")
	}
	return text
}

// counted is a number with its noun.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
