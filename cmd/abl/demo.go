package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/examples"
	"abl/internal/hostfs"
	"abl/roles/environment"
)

func demoCommand() cli.Command {
	return cli.Command{
		Name: "demo", Group: cli.Starting, Args: "[DIR]", MaxArgs: 1, Usage: "watch a whole phase, offline and without a key",
		Long: `Copies a small project, a link shortener in two phases, to DIR (a new temporary
directory unless given) and runs its first phase. Containers, networks,
repositories and tests are real; only the model is a script. The first Verifier
refutes the app, the Builder mends it, the second Verifier passes it.`,
		Examples: "abl demo\nabl demo ./shortener --through",
		Flags:    append(phase.Flags(), cli.Flag{Name: "through", Usage: "run the second phase too"}),
		Run:      runDemo,
	}
}

func runDemo(ctx context.Context, in *cli.Input) error {
	if err := demoFits(in.Args); err != nil {
		return err
	}
	eng, _, err := environment.Connect(ctx)
	if err != nil {
		return exit.OnEngine(err) // before anything is written
	}
	defer eng.Close()
	dir, err := writeDemo(in.Args)
	if err != nil {
		return err
	}
	in.Say("the demo project is in %s", dir)
	s, err := phase.OpenAt(in, dir)
	if err != nil {
		return err
	}
	if err := runPending(ctx, s, in.Bool("through")); err != nil {
		return err
	}
	if !in.Bool("json") {
		_, err = fmt.Fprintf(in.Stdout, "\nthe project is in %s: abl report 1 says there what the verdict stands on, abl run goes on\n", dir)
	}
	return err
}

// demoFits wants the directory to be empty or not there.
func demoFits(args []string) error {
	if len(args) == 0 {
		return nil
	}
	entries, err := os.ReadDir(args[0])
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return exit.With(exit.Usage, fmt.Errorf("cannot write the demo: %w", err), "name a directory that does not exist yet")
	case len(entries) > 0:
		return exit.With(exit.Usage, fmt.Errorf("cannot write the demo: %q is not empty", args[0]), "name a directory that does not exist yet")
	}
	return nil
}

// writeDemo puts the demo into the directory, a new temporary one unless given.
func writeDemo(args []string) (dir string, err error) {
	if len(args) == 0 {
		dir, err = os.MkdirTemp("", "abl-demo-")
	} else if dir, err = filepath.Abs(args[0]); err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = errors.Join(os.CopyFS(dir, examples.Demo()), hostfs.HandOver(dir, "."))
	}
	if err != nil {
		return "", fmt.Errorf("cannot write the demo: %w", err)
	}
	return dir, nil
}
