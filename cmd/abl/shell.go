package main

import (
	"context"
	"errors"
	"slices"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/view"
	"abl/roles"
)

func shellCommand() cli.Command {
	return cli.Command{
		Name: "shell", Group: cli.Running, Args: "builder|verifier", MinArgs: 1, MaxArgs: 1, Values: []string{"builder", "verifier"},
		Usage: "open a role's container yourself, without a key",
		Long: `Opens a shell in a container that sees and reaches just what the role's does:
its workspace, the specs, abl-cmd. The Verifier's has a freshly started app
beside it. The agent's key is not in it.`,
		Flags: slices.Concat([]cli.Flag{{Name: "phase", Value: "N", Usage: "as in this phase; otherwise the one that comes next"}}, cli.EnvironmentFlags()),
		Run:   phase.Opened(runShell),
	}
}

func runShell(ctx context.Context, s *phase.Project) (err error) {
	in, role, n := s.In, roles.Builder, 0
	if in.Args[0] == roles.Verifier.Name {
		role = roles.Verifier
	}
	tty := view.Terminal(in.Stdin)
	if tty == nil {
		return exit.With(exit.Usage, errors.New("cannot open a shell: standard input is not a terminal"), "")
	}
	if in.Set("phase") {
		if n, err = phase.Number(in.String("phase")); err != nil {
			return err
		}
	}
	unlock, err := s.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	v := plainView(ctx, in)
	defer v.Close()
	return s.Shell(ctx, role, n, tty, v)
}

// plainView shows what goes on while a person works themselves.
func plainView(ctx context.Context, in *cli.Input) *view.View {
	return view.Open(ctx, view.Options{Progress: view.Plain, Stderr: in.Bare.Stderr, Safe: in.Safe})
}
