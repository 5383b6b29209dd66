package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/orchestrator/report"
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
		Run: phase.Opened(phase.Restored(runPhase)),
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
	if err := checkJUnit(s, n); err != nil {
		return err
	}
	v := openView(ctx, s.In)
	defer v.Close()
	e, err := s.Play(ctx, n, in.Bool("again"), v)
	err = tell(ctx, s, n, &e, err)
	return s.TellOutcome(v, e, err)
}

// openView opens the view of a run that the person chose.
func openView(ctx context.Context, in *cli.Input) *view.View {
	return view.Open(ctx, view.Options{
		Progress: in.String("progress"), JSON: in.Bool("json"), Stdout: in.Bare.Stdout, Stderr: in.Bare.Stderr, Safe: in.Safe,
	})
}

func runCommand() cli.Command {
	return cli.Command{
		Name: "run", Group: cli.Running, Usage: "run the next pending phase; with --through all of them in order",
		Long: `Runs the first phase that has not passed, and stops after it for your audit:
refine the specs, or approve by going on. With --through it goes on to the last.`,
		Examples: "abl run\nabl run --through --json",
		Flags: append(phase.Flags(),
			cli.Flag{Name: "through", Usage: "do not stop between phases"}),
		Run: phase.Opened(phase.Restored(func(ctx context.Context, s *phase.Project) error {
			return runPending(ctx, s, s.In.Bool("through"))
		})),
	}
}

// runPending plays phases from the first that has not passed.
func runPending(ctx context.Context, s *phase.Project, through bool) error {
	v := openView(ctx, s.In)
	defer v.Close()
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
			e, err = s.Play(ctx, max(1, len(specs.Numbers())), false, v)
			return s.TellOutcome(v, e, err)
		case played:
			v.Emit(state.Event{Kind: state.Note, Phase: e.Phase, Text: fmt.Sprintf("phase %d: %s", e.Phase, e.Text)})
		}
		e, err = s.Play(ctx, n, false, v)
		if err = tell(ctx, s, n, &e, err); err != nil || !through {
			return s.TellOutcome(v, e, err)
		}
	}
}

// summaryVar is where GitHub wants what a step has to say.
const summaryVar = "GITHUB_STEP_SUMMARY"

// checkJUnit sees to it, before anything is spent, that the file can be written,
// and lets it say that the run did not end: an older file must not pass for this
// run's, should abl be killed.
func checkJUnit(s *phase.Project, n int) error {
	path := s.In.String("junit")
	if path == "" {
		return nil
	}
	dir, err := state.Real(filepath.Dir(path))
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("cannot write the JUnit file: %w", err), "make its directory first")
	}
	for _, work := range []string{s.Paths.Src, s.Paths.Tests} {
		if rel, err := filepath.Rel(work, dir); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return exit.With(exit.Usage, fmt.Errorf("cannot write the JUnit file %q: %s is a role's directory", path, s.Paths.Rel(work)), "name a file elsewhere, such as .abl/reports/junit.xml")
		}
	}
	if fi, err := os.Lstat(path); err == nil && !fi.Mode().IsRegular() {
		return exit.With(exit.Usage, fmt.Errorf("cannot write the JUnit file: %q is there and no plain file", path), "name another file")
	}
	if err := writeJUnit(path, report.Run{Phase: n, Ended: &report.Ended{Code: exit.Bug, What: "abl was stopped before it could say how the run ended"}}); err != nil {
		return exit.With(exit.Usage, err, "name a file that can be written")
	}
	return nil
}

func writeJUnit(path string, r report.Run) error {
	data, err := report.JUnit(r)
	if err != nil {
		return err
	}
	if err := hostfs.Write(path, data, 0o644); err != nil {
		return fmt.Errorf("cannot write the JUnit file: %w", err)
	}
	return nil
}

// tell publishes where that is wanted, and tells those who asked for it how a run of phase n
// ended. It never changes how that was, but for a run that went well and cannot be published
// or told of: e says so then.
func tell(ctx context.Context, s *phase.Project, n int, e *state.Event, ended error) error {
	if ended == nil && s.Conf.Publish == "auto" {
		if ended = autoPublish(ctx, s); ended != nil {
			e.Text += ": " + ended.Error()
		}
	}
	file, page := s.In.String("junit"), os.Getenv(summaryVar)
	if file == "" && page == "" {
		return ended
	}
	r := runOf(ctx, s, n, ended)
	var err error
	if file != "" {
		err = writeJUnit(file, r)
	}
	if page != "" {
		if perr := appendTo(page, report.Markdown(r)); perr != nil {
			s.In.Warn(fmt.Sprintf("cannot write to %s: %v", summaryVar, perr))
		}
	}
	if ended == nil && err != nil {
		e.Text += ": " + err.Error()
		return exit.With(exit.Environment, err, "the phase itself is done: abl report shows it")
	}
	if err != nil {
		s.In.Warn(err)
	}
	return ended
}

// runOf is what there is to tell of a run of phase n. What stands there of an
// earlier round is not told with a run that came to no verdict.
func runOf(ctx context.Context, s *phase.Project, n int, ended error) report.Run {
	err := exit.Because(ctx, ended)
	code := exit.Code(err)
	r, terr := s.Told(context.WithoutCancel(ctx), n)
	if terr != nil {
		s.In.Warn(terr)
	}
	f, serr := s.State()
	if serr != nil {
		f = &state.File{}
	}
	if code != exit.Passed && code != exit.Stuck && code != exit.Unverified {
		r.Ended = &report.Ended{Code: code, What: s.In.Safe.Line(err.Error())}
		if r.Record != nil && f.Phase(n).Round != r.Record.Round {
			r.Record = nil
		}
	}
	if r.Record == nil && r.Ended == nil {
		r.Ended = &report.Ended{Code: code, What: "no audit record of it is kept"}
	}
	return r
}

// appendTo adds to a file that the person's CI names.
func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	return errors.Join(err, f.Close())
}
