package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"abl/cmd/internal/ground"
	"abl/cmd/internal/money"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/internal/testing/failpoint"
	"abl/orchestrator"
	"abl/orchestrator/event"
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
	book   money.Book
	warner money.Warner

	forwards *ground.Forwards
}

// Whether the players of a stage get their keys.
const (
	withKeys    = true
	withoutKeys = false
)

// set builds the stage. When it fails, what it has made so far is taken down.
func (s *session) set(ctx context.Context, n int, f *state.File, specs spec.Set, out event.Sink, keys bool) (*stage, error) {
	st := &stage{session: s, phase: n, file: f, specs: specs, out: out, keys: keys}
	st.warner.Tell = st.note
	st.uid, st.gid, st.lend = hostfs.RoleID(s.project.Root, os.Geteuid())
	for _, make := range []func(context.Context) error{st.reach, st.images, st.known, st.sees, st.sweep, st.workspaces, st.hire} {
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
	defer func() {
		if err == nil {
			st.engine.Guard(st.held.Still)
			ground.BePatient(ctx, st.engine, time.Duration(st.conf.Loop.OutageBudget), st.note)
		}
	}()
	if st.engine, st.info, err = ground.Connect(ctx); err == nil {
		err = st.proveNetworks(ctx, st.engine, st.info)
	}
	failpoint.Here("stage.reached")
	return err
}

// known keeps the project's id before anything stands under it on the engine: what
// a kill leaves there is looked for under the id in state.json.
func (st *stage) known(context.Context) error {
	if kept, err := state.Load(st.project.State()); err == nil && kept.Project == st.file.Project {
		return nil
	}
	return st.save()
}

// sees makes sure that the engine sees the project's files.
func (st *stage) sees(ctx context.Context) error {
	return ground.Sees(ctx, st.engine, st.info, st.file.Project, st.have.holder, filepath.Dir(st.project.State()))
}

// note tells the person something worth knowing.
func (st *stage) note(text string) {
	st.out.Emit(event.Event{Time: time.Now().UTC(), Kind: event.Note, Phase: st.phase, Text: text})
}

// save writes state.json, unless it may be another abl's by now.
func (st *stage) save() error {
	if err := st.held.Still(); err != nil {
		return err
	}
	return state.Save(st.project.State(), st.file)
}
