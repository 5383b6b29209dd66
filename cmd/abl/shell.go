package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/view"
	"abl/internal/sandbox/docker"
	"abl/internal/state"
	"abl/roles"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

func shellCommand() cli.Command {
	return cli.Command{
		Name: "shell", Group: cli.Running, Args: "builder|verifier", MinArgs: 1, MaxArgs: 1, Values: []string{"builder", "verifier"},
		Usage: "open a role's container yourself, without a key",
		Long: `Opens a shell in a container that sees and reaches just what the role's does:
its workspace, the specs, abl-cmd. The Verifier's has a freshly started app
beside it. The agent's key is not in it.`,
		Flags: slices.Concat([]cli.Flag{{Name: "phase", Value: "N", Usage: "as in this phase; otherwise the one that comes next"}}, cli.EnvironmentFlags()),
		Run:   runShell,
	}
}

func runShell(ctx context.Context, in *cli.Input) error {
	role := roles.Builder
	if in.Args[0] == roles.Verifier.Name {
		role = roles.Verifier
	} else if in.Args[0] != roles.Builder.Name {
		return exit.With(exit.Usage, fmt.Errorf("cannot open a shell as %q", in.Args[0]), "it is builder or verifier")
	}
	tty, ok := in.Stdin.(*os.File)
	if !ok || !term.IsTerminal(int(tty.Fd())) {
		return exit.With(exit.Usage, errors.New("cannot open a shell: standard input is not a terminal"), "")
	}
	s, err := open(in)
	if err != nil {
		return err
	}
	unlock, err := s.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return s.shell(ctx, role, tty)
}

// shell opens the environment as for a phase and lets the person act on it.
func (s *session) shell(ctx context.Context, role roles.Role, tty *os.File) error {
	f, err := s.state()
	if err != nil {
		return err
	}
	n, p, err := s.shellPhase(f)
	if err != nil {
		return err
	}
	v, err := view.Open(ctx, view.Options{
		Progress: view.Plain, Stdout: s.in.Bare.Stdout, Stderr: s.in.Bare.Stderr, Safe: s.in.Safe, Getenv: os.Getenv,
	})
	if err != nil {
		return err
	}
	defer v.Close()
	r, err := s.begin(ctx, n, f, s.specs(), v, withoutKeys)
	if err != nil {
		return err
	}
	key, err := r.env.Live(ctx)
	if err == nil && key != "" {
		err = exit.With(exit.Busy, fmt.Errorf("cannot open a shell: call %s is still running", key), fmt.Sprintf("abl phase %d attaches to it, abl clean ends it", n))
	}
	if err == nil {
		err = r.openShell(ctx, role, p, tty)
	}
	return errors.Join(err, r.end(context.WithoutCancel(ctx), err)) // a call that was found is not ended by leaving the shell
}

// shellPhase is the phase whose view of things the shell has.
func (s *session) shellPhase(f *state.File) (int, state.Phase, error) {
	n, err := 1, error(nil)
	if s.in.Set("phase") {
		if n, err = phaseNumber(s.in.String("phase")); err != nil {
			return 0, state.Phase{}, err
		}
	} else if specs := s.specs(); pending(f, specs) > 0 {
		n = pending(f, specs)
	} else if last := len(specs.Numbers()); last > 0 {
		n = last
	}
	a, err := admit(f, s.specs(), n, true)
	p := a.Open
	p.Iteration, p.Step, p.Attempt = max(p.Iteration, 1), max(p.Step, 1), max(p.Attempt, 1)
	return n, p, err
}

func (r *phaseRun) openShell(ctx context.Context, role roles.Role, p state.Phase, tty *os.File) error {
	var up roles.Up
	key := "shell-" + role.Name
	if role.App {
		if err := os.MkdirAll(r.project.Call(key), 0o755); err != nil {
			return err
		}
		var err error
		if up, err = r.app.Up(ctx, key); err != nil {
			return err
		}
		if up.Failed != "" {
			r.in.Warn("the app did not start: " + up.Failed)
		}
	}
	j, err := r.jobs.Job(ctx, role, p, up)
	if err != nil {
		return err
	}
	j.Call.ID = key
	j.Prompt = func() (string, error) { return "You are a person.\n", nil }
	name, err := r.runner.Shell(ctx, j)
	if err != nil {
		return err
	}
	return r.attach(ctx, name, tty)
}

// attach joins the person's terminal with the box, raw, and gives it back as it was.
func (r *phaseRun) attach(ctx context.Context, name string, tty *os.File) error {
	old, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	defer term.Restore(int(tty.Fd()), old)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGWINCH)
	defer signal.Stop(signals)
	resized := make(chan struct{}, 1)
	go func() {
		for range signals {
			select {
			case resized <- struct{}{}:
			default:
			}
		}
	}()
	_, err = r.env.Engine.Attach(ctx, name, docker.Terminal{
		In: tty, Out: r.in.Bare.Stdout, Resized: resized,
		Size: func() (int, int) {
			w, h, err := term.GetSize(int(tty.Fd()))
			if err != nil {
				return 80, 24
			}
			return w, h
		},
	})
	return err
}
