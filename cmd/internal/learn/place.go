package learn

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/money"
	"abl/images"
	"abl/internal/ledger"
	"abl/internal/pricelist"
	"abl/orchestrator"
	"abl/orchestrator/learner"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// opener makes ready where the calls of a session are made, and says which hosts an author
// can reach besides the model. Tests have one without an engine.
type opener func(context.Context, *work, learner.State, asked) (calls learner.Caller, hosts []string, closed func(why error), err error)

// asked is who answers in a session.
type asked struct {
	agent  agent.Agent
	model  string // its full name: the gateway lets through what was named and no other
	prices pricelist.List
}

// place is an environment for a session's calls, with what they may spend. A session
// counts as a phase, a project as one.
type place struct {
	*learner.Containers
	*work
	session int
	ledger  money.Book
	account *money.Account
}

// openPlace opens an environment. What it has made is taken down when it fails.
func openPlace(ctx context.Context, w *work, s learner.State, who asked) (learner.Caller, []string, func(error), error) {
	at := w.home.Project()
	p := &place{work: w, session: s.Session}
	p.ledger = money.Book{Ledger: ledger.Open(at.Ledger()), List: who.prices, Hide: w.in.Safe.Redact, Tell: w.tell.Note}
	p.account = p.accounts()
	if err := p.ledger.Ready(); err != nil {
		return nil, nil, nil, err
	}
	env, err := environment.Open(ctx, environment.Options{
		Project: at, ID: s.ID, Phase: s.Session, Conf: w.conf, Root: w.root, CACert: w.in.String("ca-cert"), Offline: w.in.Bool("offline"),
		Weak: w.in.Bool(cli.WeakFlag), Safe: w.in.Safe, Note: w.tell.Note, NoteImage: w.tell.progress,
	})
	if err != nil {
		return nil, nil, nil, err
	}
	enter := func(cycle int, o roles.Outcome) error { return p.ledger.Append(orchestrator.Rows(s.Session, cycle, o)) }
	p.Containers = &learner.Containers{Env: env, Agent: who.agent, Model: who.model, Out: w.tell, Admit: p.account.Admit, Enter: enter}
	closed := func(why error) {
		p.account.TellSpent()
		_, _ = env.Close(ctx, why) // what it cannot take down it says itself
	}
	hosts, err := p.prepare(ctx)
	if err = errors.Join(err, ctx.Err()); err != nil {
		closed(err)
	}
	return p, hosts, closed, err
}

// prepare makes the image of the agent, and says what its calls may reach: the model,
// and while a program is written, what network.allow lists.
func (p *place) prepare(ctx context.Context) (hosts []string, err error) {
	if weak := p.Env.Net.Weak; weak != "" {
		p.tell.Note("weak network, as --" + cli.WeakFlag + " allows: " + weak)
	}
	root, of := p.root, p.conf.Directories
	want := images.Want{Agent: p.Agent.Image}
	want.Dockerfile, err = environment.Dockerfile(root, p.conf.Images.Builder.Dockerfile, environment.Path(root, of.Src), environment.Path(root, of.Tests), filepath.Join(p.here, learner.Folder))
	if err != nil {
		return nil, err
	}
	if p.Image, err = p.Env.Images.Ensure(ctx, want); err != nil {
		return nil, fmt.Errorf("cannot make the agent's image: %w", err)
	}
	access := environment.Access{
		Place: roles.PlaceBuilder, Role: roles.PlaceBuilder, Image: p.Image, Agent: p.Agent, Models: []string{p.Model}, Prices: money.Of(p.ledger.List, []string{p.Model}),
		Budget: p.account.Left, Spent: p.account.Spent,
	}
	if gate, err := p.Env.Gate(ctx, access); err != nil {
		return nil, err
	} else if gate != nil {
		p.Gate = gate
	}
	access.Fetch = true
	gate, err := p.Env.Gate(ctx, access)
	if err != nil || gate == nil {
		return nil, err
	}
	for _, note := range gate.Notes {
		p.tell.Note(note)
	}
	p.AuthorGate, p.Files = gate, gate.Files
	return gate.Hosts, nil
}

// accounts is what the calls of the session may spend.
func (p *place) accounts() *money.Account {
	return &money.Account{
		Conf: p.conf, Used: func(key string) (money.Spendings, error) {
			return money.Spent(p.home.Project(), p.ledger.List, p.session, key)
		}, Words: money.Words{Again: "the same command and", Safe: "what was done is kept"}, Tell: p.tell.Note,
	}
}
