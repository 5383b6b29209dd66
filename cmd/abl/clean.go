package main

import (
	"context"
	"fmt"

	"abl/cmd/internal/cli"
	"abl/orchestrator/event"
	"abl/orchestrator/sandbox"
)

func cleanCommand() cli.Command {
	return cli.Command{
		Name: "clean", Group: cli.Upkeep, Usage: "remove what this project left on the engine",
		Long: `Removes containers, volumes and networks that carry this project's label, and
gives lent files back. Source, tests, specs, logs and the ledger are never touched.`,
		Run: func(ctx context.Context, in *cli.Input) error {
			s, err := open(in)
			if err != nil {
				return err
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
			eng, _, err := connect(ctx)
			if err != nil {
				return onEngine(err)
			}
			defer eng.Close()
			if err := s.abandon(f); err != nil {
				return err
			}
			removed, err := eng.Sweep(ctx, map[string]string{sandbox.LabelProject: f.Project}, nil)
			for _, name := range removed {
				fmt.Fprintln(in.Stdout, "removed", name)
			}
			if err != nil {
				return onEngine(err) // a box that is left might still write to what would be given back
			}
			if len(removed) == 0 {
				fmt.Fprintln(in.Stdout, "nothing was left")
			}
			return s.giveBack(f, event.Discard)
		},
	}
}
