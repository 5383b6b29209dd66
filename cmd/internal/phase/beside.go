package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"

	"abl/cmd/internal/exit"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/environment"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Openable says why there is nothing that this machine could come to.
func Openable(s *Project) error {
	if s.Conf.App == nil {
		return exit.With(exit.Usage, errors.New("cannot open the app: the settings say nothing of one"), "add an app section to .abl/config.yaml (docs/config.md)")
	}
	if environment.AppSpec(s.Conf).IsProgram() {
		return exit.With(exit.Usage, errors.New("cannot open the app: it is a program, and nothing that answers"), "abl shell verifier opens a shell in which abl-cmd app ARGS… runs it")
	}
	return nil
}

// OpenApp runs the app that phase n has come to, on a throw-away copy, and lets this machine come
// to it at 127.0.0.1 and the port, 0 for the app's own, until ctx ends. ready hears where. That
// the port is free is looked at before the app is started.
func (s *Project) OpenApp(ctx context.Context, n, port int, out state.Sink, ready func(url string)) error {
	f, commit, err := built(s, n)
	unbuilt, uerr := s.Unbuilt()
	if unbuilt && uerr == nil && n == 1 {
		f, err = s.State()
	}
	if err := errors.Join(err, uerr); err != nil {
		return err
	}
	if port == 0 {
		port = s.Conf.App.Port
	}
	r := &Run{Project: s, phase: n, file: f, specs: s.Specs(), out: out}
	return r.beside(ctx, "the app", func() error { // which removed what a killed abl open left at the port
		taken, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return exit.With(exit.Environment, fmt.Errorf("cannot open the app: %w", err), "abl open --port N takes another port")
		}
		taken.Close()
		if unbuilt {
			r.note("no phase has run: this is the app as you committed it")
		} else if is := f.Phase(n).Status; is != state.Passed {
			r.note(fmt.Sprintf("phase %d is %s: this is what it has come to so far", n, is))
		}
		return r.serve(ctx, commit, port, ready)
	})
}

func (r *Run) serve(ctx context.Context, commit string, port int, ready func(url string)) error {
	const key = "open"
	if err := os.MkdirAll(r.Paths.Call(key), 0o755); err != nil {
		return err
	}
	up, err := r.app.Up(ctx, key, commit)
	if unbuilt, uerr := r.Unbuilt(); err == nil && up.Failed != "" && unbuilt && uerr == nil {
		err = r.notStarted(up)
	} else if err == nil && up.Failed != "" {
		err = exit.With(exit.Environment, errors.New("the app did not start: "+up.Failed), "abl logs app shows its output")
	}
	if err == nil {
		err = r.app.Open(ctx, port)
	}
	if err != nil {
		return err
	}
	ready(fmt.Sprintf("%s://127.0.0.1:%d/", r.Conf.App.Kind, port))
	<-ctx.Done()
	return r.app.Down(context.WithoutCancel(ctx), key)
}

// Shell opens the environment as for a call of phase n, with 0 of the one that comes
// next, and lets the person at tty act in it.
func (s *Project) Shell(ctx context.Context, role roles.Role, n int, tty *os.File, out state.Sink) error {
	f, err := s.State()
	if err != nil {
		return err
	}
	r := &Run{Project: s, file: f, specs: s.Specs(), out: out}
	r.phase = cmp.Or(n, orchestrator.NextPhase(f, r.specs), len(r.specs.Numbers()), 1)
	a, err := orchestrator.Admit(f, r.specs, r.phase, orchestrator.Asked{Again: true})
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
		up, err = r.app.Up(ctx, key, "")
	} else {
		up.Failed, err = r.app.Prepared(ctx, key)
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
