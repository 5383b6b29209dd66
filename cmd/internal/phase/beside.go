package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/app"
	"abl/roles/environment"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// Openable returns an error if the project has no app with a port.
func Openable(s *project.Project) error {
	if s.Conf.App == nil {
		err := errors.New("cannot open the app: the settings have no app section")
		return exit.With(exit.Usage, err, "add an app section to .abl/config.yaml (docs/config.md)")
	}
	if environment.AppSpec(s.Conf).IsProgram() {
		err := errors.New("cannot open the app: it is a command-line program")
		return exit.With(exit.Usage, err, "abl shell verifier opens a shell; abl-cmd app ARGS… runs the program there")
	}
	return nil
}

// OpenApp serves phase n's app on 127.0.0.1:port until ctx is done, and calls ready with the URL. It runs
// a temporary copy. A port of 0 is the app's port. It fails before it starts the app if the port is in use.
func OpenApp(
	ctx context.Context, s *project.Project, n, port int, out state.Sink, ready func(url string),
) error {
	f, commit, err := s.Built(n)
	r := &Run{Project: s, phase: n, file: f, specs: s.Specs(), out: out}
	unbuilt := f != nil && r.unbuilt()
	if err != nil && !(unbuilt && n == 1) {
		return err
	}
	if port == 0 {
		port = s.Conf.App.Port
	}
	return r.beside(ctx, "the app", func() error { // beside has removed the container of a killed abl open
		free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return exit.With(exit.Environment, fmt.Errorf("cannot open the app: %w", err),
				"choose another port: abl open --port N")
		}
		free.Close()
		if unbuilt {
			r.note("no phase has run: this is the app as you committed it")
		} else if is := f.Phase(n).Status; is != state.Passed {
			r.note(fmt.Sprintf("phase %d is %s: this is its app so far", n, is))
		}
		return r.serve(ctx, commit, port, ready)
	})
}

// serve starts the app of a commit and serves it until ctx is done.
func (r *Run) serve(ctx context.Context, commit string, port int, ready func(url string)) error {
	const key = "open"
	if err := os.MkdirAll(r.Paths.Call(key), 0o755); err != nil {
		return err
	}
	if !r.env.Info.Near {
		r.note(fmt.Sprintf("the engine, and so the port, is on another machine: ssh -L %d:127.0.0.1:%d forwards it",
			port, port))
	}
	up, err := r.app.Up(ctx, key, commit)
	if err == nil && up.Failed != "" && r.unbuilt() {
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

// Shell opens a shell on tty in a container as for a call of the role in phase n. An n of 0 is the next
// phase.
func Shell(ctx context.Context, s *project.Project, role roles.Role, n int, tty *os.File, out state.Sink) error {
	f, err := s.State()
	if err != nil {
		return err
	}
	r := &Run{Project: s, file: f, specs: s.Specs(), out: out}
	next, _ := orchestrator.NextPhase(f, r.specs)
	r.phase = cmp.Or(n, next)
	a, err := orchestrator.Admit(f, r.specs, r.phase, orchestrator.Asked{Again: true})
	if err != nil {
		return err
	}
	p := a.Open
	p.Iteration, p.Step, p.Attempt = max(p.Iteration, 1), max(p.Step, 1), max(p.Attempt, 1)
	return r.beside(ctx, "a shell", func() error { return r.openShell(ctx, role, p, tty) })
}

// beside opens the environment for a shell or an app outside of a phase, calls do and closes it. It fails
// if a call is still running, and leaves that call alone.
func (r *Run) beside(ctx context.Context, what string, do func() error) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	key, err := r.env.Live(ctx)
	switch {
	case err == nil && key != "":
		hint := fmt.Sprintf("abl phase %d reattaches to it, abl clean ends it", r.phase)
		err = exit.With(exit.Busy, fmt.Errorf("cannot open %s: call %s is still running", what, key), hint)
	case err == nil:
		err = do()
	}
	return errors.Join(err, r.end(context.WithoutCancel(ctx), err))
}

// openShell starts the role's container, with the app if the role has one, and attaches tty.
func (r *Run) openShell(ctx context.Context, role roles.Role, p state.Phase, tty *os.File) error {
	key := "shell-" + role.Name
	if err := os.MkdirAll(r.Paths.Call(key), 0o755); err != nil {
		return err
	}
	var up app.Up
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
	return attach(ctx, r.env.Engine, name, tty, r.In.Bare.Stdout)
}

// attach connects the terminal with the container in raw mode, and restores the terminal afterwards.
func attach(ctx context.Context, eng environment.Engine, name string, tty *os.File, out io.Writer) error {
	old, err := term.MakeRaw(int(tty.Fd()))
	if err != nil {
		return fmt.Errorf("cannot use the terminal: %w", err)
	}
	defer term.Restore(int(tty.Fd()), old)
	resized := make(chan os.Signal, 1)
	signal.Notify(resized, unix.SIGWINCH)
	defer signal.Stop(resized)
	_, err = eng.Attach(ctx, name, sandbox.Terminal{
		In:      tty,
		Out:     out,
		Resized: resized,
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
