package main

import (
	"context"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/view"
	"abl/internal/state"
)

func phaseCommand() cli.Command {
	return cli.Command{
		Name: "phase", Group: cli.Running, Args: "N", Usage: "build and verify one phase until its contracts hold", MinArgs: 1, MaxArgs: 1,
		Long: `Runs phase N: a Builder writes the code in one container, a Verifier tests the
running system in another, at most five times (loop.max_verifier_iterations).
It is safe to interrupt and to run again: it goes on where it stopped, attaches
to a call that is still running, and pays for none twice. abl report N shows what
the verdict stands on; where GITHUB_STEP_SUMMARY is set, that is appended there.`,
		Examples: "abl phase 1\nabl phase PHASE=2 --json\nabl phase 1 --dry-run\nabl phase 1 --junit junit.xml",
		Flags: append(phase.Flags(),
			cli.Flag{Name: "dry-run", Usage: "show prompts, mounts, networks, models and budget; start nothing"},
			cli.Flag{Name: "again", Usage: "open a new round of a stuck or unverified phase; replay what a passed one passed with on the source as it is now"},
			cli.Flag{Name: "junit", Value: "FILE", Usage: "write the contracts and their evidence there as JUnit XML"}),
		Run: runPhase,
	}
}

// runPhase runs one phase in the view that the person chose.
func runPhase(ctx context.Context, in *cli.Input) error {
	n, err := phase.Number(in.Args[0])
	if err != nil {
		return err
	}
	s, err := phase.Open(in)
	if err != nil {
		return err
	}
	if in.Bool("dry-run") {
		return s.DryRun(ctx, n)
	}
	if err := checkJUnit(s, n); err != nil {
		return err
	}
	v, err := openView(ctx, s)
	if err != nil {
		return err
	}
	defer v.Close()
	e, err := s.Play(ctx, n, in.Bool("again"), v)
	e, err = published(ctx, s, n, e, err)
	return s.TellOutcome(v, e, err)
}

// published tells those who asked for it how phase n ended.
func published(ctx context.Context, s *phase.Project, n int, e state.Event, ended error) (state.Event, error) {
	told := publish(ctx, s, n, ended)
	if ended == nil && told != nil {
		e.Text += ": " + told.Error()
	}
	return e, told
}

// openView opens the view of a run that the person chose.
func openView(ctx context.Context, s *phase.Project) (*view.View, error) {
	v, err := view.Open(ctx, view.Options{
		Progress: s.In.String("progress"), JSON: s.In.Bool("json"), Stdout: s.In.Bare.Stdout, Stderr: s.In.Bare.Stderr, Safe: s.In.Safe,
	})
	if err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	return v, nil
}
