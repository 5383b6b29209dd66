package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"

	"abl/cmd/internal/exit"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Shell opens the environment as for a call of phase n, with 0 of the one that comes
// next, and lets the person at tty act in it.
func (s *Project) Shell(ctx context.Context, role roles.Role, n int, tty *os.File, out state.Sink) error {
	f, err := s.State()
	if err != nil {
		return err
	}
	r := &Run{Project: s, file: f, specs: s.Specs(), out: out}
	r.phase = cmp.Or(n, orchestrator.NextPhase(f, r.specs), len(r.specs.Numbers()), 1)
	a, err := orchestrator.Admit(f, r.specs, r.phase, true)
	if err != nil {
		return err
	}
	p := a.Open
	p.Iteration, p.Step, p.Attempt = max(p.Iteration, 1), max(p.Step, 1), max(p.Attempt, 1)
	return r.beside(ctx, "a shell", func() error { return r.openShell(ctx, role, p, tty) })
}

// beside opens the environment for what a person wants to look at, and is nothing that a phase
// does. It refuses that beside a call that is still running, and does not end such a call.
func (r *Run) beside(ctx context.Context, what string, do func() error) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	key, err := r.env.Live(ctx)
	switch {
	case err == nil && key != "":
		hint := fmt.Sprintf("abl phase %d attaches to it, abl clean ends it", r.phase)
		err = exit.With(exit.Busy, fmt.Errorf("cannot open %s: call %s is still running", what, key), hint)
	case err == nil:
		err = do()
	}
	return errors.Join(err, r.end(context.WithoutCancel(ctx), err))
}

func (r *Run) openShell(ctx context.Context, role roles.Role, p state.Phase, tty *os.File) error {
	key := "shell-" + role.Name
	if err := os.MkdirAll(r.Paths.Call(key), 0o755); err != nil {
		return err
	}
	var up roles.Up
	var err error
	if role.App {
		up, err = r.app.Up(ctx, key)
	} else {
		up.Failed, err = r.app.Prepared(ctx, key, true)
	}
	if err != nil {
		return err
	}
	if up.Failed != "" {
		r.In.Warn("the app does not start: " + up.Failed)
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
func (r *Run) attach(ctx context.Context, name string, tty *os.File) error {
	old, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	defer term.Restore(int(tty.Fd()), old)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	_, err = r.env.Engine.Attach(ctx, name, sandbox.Terminal{
		In: tty, Out: r.In.Bare.Stdout, Resized: resized,
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
