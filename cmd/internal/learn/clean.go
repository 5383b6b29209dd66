package learn

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/orchestrator/learner"
	"abl/roles/environment"
)

func cleanCommand() cli.Command {
	return cli.Command{
		Name: "clean", Group: cli.Upkeep, Usage: "remove what sessions left running on the engine",
		Long: `Removes containers, volumes and networks that carry the label of a project in
solutions/. A project at which a run is at work is left as it is. What was made
and learned is never touched.`,
		Run: runClean,
	}
}

func runClean(ctx context.Context, in *cli.Input) error {
	here, err := state.Real(".")
	if err != nil {
		return fmt.Errorf("cannot work here: %w", err)
	}
	eng, _, err := environment.Connect(ctx)
	if err != nil {
		return settle(exit.OnEngine(err))
	}
	defer eng.Close()
	removed, err := Clean(ctx, in, here, eng)
	if err == nil && removed == 0 {
		fmt.Fprintln(in.Stdout, "nothing was left")
	}
	return settle(exit.OnEngine(err))
}

// Sweeper removes what carries labels.
type Sweeper interface {
	Sweep(ctx context.Context, labels map[string]string, spare func(sandbox.Status) bool) (removed []string, err error)
}

// Clean removes what the projects in the solutions of a directory left, and says what
// and how much.
func Clean(ctx context.Context, in *cli.Input, here string, eng Sweeper) (removed int, err error) {
	homes, err := learner.Projects(filepath.Join(here, learner.Folder))
	if err != nil {
		return 0, fmt.Errorf("cannot look for projects: %w", err)
	}
	var all []error
	for _, h := range homes {
		names, err := cleanOne(ctx, here, h, eng)
		for _, name := range names {
			fmt.Fprintln(in.Stdout, "removed", name)
		}
		switch removed += len(names); {
		case errors.Is(err, hostfs.ErrHeld):
			in.Say("%s is left as it is: a run is at work there", h.Rel(h.Root))
		case err != nil:
			all = append(all, fmt.Errorf("%s: %w", h.Rel(h.Root), err))
		}
	}
	return removed, errors.Join(all...)
}

func cleanOne(ctx context.Context, here string, h learner.Home, eng Sweeper) (removed []string, err error) {
	free, err := hostfs.Lock(filepath.Join(h.Private(), "lock"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, free()) }()
	s, err := learner.Load(h)
	if err == nil {
		err = h.Abandon(s)
	}
	if err != nil {
		return nil, err
	}
	removed, err = eng.Sweep(ctx, map[string]string{sandbox.LabelProject: s.ID}, nil)
	rel, rerr := filepath.Rel(here, h.Root)
	return removed, errors.Join(err, rerr, hostfs.SweepTemps(h.Private()), hostfs.SweepTemps(h.Root), hostfs.HandOver(here, rel))
}
