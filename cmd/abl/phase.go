package main

import (
	"context"
	"fmt"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/view"
	"abl/internal/state"
	"abl/orchestrator"
)

func phaseCommand() cli.Command {
	return cli.Command{
		Name: "phase", Group: cli.Running, Args: "N", Usage: "build and verify one phase until its contracts hold",
		Long: `Runs phase N: a Builder writes the code in one container, a Verifier tests the
running system in another, at most five times (loop.max_verifier_iterations).
It is safe to interrupt, with Ctrl-C or abl stop, and to run again: abl resumes where it
stopped, reattaches to a call that still runs, and never pays for the same call twice.
abl report N shows the evidence for the verdict. If GITHUB_STEP_SUMMARY is set, abl
appends the report to that file.`,
		Examples: "abl phase 1\nabl phase PHASE=2 --json\nabl phase 1 --dry-run\nabl phase 1 --junit junit.xml --html page.html",
		Flags: append(append(phase.Flags(), tellFlags()...),
			phase.RemoteFlag(),
			cli.Flag{Name: "dry-run", Usage: "show prompts, mounts, networks, models and budget; start nothing"},
			cli.Flag{Name: "again", Usage: "open a new round of a stuck or unverified phase; run the tests of a passed one again on the current source"}),
		Run: phase.Opened(phase.Continued(runPhase)),
	}
}

// runPhase runs one phase in the view that the person chose.
func runPhase(ctx context.Context, s *phase.Project) error {
	in := s.In
	n, err := phase.Number(in.Args[0])
	if err != nil {
		return err
	}
	if in.Bool("dry-run") {
		return s.DryRun(ctx, n)
	}
	t := telling{Project: s}
	if err := t.begin(n); err != nil {
		return err
	}
	v := openView(ctx, s.In)
	defer v.Close()
	t.out = phase.Notifying(s, v)
	e, err := s.Play(ctx, n, in.Bool("again"), t.out)
	err = t.tell(ctx, n, &e, err)
	return s.TellOutcome(v, e, err)
}

// openView opens the view of a run that the person chose.
func openView(ctx context.Context, in *cli.Input) *view.View {
	progress := in.String("progress")
	if in.Bool("quiet") {
		progress = view.Quiet
	}
	return view.Open(ctx, view.Options{
		Progress: progress, JSON: in.Bool("json"), Stdout: in.Bare.Stdout, Stderr: in.Bare.Stderr, Safe: in.Safe,
	})
}

func runCommand() cli.Command {
	return cli.Command{
		Name: "run", Group: cli.Running, Usage: "run the next pending phase; with --through all of them in order",
		Long: `Runs the first phase that has not passed, and stops after it for your audit:
refine the specs, or approve by running the next. With --through it runs all phases.`,
		Examples: "abl run\nabl run --through --json\nabl run --through --junit junit.xml --summary summary.md",
		Flags: append(append(phase.Flags(), tellFlags()...),
			phase.RemoteFlag(),
			cli.Flag{Name: "through", Usage: "do not stop between phases"}),
		Run: phase.Opened(phase.Continued(func(ctx context.Context, s *phase.Project) error {
			return runPending(ctx, s, s.In.Bool("through"))
		})),
	}
}

// runPending plays phases from the first that has not passed.
func runPending(ctx context.Context, s *phase.Project, through bool) error {
	t := telling{Project: s}
	v := openView(ctx, s.In)
	defer v.Close()
	t.out = phase.Notifying(s, v)
	e := state.Event{Kind: state.Outcome}
	for played := false; ; played = true {
		f, err := s.State()
		if err != nil {
			e.Text = err.Error()
			return s.TellOutcome(v, e, err)
		}
		specs := s.Specs()
		n := orchestrator.NextPhase(f, specs)
		switch {
		case n == 0 && played:
			return s.TellOutcome(v, e, nil)
		case n == 0: // the last one says that there is nothing to do, or what is missing
			n, through = max(1, len(specs.Numbers())), false
		case played:
			v.Emit(state.Event{Kind: state.Note, Phase: e.Phase, Text: fmt.Sprintf("phase %d: %s", e.Phase, e.Text)})
		}
		if err := t.begin(n); err != nil {
			e.Text = err.Error()
			return s.TellOutcome(v, e, err)
		}
		e, err = s.Play(ctx, n, false, t.out)
		if err = t.tell(ctx, n, &e, err); err != nil || !through {
			return s.TellOutcome(v, e, err)
		}
	}
}
