package phase

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/state"
	"abl/internal/wording"
	"abl/roles"
	"abl/roles/app"
	"abl/roles/environment"
	"abl/roles/replay"
)

// baselineKey is the key of the record for the start of the app as the user committed it.
const baselineKey = "baseline"

// probeLimit is how long a program may run for its probe.
const probeLimit = time.Minute

// unbuilt reports whether the project adopts a repository in which abl has built nothing yet.
func (r *Run) unbuilt() bool {
	if r.Conf.App == nil || r.Conf.Source.Repo == "" {
		return false
	}
	for _, p := range r.file.Phases {
		if p.Step > 0 {
			return false
		}
	}
	return true
}

// needsBaseline reports whether abl starts the app before the first paid call.
func (r *Run) needsBaseline() bool {
	return r.Conf.Adopt.Baseline != "off" && !r.In.Bool("no-baseline") && r.unbuilt()
}

// Baseline starts the app of the user's repository as the user committed it. ok is false if there is no
// such app or abl has already built something.
func Baseline(ctx context.Context, s *project.Project, out state.Sink) (ok bool, err error) {
	f, err := s.State()
	if err != nil {
		return false, err
	}
	r := &Run{Project: s, phase: 1, file: f, specs: s.Specs(), out: out}
	if !r.needsBaseline() {
		return false, nil
	}
	unlock, err := s.Lock()
	if err != nil {
		return true, err
	}
	defer unlock()
	return true, r.beside(ctx, "the app", func() error { return r.baseline(ctx) })
}

// baseline starts the app, or runs the program, and removes it again. If that fails, the error contains
// the command, the cause and what to change.
func (r *Run) baseline(ctx context.Context) error {
	if err := os.MkdirAll(r.Paths.Call(baselineKey), 0o755); err != nil {
		return err
	}
	r.note("starting the app as you committed it, before the first paid call (adopt.baseline)")
	up, err := r.app.Up(ctx, baselineKey, "")
	if err == nil && up.Failed == "" && environment.AppSpec(r.Conf).IsProgram() {
		up.Failed, up.Printed, err = r.probe(ctx)
	}
	err = errors.Join(err, r.app.Down(context.WithoutCancel(ctx), baselineKey))
	if err != nil {
		return fmt.Errorf("cannot start the app as you committed it: %w", err)
	}
	return r.notStarted(up)
}

// notStarted returns the error for an app that did not start as committed, nil if it did.
func (r *Run) notStarted(up app.Up) error {
	if up.Failed == "" {
		return nil
	}
	c := causeOf(up.Failed, up.Printed)
	command, key := r.Conf.App.Command, "app.command"
	if strings.HasPrefix(up.Failed, "app.prepare") {
		command, key = r.Conf.App.Prepare, "app.prepare"
	}
	if strings.HasPrefix(up.Failed, "app.build") {
		command, key = r.Conf.App.Build, "app.build"
	}
	what := fmt.Sprintf("the app does not start as you committed it: %s (%s: %s)", up.Failed, key,
		wording.Short(wording.OneLine(command), 200))
	if c.why != "" {
		what += "; " + c.why
	}
	do := fmt.Sprintf("change %s in %s; abl logs app shows its output; if there is no app yet, "+
		"use --no-baseline or adopt.baseline: off", cmp.Or(c.key, key), r.Conf.File)
	return exit.With(exit.Usage, errors.New(what), do)
}

// probe runs the app, a program, once with the arguments of app.probe or with --help. It returns why the run
// failed, "" if it did not, and the last lines of its output. Without app.probe it ignores exit codes below
// 125, because a program may refuse --help.
func (r *Run) probe(ctx context.Context) (failed, printed string, err error) {
	args := cmp.Or(r.Conf.App.Probe, "--help")
	script := "#!/bin/sh\nabl-cmd app " + args + " </dev/null 2>&1\n"
	who := r.jobs.Players[roles.Verifier.Name]
	replayer := &replay.Runner{App: r.app, Image: who.Image, Tests: func(_ context.Context, w io.Writer, _, as string) error {
		t := tar.NewWriter(w)
		head := &tar.Header{Name: filepath.Join(as, "run.sh"), Mode: 0o755, Size: int64(len(script)), Uid: r.env.UID,
			Gid: r.env.GID}
		err := t.WriteHeader(head)
		if err == nil {
			_, err = io.WriteString(t, script)
		}
		return errors.Join(err, t.Close())
	}}
	ran, err := replayer.Run(ctx, replay.Job{
		Key: baselineKey + "/replay-probe", Against: replay.TheApp, Limit: probeLimit, Cmds: r.jobs.Commands(roles.Verifier,
			state.Phase{}, app.Up{}),
	})
	if err != nil {
		return "", "", err
	}
	printed = r.In.Safe.String(lastLines(string(ran.Output), 20))
	switch what := "the program, run with " + args + ","; {
	case ran.AppFailed != "":
		failed, printed, _ = strings.Cut(ran.AppFailed, "\n")
	case ran.Gone != "":
		failed = what + " returned no result: " + ran.Gone
	case ran.Late:
		failed = fmt.Sprintf("%s did not exit within %s", what, probeLimit)
	case ran.Exit >= 125 || ran.Exit != 0 && r.Conf.App.Probe != "":
		failed = fmt.Sprintf("%s exited with code %d", what, ran.Exit)
	}
	if failed == "" {
		return "", "", nil
	}
	r.out.Emit(state.Event{Kind: state.AppFailed, Phase: r.phase, Text: failed, Output: printed})
	return failed, printed, nil
}

// lastLines returns the last lines of a text, without empty ones.
func lastLines(text string, most int) string {
	lines := slices.DeleteFunc(strings.Split(wording.Unix(text), "\n"),
		func(line string) bool { return strings.TrimSpace(line) == "" })
	return strings.Join(lines[max(len(lines)-most, 0):], "\n")
}
