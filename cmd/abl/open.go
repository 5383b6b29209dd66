package main

import (
	"context"
	"slices"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/phase"
	"abl/orchestrator"
)

func openCommand() cli.Command {
	return cli.Command{
		Name: "open", Group: cli.Looking, Args: "[N]", MaxArgs: 1, Usage: "run what was built, for you to use, until Ctrl-C",
		Long: `Starts the app on a throw-away copy of what phase N has come to, with its services,
and lets you come to it at 127.0.0.1. It has no more reach than in a phase, and what
it stores is gone when you end it by Ctrl-C. Without N it is the last phase before the
first that has not passed.`,
		Examples: "abl open\nabl open 1 --port 8080",
		Flags:    slices.Concat([]cli.Flag{{Name: "port", Value: "N", Usage: "of this machine; otherwise the app's own"}}, cli.EnvironmentFlags()),
		Run:      phase.Opened(phase.Restored(runOpen)),
	}
}

func runOpen(ctx context.Context, s *phase.Project) error {
	port, err := positive(s.In, "port")
	if err != nil {
		return err
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
	n := orchestrator.NextPhase(f, s.Specs()) - 1
	if n < 0 { // all have passed
		n = len(s.Specs().Numbers())
	}
	n = max(n, 1)
	if len(s.In.Args) > 0 {
		if n, err = phase.Number(s.In.Args[0]); err != nil {
			return err
		}
	}
	v := plainView(ctx, s.In)
	defer v.Close()
	return s.OpenApp(ctx, n, port, v, func(url string) { s.In.Say("phase %d answers at %s until Ctrl-C", n, url) })
}
