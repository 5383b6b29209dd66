package learn

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/ground"
	"abl/images"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/orchestrator/learner"
	"abl/orchestrator/project"
	"abl/roles"
	"abl/roles/agent"
)

// bench is where agents and programs of one project run in containers.
type bench struct {
	*learner.Containers
	*budget
	in       *cli.Input
	here     string // the directory that solutions is in
	root     string // that the settings' paths start from
	rel      string // the project, from there
	secret   func(name string) string
	id       string
	uid, gid int
	engine   *docker.Engine
	info     sandbox.Info
	net      roles.Net
	site     *roles.Site
	forwards *ground.Forwards
	image    string // of the agent, and of the programs that it writes
	holder   string
	agent    agent.Agent
	way      way
	tell     *teller
}

// openBench makes the bench for a session. What it has made so far is taken down
// when it fails.
func openBench(ctx context.Context, w *work, s learner.State) (_ calls, err error) {
	b := &bench{in: w.in, root: w.root, here: w.here, secret: w.secret, id: s.ID, tell: w.tell}
	if b.budget, err = openBudget(w, s); err != nil {
		return nil, err
	}
	if b.rel, err = filepath.Rel(w.here, w.home.Root); err != nil {
		return nil, fmt.Errorf("internal error: %w", err)
	}
	b.uid, b.gid, _ = hostfs.RoleID(w.home.Root, os.Geteuid())
	if b.agent, err = w.agents().Find(s.Agent); err != nil {
		return nil, err
	}
	if b.engine, b.info, err = ground.Connect(ctx); err != nil {
		return nil, err
	}
	ground.BePatient(ctx, b.engine, time.Duration(b.conf.Loop.OutageBudget), b.tell.Note)
	for _, do := range []func(context.Context) error{b.clean, b.prove, b.images, b.open} {
		if err = do(ctx); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(err, b.Close(ctx, err))
		}
	}
	b.Containers = &learner.Containers{
		Project: b.project, Session: b.session, Agent: b.agent, Image: b.image, Runner: b.runner, Holder: b.site.Holder, Gate: b.gate,
		Admit: b.admit, Enter: b.enter, Note: b.tell.Note,
	}
	return b, nil
}

func (b *bench) labels() map[string]string { return map[string]string{sandbox.LabelProject: b.id} }

// clean removes what a run that was killed left, but for a call that is still
// running and what it stands on.
func (b *bench) clean(ctx context.Context) error {
	boxes, err := b.engine.List(ctx, b.labels())
	if err != nil {
		return err
	}
	live := ""
	for _, box := range boxes {
		key := box.Labels[sandbox.LabelCall]
		if box.Labels[sandbox.LabelKind] != "role" || box.State != sandbox.Running {
			continue
		}
		if _, ended, err := (roles.Record{Dir: b.project.Call(key)}).Outcome(); err == nil && !ended {
			live = key
		}
	}
	_, err = b.engine.Sweep(ctx, b.labels(), func(box sandbox.Status) bool {
		return live != "" && (box.Labels[sandbox.LabelCall] == live || box.Labels[sandbox.LabelKind] == "holder")
	})
	return err
}

func (b *bench) prove(ctx context.Context) (err error) {
	if b.net, err = ground.Networks(ctx, b.in, b.engine, b.info, b.conf.Network.Pool); err == nil && b.net.Weak != "" {
		b.tell.Note("weak network, as --" + ground.WeakFlag + " allows: " + b.net.Weak)
	}
	return err
}

func (b *bench) images(ctx context.Context) (err error) {
	m := ground.MakerFor(b.engine, b.tell.progress, b.in, b.root, b.conf.Network)
	if b.holder, err = m.Holder(ctx); err != nil {
		return err
	}
	want := images.Want{Agent: b.agent.Image()}
	written := []string{ground.Path(b.root, b.conf.Directories.Src), ground.Path(b.root, b.conf.Directories.Tests), filepath.Join(b.here, learner.Folder)}
	if want.Dockerfile, err = ground.Dockerfile(b.root, b.conf.Images.Builder.Dockerfile, written...); err != nil {
		return err
	}
	if b.image, err = m.Ensure(ctx, want); err != nil {
		return fmt.Errorf("cannot make the agent's image: %w", err)
	}
	b.site = &roles.Site{
		Engine: b.engine, ID: b.id, Phase: b.session, Image: b.holder, Pool: b.conf.Network.Pool, Egress: b.conf.Network.Egress,
		Gated: map[string]bool{}, Net: b.net, Life: 24 * time.Hour,
	}
	if _, served := agent.ProviderOf(b.agent); !served && len(b.conf.Network.Allow) == 0 {
		return nil
	}
	if b.way.image, err = m.Gateway(ctx); err != nil {
		return fmt.Errorf("cannot make the gateway's image: %w", err)
	}
	return nil
}

// Hosts implements calls.
func (b *bench) Hosts() []string { return b.way.hosts }

// Close takes everything down: containers, networks, volumes. A call that runs
// while something else went wrong has been paid for: it stays with what it stands
// on, for the next run to attach to, unless the person wants to stop.
func (b *bench) Close(ctx context.Context, why error) error {
	b.tellSpent()
	tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	sweep := b.sweep
	if why != nil && ctx.Err() == nil {
		sweep = b.clean
	}
	err := errors.Join(sweep(tidy), b.engine.Close(), b.forwards.Close(), hostfs.HandOver(b.here, b.rel))
	if err != nil {
		return fmt.Errorf("cannot tidy up (the next run will): %w", err)
	}
	return nil
}

func (b *bench) sweep(ctx context.Context) error {
	_, err := b.engine.Sweep(ctx, b.labels(), nil)
	return err
}

// runner runs the containers of a project.
func (b *bench) runner(p project.Project) *roles.Runner {
	return &roles.Runner{
		Engine: b.engine, Project: p, ID: b.id, UID: b.uid, GID: b.gid, Root: os.Geteuid() == 0,
		Box: ground.Limits(b.conf.Config), Net: b.net, Reach: b.site.Reach, Output: int64(b.conf.Limits.Output), Idle: time.Duration(b.conf.Loop.IdleTimeout),
		Grow: roles.Growth{Bytes: int64(b.conf.Limits.Disk), Inodes: b.conf.Limits.Inodes, Disks: []string{p.Src}}, Out: b.tell, Outlet: b.in.Outlet,
	}
}
