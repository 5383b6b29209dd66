package look

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/phase"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/internal/git"
	"abl/orchestrator"
	"abl/roles"
)

// openOptions are the flags of abl open.
type openOptions struct {
	port int
	diff bool
}

// OpenCommand returns `abl open`.
func OpenCommand() cli.Command {
	var o openOptions
	return cli.Command{
		Name:  "open",
		Group: cli.Inspecting,
		Args:  "[N]",
		Usage: "run the app that a phase built, until Ctrl-C",
		Long: `Starts the app from a temporary copy of phase N's source, with its services, and makes
it available at 127.0.0.1. It can reach no more than in a phase, and Ctrl-C ends it and
deletes its data. Without N, abl starts the app of the last phase before
the first one that has not passed.

With --diff it starts nothing: it prints the phase's changes to the source as a unified
diff for git apply.`,
		Examples: "abl open\nabl open 1 --port 8080\nabl open 2 --diff | less -R",
		Flags: slices.Concat([]cli.Flag{
			{Name: "port", To: &o.port, Value: "N", Usage: "port on this machine (default: the app's port)"},
			{Name: "diff", To: &o.diff, Usage: "print the phase's changes and start nothing"},
		}, cli.EnvironmentFlags()),
		Run: project.Opened(project.Restored(o.run)),
	}
}

func (o *openOptions) run(ctx context.Context, s *project.Project) error {
	f, err := s.State()
	if err != nil {
		return err
	}
	n, pending := orchestrator.NextPhase(f, s.Specs())
	if pending {
		n = max(n-1, 1)
	}
	if len(s.In.Args) > 0 {
		if n, err = project.Number(s.In.Args[0]); err != nil {
			return err
		}
	}
	if !o.diff {
		if err := phase.Openable(s); err != nil {
			return err
		}
	}
	unlock, err := s.Lock() // --diff too: opening the source completes an interrupted merge
	if err != nil {
		return err
	}
	defer unlock()
	if o.diff {
		colours := view.Coloured(s.In.Bare.Stdout)
		return s.Changes(ctx, n, func(c git.Change) error {
			return showChange(s.In, s.In.Result, c, colours)
		})
	}
	v := plainView(ctx, s.In)
	defer v.Close()
	return phase.OpenApp(ctx, s, n, o.port, v, func(url string) { s.In.Say("phase %d runs at %s until Ctrl-C", n, url) })
}

// showChange prints a file's note and its diff, redacted.
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

// showDiff prints the diff of a text file, redacted. It prints nothing for a file without text.
func showDiff(in *cli.Input, w io.Writer, path string, text git.Texts, colours bool) error {
	if text.Old == nil && text.New == nil {
		return nil
	}
	for _, side := range []*string{text.Old, text.New} {
		if side != nil {
			*side = in.Safe.Whole(*side) // no line is shortened: the change may be at its end
		}
	}
	return view.Diff(w, in.Safe.Line(path), text.Old, text.New, colours)
}

// ShellCommand returns `abl shell`.
func ShellCommand() cli.Command {
	var n int
	return cli.Command{
		Name:   "shell",
		Group:  cli.Running,
		Args:   "builder|verifier",
		Values: []string{"builder", "verifier"},
		Usage:  "open a shell in a role's container, without a key",
		Long: `Opens a shell in a container that can see and reach exactly what the role's container
can: its workspace, the specs, abl-cmd. For the verifier, abl also starts the app. The
container has no key.`,
		Flags: slices.Concat([]cli.Flag{{
			Name:  "phase",
			To:    &n,
			Value: "N",
			Usage: "as in this phase (default: the next one)",
		}}, cli.EnvironmentFlags()),
		Run: project.Opened(func(ctx context.Context, s *project.Project) error {
			return runShell(ctx, s, n)
		}),
	}
}

// runShell opens a shell as in phase n, or for 0 the next one.
func runShell(ctx context.Context, s *project.Project, n int) error {
	in, role := s.In, roles.Builder
	if in.Args[0] == roles.Verifier.Name {
		role = roles.Verifier
	}
	tty := view.Terminal(in.Stdin)
	if tty == nil {
		return cli.Usagef("cannot open a shell: standard input is not a terminal")
	}
	unlock, err := s.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	v := plainView(ctx, in)
	defer v.Close()
	return phase.Shell(ctx, s, role, n, tty, v)
}

// plainView shows progress as plain lines while the user works in a shell or in the app.
func plainView(ctx context.Context, in *cli.Input) *view.View {
	return view.Open(ctx, view.Options{Progress: view.Plain, Stderr: in.Bare.Stderr, Safe: in.Safe})
}
