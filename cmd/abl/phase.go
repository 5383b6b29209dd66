package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/view"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/orchestrator"
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
		Flags: append(runFlags(),
			cli.Flag{Name: "dry-run", Usage: "show prompts, mounts, networks, models and budget; start nothing"},
			cli.Flag{Name: "again", Usage: "open a new round of a stuck or unverified phase; replay what a passed one passed with on the source as it is now"},
			cli.Flag{Name: "junit", Value: "FILE", Usage: "write the contracts and their evidence there as JUnit XML"}),
		Run: func(ctx context.Context, in *cli.Input) error {
			n, err := phaseNumber(in.Args[0])
			if err != nil {
				return err
			}
			s, err := open(in)
			if err != nil {
				return err
			}
			if in.Bool("dry-run") {
				return s.dryRun(ctx, n)
			}
			if err := s.checkJUnit(n); err != nil {
				return err
			}
			return s.runPhase(ctx, n, in.Bool("again"))
		},
	}
}

// runPhase runs one phase in the view that the person chose.
func (s *session) runPhase(ctx context.Context, n int, again bool) error {
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	e, err := s.playPhase(ctx, n, again, v)
	e, err = s.published(ctx, n, e, err)
	return s.tellOutcome(v, e, err)
}

// published tells those who asked for it how phase n ended.
func (s *session) published(ctx context.Context, n int, e state.Event, ended error) (state.Event, error) {
	told := s.publish(ctx, n, ended)
	if ended == nil && told != nil {
		e.Text += ": " + told.Error()
	}
	return e, told
}

// view opens the view of a run that the person chose.
func (s *session) view(ctx context.Context) (*view.View, error) {
	v, err := view.Open(ctx, view.Options{
		Progress: s.in.String("progress"), JSON: s.in.Bool("json"), Stdout: s.in.Bare.Stdout, Stderr: s.in.Bare.Stderr, Safe: s.in.Safe, Getenv: os.Getenv,
	})
	if err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	return v, nil
}

// playPhase plays phase n to where it rests. What it returns is the run's last
// event, unless another phase follows.
func (s *session) playPhase(ctx context.Context, n int, again bool, out state.Sink) (state.Event, error) {
	out = marked{out, s}
	f, a, unlock, err := s.takeUp(ctx, n, again, out)
	result, why := orchestrator.Result{}, ""
	switch {
	case err != nil:
	case !a.Go:
		result, why = orchestrator.Result{Status: a.Open.Status, Phase: a.Open}, a.Why
		err = s.tidyAtRest(ctx, f, out)
		unlock()
	default:
		specs := s.keepIDs(n)
		if a, err = admit(f, specs, n, again); err == nil { // what is run is what was admitted
			f.Phases[fmt.Sprint(n)] = &a.Open
			result, err = s.playIn(ctx, n, f, specs, out)
		}
		unlock()
	}
	if err == nil {
		err = s.verdictError(n, result)
	} else {
		why = err.Error()
	}
	err = exit.Because(ctx, err)
	s.tellFailed(out, n, result)
	return outcomeOf(n, result, why, err), err
}

// takeUp looks whether phase n may run, and takes the project for this process.
func (s *session) takeUp(ctx context.Context, n int, again bool, out state.Sink) (f *state.File, a orchestrator.Admission, unlock func(), err error) {
	if err := s.preflight(ctx, s.specs(), n, again); err != nil {
		return nil, a, nil, err
	}
	if why := s.weak(); why != "" {
		out.Emit(state.Event{Time: time.Now().UTC(), Kind: state.Note, Phase: n, Text: "weak network, as --" + cli.WeakFlag + " allows: " + why})
	}
	if unlock, err = s.lock(); err != nil {
		return nil, a, nil, err
	}
	failpoint.Here("lock.taken")
	if f, a, err = s.admission(s.specs(), n, again); err != nil {
		unlock()
	}
	return f, a, unlock, err
}

// admission reads where the project stands and whether phase n may run.
func (s *session) admission(specs spec.Set, n int, again bool) (*state.File, orchestrator.Admission, error) {
	f, err := s.state()
	if err != nil {
		return nil, orchestrator.Admission{}, err
	}
	a, err := admit(f, specs, n, again)
	return f, a, err
}

// playIn runs the loop in an environment, and closes that whatever happens.
func (s *session) playIn(ctx context.Context, n int, f *state.File, specs spec.Set, out state.Sink) (orchestrator.Result, error) {
	s.remark(n, specs, out)
	if err := s.announce(n, f, out); err != nil {
		return orchestrator.Result{}, err
	}
	b, err := s.ledger(out)
	if err != nil {
		return orchestrator.Result{}, err
	}
	r, err := s.begin(ctx, n, f, specs, out, withKeys)
	if err != nil {
		return orchestrator.Result{}, err
	}
	r.book = b
	result, err := r.loop().Run(ctx)
	r.account.TellSpent()
	return result, exit.OnEngine(errors.Join(err, r.end(ctx, err)))
}
