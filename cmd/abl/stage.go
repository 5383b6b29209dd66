package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"abl/internal/failpoint"
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

// set builds the stage. When it fails, what it has made so far is taken down.
func (s *session) set(ctx context.Context, n int, f *state.File, specs spec.Set, out event.Sink, keys bool) (*stage, error) {
	st := &stage{session: s, phase: n, file: f, specs: specs, out: out, keys: keys}
	st.uid, st.gid, st.lend = owner.RoleID(s.project.Root, os.Geteuid())
	for _, make := range []func(context.Context) error{st.reach, st.images, st.sweep, st.workspaces, st.hire} {
		err := make(ctx)
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			tidy, cancel := late(ctx)
			defer cancel()
			return nil, errors.Join(onEngine(err), st.retreat(tidy, ctx.Err() != nil))
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
	failpoint.Here("stage.reached")
	return err
}

func (st *stage) save() error { return state.Save(st.project.State(), st.file) }
