package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/commit"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/learn"
	"abl/cmd/internal/phase"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/roles/environment"
)

func cleanCommand() cli.Command {
	return cli.Command{
		Name: "clean", Group: cli.Upkeep, Usage: "remove what this project left on the engine",
		Long: `Removes containers, volumes and networks that have both this project's label and
a name that begins with abl- and its id, and those of solutions/ here (abl learn);
gives lent files back, and puts back what a killed code-commit has changed by half.
Source, tests, specs, logs and the ledger are never touched otherwise.
--orphans also removes what other projects of this machine left, if their state is gone
(git clean -ffdx, say), nothing of theirs runs, and all deadlines passed a week ago.`,
		Flags: []cli.Flag{{Name: "orphans", Usage: "also remove what projects left whose state is gone"}},
		Run:   phase.Looking(runClean),
	}
}

func runClean(ctx context.Context, s *phase.Project) error {
	in := s.In
	if _, err := s.State(); err != nil {
		return err // before the lock: nothing is touched
	}
	unlock, err := s.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	f, err := s.State()
	if err != nil {
		return err
	}
	if err := commit.CleanFiles(in, s.Paths.Root, filepath.Join(s.Paths.Root, "logs")); err != nil {
		return err
	}
	eng, _, err := environment.Connect(ctx)
	if err != nil { // and so it cannot be asked to end what may still run
		return errors.Join(exit.OnEngine(err), s.GiveBack(f, state.Discard))
	}
	defer eng.Close()
	environment.UseKiller(eng, func(text string) { fmt.Fprintln(in.Stderr, text) })
	if err := s.Abandon(f); err != nil {
		return err
	}
	removed, err := eng.Sweep(ctx, map[string]string{sandbox.LabelProject: f.Project}, nil)
	more, cerr := commit.Sweep(ctx, eng, s.Paths.Root)
	removed, err = append(removed, more...), errors.Join(err, cerr)
	if in.Bool("orphans") {
		orphans, oerr := environment.SweepOrphans(ctx, eng)
		removed, err = append(removed, orphans...), errors.Join(err, oerr)
	}
	for _, name := range removed {
		fmt.Fprintln(in.Stdout, "removed", name)
	}
	if err != nil { // what was not removed may still write to what is lent
		return exit.OnEngine(err)
	}
	learned, err := learn.Clean(ctx, in, s.Paths.Root, eng)
	if err != nil {
		return exit.OnEngine(err)
	}
	if len(removed)+learned == 0 {
		fmt.Fprintln(in.Stdout, "nothing was left")
	}
	return errors.Join(s.KeepAtRest(f), s.GiveBack(f, state.Discard))
}
