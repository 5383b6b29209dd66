package phase

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"abl/cmd/internal/exit"
	"abl/internal/git"
	"abl/internal/state"
	"abl/roles/environment"
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
// the port is free is looked at before anything is started.
func (s *Project) OpenApp(ctx context.Context, n, port int, out state.Sink, ready func(url string)) error {
	f, commit, err := built(s, n)
	if err != nil {
		return err
	}
	if port == 0 {
		port = s.Conf.App.Port
	}
	taken, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return exit.With(exit.Environment, fmt.Errorf("cannot open the app: %w", err), "abl open --port N takes another port")
	}
	taken.Close()
	r := &Run{Project: s, phase: n, file: f, specs: s.Specs(), out: out}
	return r.beside(ctx, "the app", func() error {
		if is := f.Phase(n).Status; is != state.Passed {
			r.note(fmt.Sprintf("phase %d is %s: this is what it has come to so far", n, is))
		}
		return r.serve(ctx, commit, port, ready)
	})
}

func (r *Run) serve(ctx context.Context, commit string, port int, ready func(url string)) error {
	const key = "open"
	at, _, err := r.src.Head()
	if err != nil {
		return err
	}
	if at.Hash != commit { // a later phase has gone on in the workspace
		r.note(fmt.Sprintf("this is commit %.12s alone: what git ignores is not in it", commit))
		r.app.Copy, r.app.Prepare = "tar", nil
		r.app.Tree = func(w io.Writer, as string) error {
			return r.src.Export(ctx, w, commit, as, git.Owner{UID: r.env.UID, GID: r.env.GID})
		}
	}
	if err := os.MkdirAll(r.Paths.Call(key), 0o755); err != nil {
		return err
	}
	up, err := r.app.Up(ctx, key)
	if err == nil && up.Failed != "" {
		log := filepath.Join(r.Paths.Call(key), "app", "app.log")
		if strings.HasPrefix(up.Failed, "app.prepare") {
			log = r.Paths.Call("prepare")
		}
		err = exit.With(exit.Environment, errors.New("the app did not start: "+up.Failed), "read "+r.Paths.Rel(log))
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
