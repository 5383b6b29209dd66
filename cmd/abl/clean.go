package main

import (
	"context"
	"errors"
	"fmt"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/commit"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/learn"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/environment"
)

func cleanCommand() cli.Command {
	return cli.Command{
		Name: "clean", Group: cli.Upkeep, Usage: "remove what this project left on the engine",
		Long: `Removes containers, volumes and networks that carry this project's label, and of
those in solutions/ here (abl learn); gives lent files back, and puts back what a
killed code-commit has changed by half. Source, tests, specs, logs and the ledger
are never touched otherwise.`,
		Run: runClean,
	}
}

func runClean(ctx context.Context, in *cli.Input) error {
	s, err := open(in)
	if err != nil {
		return err
	}
	if _, err := s.state(); err != nil {
		return err // before the lock: nothing is touched
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	f, err := s.state()
	if err != nil {
		return err
	}
	if err := commit.CleanFiles(in, s.project.Root); err != nil {
		return err
	}
	eng, _, err := environment.Connect(ctx)
	if err != nil { // and so it cannot be asked to end what may still run
		return errors.Join(exit.OnEngine(err), s.giveBack(f, state.Discard))
	}
	defer eng.Close()
	if err := s.abandon(f); err != nil {
		return err
	}
	removed, err := eng.Sweep(ctx, map[string]string{sandbox.LabelProject: f.Project}, nil)
	more, cerr := commit.Sweep(ctx, eng, s.project.Root)
	removed, err = append(removed, more...), errors.Join(err, cerr)
	for _, name := range removed {
		fmt.Fprintln(in.Stdout, "removed", name)
	}
	if err != nil { // what was not removed may still write to what is lent
		return exit.OnEngine(err)
	}
	learned, err := learn.Clean(ctx, in, s.project.Root, eng)
	if err != nil {
		return exit.OnEngine(err)
	}
	if len(removed)+learned == 0 {
		fmt.Fprintln(in.Stdout, "nothing was left")
	}
	return errors.Join(s.keepAtRest(f), s.giveBack(f, state.Discard))
}

// keepAtRest makes safe what the calls have printed that nobody may take up again.
func (s *session) keepAtRest(f *state.File) error {
	for phase := range f.Phases {
		if key := callAtRest(f, phase); key != "" {
			if err := (roles.Record{Dir: s.project.Call(key)}).Keep(s.in.Safe); err != nil {
				return err
			}
		}
	}
	return nil
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
		if err := rec.Stop(outcome.Interrupted); err != nil {
			return err
		}
	}
	return nil
}
