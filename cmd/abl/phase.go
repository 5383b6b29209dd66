package main

import (
	"context"
	"fmt"
	"slices"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/look"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/state"
	"abl/orchestrator"
)

// runOptions are flags of abl phase, abl run and abl demo.
type runOptions struct{ again, through bool }

func phaseCommand() cli.Command {
	var o runOptions
	return cli.Command{
		Name:  "phase",
		Group: cli.Running,
		Args:  "N",
		Usage: "build and verify one phase until its contracts hold",
		Long: `Runs phase N. A Builder writes the code in one container, and a Verifier tests the
running system in another, at most five times (loop.max_verifier_iterations).

You can interrupt it with Ctrl-C or abl stop. The same command resumes where it stopped:
abl reattaches to a running call and never pays for a finished one again.

abl report N shows the evidence for the verdict. If GITHUB_STEP_SUMMARY is set, abl
appends the report to that file.`,
		Examples: "abl phase 1\nabl phase PHASE=2 --json\nabl phase 1 --dry-run\n" +
			"abl phase 1 --junit junit.xml --html page.html",
		Flags: o.flags(),
		Run:   project.Opened(project.Continued(o.phase)),
	}
}

// flags returns the flags of `abl phase` and `abl run`.
func (o *runOptions) flags() []cli.Flag {
	return slices.Concat(project.Flags(), look.OutputFlags(), []cli.Flag{
		project.RemoteFlag(),
		{Name: "dry-run", Usage: "show prompts, mounts, networks, models and budget; start nothing"},
		{Name: "again", To: &o.again,
			Usage: "begin a new round of iterations of a stuck or unverified phase; " +
				"run the tests of a passed phase again on the current source"},
	})
}

// phase runs one phase.
func (o *runOptions) phase(ctx context.Context, s *project.Project) error {
	in := s.In
	n, err := project.Number(in.Args[0])
	if err != nil {
		return err
	}
	if in.Bool("dry-run") {
		return phase.DryRun(ctx, s, n)
	}
	return o.play(ctx, s, n)
}

// play runs phase n. If n is 0, it runs the first phase that has not passed, and with through those after it.
func (o *runOptions) play(ctx context.Context, s *project.Project, n int) error {
	v := openView(ctx, s.In)
	defer v.Close()
	e, err := o.phases(ctx, &look.Outputs{Project: s, Out: look.Notifying(s, v)}, n)
	return phase.TellOutcome(s, v, e, err)
}

// phases runs the phases of play, and returns the event with the outcome of the last one.
func (o *runOptions) phases(ctx context.Context, files *look.Outputs, n int) (e state.Event, err error) {
	e.Kind = state.Outcome
	for played := false; ; played = true {
		if n == 0 || played {
			f, err := files.State()
			if err != nil {
				e.Text = err.Error()
				return e, err
			}
			next, pending := orchestrator.NextPhase(f, files.Specs())
			if !pending && played {
				return e, nil
			}
			if played {
				text := fmt.Sprintf("phase %d: %s", e.Phase, e.Text)
				files.Out.Emit(state.Event{Kind: state.Note, Phase: e.Phase, Text: text})
			}
			n = next // if no phase is pending, Play reports that the last one has passed, or that no spec exists
		}
		if err = files.Begin(n); err != nil {
			e.Text = err.Error()
			return e, err
		}
		e, err = phase.Play(ctx, files.Project, n, o.again && !played, files.Out)
		if err = files.Finish(ctx, n, &e, err); err != nil || !o.through {
			return e, err
		}
	}
}

// openView opens the view that --progress, --json and --quiet select.
func openView(ctx context.Context, in *cli.Input) *view.View {
	progress := in.String("progress")
	if in.Bool("quiet") {
		progress = view.Quiet
	}
	return view.Open(ctx, view.Options{
		Progress: progress,
		JSON:     in.Bool("json"),
		Stdout:   in.Bare.Stdout,
		Stderr:   in.Bare.Stderr,
		Safe:     in.Safe,
	})
}

func runCommand() cli.Command {
	var o runOptions
	return cli.Command{
		Name:  "run",
		Group: cli.Running,
		Usage: "run the next pending phase; with --through all of them in order",
		Long: `Runs the first phase that has not passed, and then stops, so that you can review the
result and refine the specs. With --through it runs all phases.

--again and --dry-run apply to that phase, or to the last one if all have passed.`,
		Examples: "abl run\nabl run --dry-run\nabl run --through --json\n" +
			"abl run --through --junit junit.xml --summary summary.md",
		Flags: append(o.flags(), cli.Flag{Name: "through", To: &o.through, Usage: "do not stop between phases"}),
		Run: project.Opened(project.Continued(func(ctx context.Context, s *project.Project) error {
			if s.In.Bool("dry-run") {
				return o.dryRun(ctx, s)
			}
			return o.play(ctx, s, 0)
		})),
	}
}

// dryRun shows how the phase that play begins with would run.
func (o *runOptions) dryRun(ctx context.Context, s *project.Project) error {
	if o.through {
		return cli.Usagef("cannot combine --dry-run with --through: --dry-run shows one phase")
	}
	f, err := s.State()
	if err != nil {
		return err
	}
	n, _ := orchestrator.NextPhase(f, s.Specs())
	return phase.DryRun(ctx, s, n)
}
