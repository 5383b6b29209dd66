package main

import (
	"context"
	"fmt"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/phase"
	"abl/internal/state"
	"abl/orchestrator"
)

func runCommand() cli.Command {
	return cli.Command{
		Name: "run", Group: cli.Running, Usage: "run the next pending phase; with --through all of them in order",
		Long: `Runs the first phase that has not passed, and stops after it for your audit:
refine the specs, or approve by going on. With --through it goes on to the last.`,
		Examples: "abl run\nabl run --through --json",
		Flags: append(phase.Flags(),
			cli.Flag{Name: "through", Usage: "do not stop between phases"}),
		Run: phase.Opened(func(ctx context.Context, s *phase.Project) error { return runPending(ctx, s, s.In.Bool("through")) }),
	}
}

// runPending plays phases from the first that has not passed.
func runPending(ctx context.Context, s *phase.Project, through bool) error {
	v, err := openView(ctx, s)
	if err != nil {
		return err
	}
	defer v.Close()
	e := state.Event{Kind: state.Outcome}
	for played := false; ; played = true {
		n, last, err := pending(s)
		switch {
		case err != nil:
			e.Text = err.Error()
			return s.TellOutcome(v, e, err)
		case n == 0 && played:
			return s.TellOutcome(v, e, nil)
		case n == 0: // the last one says that there is nothing to do, or what is missing
			e, err = s.Play(ctx, max(1, last), false, v)
			return s.TellOutcome(v, e, err)
		case played:
			v.Emit(state.Event{Kind: state.Note, Phase: e.Phase, Text: fmt.Sprintf("phase %d: %s", e.Phase, e.Text)})
		}
		e, err = s.Play(ctx, n, false, v)
		if e, err = published(ctx, s, n, e, err); err != nil || !through {
			return s.TellOutcome(v, e, err)
		}
	}
}

// pending is the first phase that has not passed, 0 for none, and how many there are.
func pending(s *phase.Project) (n, all int, err error) {
	f, err := s.State()
	if err != nil {
		return 0, 0, err
	}
	specs := s.Specs()
	return orchestrator.NextPhase(f, specs), len(specs.Numbers()), nil
}
