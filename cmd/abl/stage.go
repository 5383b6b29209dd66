package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"abl/internal/owner"
	"abl/orchestrator"
	"abl/orchestrator/event"
	"abl/orchestrator/sandbox"
	"abl/orchestrator/sandbox/docker"
	"abl/orchestrator/spec"
	"abl/orchestrator/state"
	"abl/orchestrator/workspace"
	"abl/roles"
)

// stage is everything a phase is played on: the engine, the networks, the two
// workspaces and who plays. strike takes it down again.
type stage struct {
	*session
	phase  int
	keys   bool
	file   *state.File
	specs  spec.Set
	out    event.Sink
	engine *docker.Engine
	info   sandbox.Info
	uid    int
	gid    int
	lend   bool
	src    *workspace.Repo
	tests  *workspace.Repo
	site   *roles.Site
	cast   *orchestrator.Cast
	runner *roles.Runner
	app    *roles.App
	have   made
}

// connect reaches the engine and refuses one that cannot keep the boundary.
func connect(ctx context.Context) (*docker.Engine, sandbox.Info, error) {
	eng, err := docker.Connect(ctx, docker.Options{})
	if err != nil {
		return nil, sandbox.Info{}, err
	}
	info, err := eng.Info(ctx)
	if err != nil {
		return nil, info, err
	}
	if info.Rootless || info.UserNS {
		return nil, info, fmt.Errorf("%w: it maps user ids (rootless or userns-remap), so files that a role writes would not be yours", sandbox.ErrWeak)
	}
	return eng, info, nil
}

// Whether the players of a stage get their keys.
const (
	withKeys    = true
	withoutKeys = false
)

// set builds the stage. What it has made so far is struck when it fails.
func (s *session) set(ctx context.Context, n int, f *state.File, specs spec.Set, out event.Sink, keys bool) (*stage, error) {
	st := &stage{session: s, phase: n, file: f, specs: specs, out: out, keys: keys}
	st.uid, st.gid, st.lend = owner.RoleID(s.project.Root, os.Geteuid())
	for _, make := range []func(context.Context) error{st.reach, st.images, st.sweep, st.workspaces, st.hire} {
		if err := make(ctx); err != nil {
			tidy, cancel := late(ctx)
			defer cancel()
			st.strike(tidy)
			return nil, onEngine(err)
		}
	}
	return st, nil
}

// late is a context for tidying up after ctx ended.
func late(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
}

func (st *stage) reach(ctx context.Context) (err error) {
	st.engine, st.info, err = connect(ctx)
	return err
}

// sweep removes what an earlier abl left on the engine, but for the call that
// this run takes up and what that call stands on.
func (st *stage) sweep(ctx context.Context) error {
	keep := st.callsToKeep()
	labels := map[string]string{sandbox.LabelProject: st.file.Project}
	all, err := st.engine.List(ctx, labels)
	if err != nil {
		return err
	}
	live := slices.ContainsFunc(all, func(box sandbox.Status) bool { return keep[box.Labels[sandbox.LabelCall]] })
	_, err = st.engine.Sweep(ctx, labels, func(box sandbox.Status) bool {
		return live && (keep[box.Labels[sandbox.LabelCall]] || box.Labels[sandbox.LabelKind] == "holder")
	})
	return err
}

// callsToKeep names the call that the phase rests in, when it has not been ended on disk.
func (st *stage) callsToKeep() map[string]bool {
	p := st.file.Phases[fmt.Sprint(st.phase)]
	keep := map[string]bool{}
	if p == nil {
		return keep
	}
	switch p.Status {
	case state.Building:
		keep[roles.Key(st.phase, roles.Builder, p.Step, p.Attempt)] = true
	case state.Verifying:
		keep[roles.Key(st.phase, roles.Verifier, p.Step, p.Attempt)] = true
	}
	return keep
}

func (st *stage) save() error { return state.Save(st.project.State(), st.file) }

// strike takes everything down: boxes, networks, volumes, and lent files back.
// A call that the run leaves behind on purpose does not exist: what is stopped
// is stopped for good, and its record says so.
func (st *stage) strike(ctx context.Context) error {
	var problems []string
	if st.engine != nil {
		if _, err := st.engine.Sweep(ctx, map[string]string{sandbox.LabelProject: st.file.Project}, nil); err != nil {
			problems = append(problems, err.Error())
		}
		st.engine.Close()
	}
	if err := st.giveBack(st.file, st.out); err != nil {
		problems = append(problems, err.Error())
	}
	if len(problems) > 0 {
		return fmt.Errorf("cannot tidy up: %s (the next run, or abl clean, will)", strings.Join(problems, "; "))
	}
	return nil
}
