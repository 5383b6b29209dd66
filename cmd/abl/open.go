package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/view"
	"abl/internal/git"
	"abl/orchestrator"
	"abl/roles"
)

func openCommand() cli.Command {
	return cli.Command{
		Name: "open", Group: cli.Looking, Args: "[N]", Usage: "run what was built, for you to use, until Ctrl-C",
		Long: `Starts the app on a throw-away copy of what phase N has come to, with its services,
and lets you come to it at 127.0.0.1. It has no more reach than in a phase, and what
it stores is gone when you end it by Ctrl-C. Without N it is the last phase before the
first that has not passed. With --diff nothing is started: what the phase changed in
the source is printed, as a unified diff that git apply takes.`,
		Examples: "abl open\nabl open 1 --port 8080\nabl open 2 --diff | less -R",
		Flags: slices.Concat([]cli.Flag{
			{Name: "port", Value: "N", Usage: "of this machine; otherwise the app's own"},
			{Name: "diff", Usage: "print what the phase changed, and start nothing"},
		}, cli.EnvironmentFlags()),
		Run: phase.Opened(phase.Restored(runOpen)),
	}
}

func runOpen(ctx context.Context, s *phase.Project) error {
	port, err := positive(s.In, "port")
	if err != nil {
		return err
	}
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
	if !s.In.Bool("diff") {
		if err := phase.Openable(s); err != nil {
			return err
		}
	}
	unlock, err := s.Lock() // the diff, too: a merge that was cut short ends when the source is opened
	if err != nil {
		return err
	}
	defer unlock()
	if s.In.Bool("diff") {
		colours := view.Coloured(s.In.Bare.Stdout)
		return phase.Changes(ctx, s, n, func(c git.Change) error {
			return showChange(s.In, s.In.Result, c, colours)
		})
	}
	v := plainView(ctx, s.In)
	defer v.Close()
	return s.OpenApp(ctx, n, port, v, func(url string) { s.In.Say("phase %d answers at %s until Ctrl-C", n, url) })
}

// showChange prints what changed of a file, made safe to show.
func showChange(in *cli.Input, w io.Writer, c git.Change, colours bool) error {
	text, err := c.Texts()
	if err != nil {
		return err
	}
	if note := cmp.Or(text.Note, c.Note); note != "" {
		if _, err := fmt.Fprintf(w, "%s: %s\n", in.Safe.Line(c.Path), note); err != nil {
			return err
		}
	}
	return showDiff(in, w, c.Path, text, colours)
}

// showDiff prints the diff of a file that has text, made safe to show.
func showDiff(in *cli.Input, w io.Writer, path string, text git.Texts, colours bool) error {
	if text.Old == nil && text.New == nil {
		return nil
	}
	for _, side := range []*string{text.Old, text.New} {
		if side != nil {
			*side = in.Safe.Whole(*side) // a change far along a line is one, too
		}
	}
	return view.Diff(w, in.Safe.Line(path), text.Old, text.New, colours)
}

func shellCommand() cli.Command {
	return cli.Command{
		Name: "shell", Group: cli.Running, Args: "builder|verifier", Values: []string{"builder", "verifier"},
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
		return cli.Usagef("cannot open a shell: standard input is not a terminal")
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
