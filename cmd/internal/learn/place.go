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
	"abl/orchestrator"
	"abl/orchestrator/learner"
	"abl/roles"
	"abl/roles/environment"
)

// opener makes ready where the calls of a session are made, and tells the session what it has to
// know of it. Tests have one without an engine.
type opener func(context.Context, *work, *learner.Session, learner.State) (closed func(why error), err error)

// openPlace opens an environment. What it has made is taken down when it fails.
func openPlace(ctx context.Context, w *work, x *learner.Session, s learner.State) (func(error), error) {
	book, account := w.accounts(s.Session)
	if err := book.Ready(); err != nil {
		return nil, err
	}
	env, err := environment.Open(ctx, environment.Options{
		Project: w.home.Project(), ID: s.ID, Phase: s.Session, Conf: w.conf, Root: w.root, CACert: w.in.String("ca-cert"), Offline: w.in.Bool("offline"),
		Weak: w.in.Bool(cli.WeakFlag), Safe: w.in.Safe, Note: w.tell.Note, NoteImage: w.tell.progress,
	})
	if err != nil {
		return nil, err
	}
	enter := func(cycle int, o roles.Outcome) error { return book.Append(orchestrator.Rows(s.Session, cycle, o)) }
	c := &learner.Containers{Env: env, Agent: w.agent, Model: w.full, Out: w.tell, Enter: enter}
	closed := func(why error) {
		account.TellSpent()
		_, _ = env.Close(ctx, why) // what it cannot take down it says itself
	}
	x.Calls, x.Admit = c, account.Admit
	x.Hosts, err = w.prepare(ctx, c, environment.Access{Prices: money.Of(w.prices, []string{w.full}), Budget: account.Left, Spent: account.Spent})
	if err = errors.Join(err, ctx.Err()); err != nil {
		closed(err)
	}
	return closed, err
}

// accounts are the ledger of a session's calls, and what they may spend. A session counts as a
// phase, a project as one.
func (w *work) accounts(session int) (money.Book, *money.Account) {
	at := w.home.Project()
	used := func(key string) (money.Spendings, error) { return money.Spent(at, w.prices, session, key) }
	words := money.Words{Again: "the same command and", Safe: "what was done is kept"}
	return money.Book{Ledger: ledger.Open(at.Ledger()), List: w.prices, Hide: w.in.Safe.Redact, Tell: w.tell.Note},
		&money.Account{Conf: w.conf, Used: used, Words: words, Tell: w.tell.Note}
}

// prepare makes the image of the agent, and says what its calls may reach: the model,
// and while a program is written, what network.allow lists.
func (w *work) prepare(ctx context.Context, c *learner.Containers, access environment.Access) (hosts []string, err error) {
	of, want := w.conf.Directories, images.Want{Agent: c.Agent.Image, Toolchain: w.conf.Toolchain}
	want.Dockerfile, err = environment.Dockerfile(w.root, w.conf.Images.Builder.Dockerfile,
		environment.Path(w.root, of.Src), environment.Path(w.root, of.Tests), filepath.Join(w.here, learner.Folder))
	if err != nil {
		return nil, err
	}
	if c.Image, err = c.Env.Images.Ensure(ctx, want); err != nil {
		return nil, fmt.Errorf("cannot make the agent's image: %w", err)
	}
	access.Place, access.Agent, access.Models = roles.PlaceBuilder, c.Agent, []string{c.Model}
	if c.Gate, err = c.Env.Gate(ctx, access); err != nil {
		return nil, err
	}
	access.Fetch = true
	if c.AuthorGate, err = c.Env.Gate(ctx, access); err != nil || c.AuthorGate == nil {
		return nil, err
	}
	return c.AuthorGate.Hosts, nil
}
