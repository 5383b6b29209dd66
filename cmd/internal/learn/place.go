package learn

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/money"
	"abl/images"
	"abl/internal/hostfs"
	"abl/orchestrator/learner"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// calls is where the calls of a session are made.
type calls interface {
	learner.Caller
	Hosts() []string                            // that an author can reach besides the model
	Close(ctx context.Context, why error) error // why is what ended the session
}

// opener makes them ready for a session. Tests have one without an engine.
type opener func(context.Context, *work, learner.State) (calls, error)

// place is an environment for a session's calls, and what they may spend.
type place struct {
	*learner.Containers
	*budget
	w     *work
	hosts []string
}

// openPlace opens an environment. What it has made is taken down when it fails.
func openPlace(ctx context.Context, w *work, s learner.State) (calls, error) {
	b, err := openBudget(w, s)
	if err != nil {
		return nil, err
	}
	a, err := w.agents().Find(s.Agent)
	if err != nil {
		return nil, err
	}
	model, err := agent.FullName(a, s.Model) // the gateway lets through what was named and no other
	if err != nil {
		return nil, err
	}
	env, err := environment.Open(ctx, environment.Options{
		Project: b.project, ID: s.ID, Phase: s.Session, Conf: w.conf, Root: w.root, CACert: w.in.String("ca-cert"), Offline: w.in.Bool("offline"),
		Weak: w.in.Bool(cli.WeakFlag), Secret: w.secret, Outlet: w.in.Outlet, Note: w.tell.Note, NoteImage: w.tell.progress,
	})
	if err != nil {
		return nil, err
	}
	p := &place{&learner.Containers{Env: env, Agent: a, Model: model, Out: w.tell, Admit: b.admit, Enter: b.enter}, b, w, nil}
	if err := errors.Join(p.prepare(ctx), ctx.Err()); err != nil {
		return nil, errors.Join(err, p.Close(ctx, err))
	}
	return p, nil
}

// prepare makes the image of the agent, and says what its calls may reach: the model,
// and while a program is written, what network.allow lists.
func (p *place) prepare(ctx context.Context) (err error) {
	if weak := p.Env.Net.Weak; weak != "" {
		p.w.tell.Note("weak network, as --" + cli.WeakFlag + " allows: " + weak)
	}
	root, of := p.w.root, p.conf.Directories
	want := images.Want{Agent: p.Agent.Image()}
	want.Dockerfile, err = environment.Dockerfile(root, p.conf.Images.Builder.Dockerfile, environment.Path(root, of.Src), environment.Path(root, of.Tests), filepath.Join(p.w.here, learner.Folder))
	if err != nil {
		return err
	}
	if p.Image, err = p.Env.Images.Ensure(ctx, want); err != nil {
		return fmt.Errorf("cannot make the agent's image: %w", err)
	}
	access := environment.Access{
		Place: roles.PlaceBuilder, Role: roles.PlaceBuilder, Image: p.Image, Agent: p.Agent, Models: []string{p.Model}, Prices: money.Of(p.ledger.List, []string{p.Model}),
		Budget: p.left, Nearly: p.warner.Warn,
	}
	if gate, err := p.Env.Gate(ctx, access); err != nil {
		return err
	} else if gate != nil {
		p.Gate = gate
	}
	access.Fetch = true
	gate, err := p.Env.Gate(ctx, access)
	if err != nil || gate == nil {
		return err
	}
	for _, note := range gate.Notes {
		p.w.tell.Note(note)
	}
	p.AuthorGate, p.Files, p.hosts = gate, gate.Files, gate.Hosts
	return nil
}

// Hosts implements calls.
func (p *place) Hosts() []string { return p.hosts }

// Close implements calls. The environment says itself what it cannot take down.
func (p *place) Close(ctx context.Context, why error) error {
	p.tellSpent()
	_, _ = p.Env.Close(ctx, why)
	rel, err := filepath.Rel(p.w.here, p.project.Root)
	return errors.Join(err, hostfs.HandOver(p.w.here, rel))
}
