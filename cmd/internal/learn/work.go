package learn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/images"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/orchestrator/learner"
	"abl/roles"
	"abl/roles/boundary"
	"abl/roles/call"
	"abl/roles/environment"
)

// work is a directory with its settings, the agent and the options of the next session.
type work struct {
	in      *cli.Input
	open    opener
	here    string // real path of the directory
	root    string // the abl project around it, for settings and .env; or here
	chosen  map[string]string
	conf    *config.Loaded
	prices  ledger.Prices
	home    learner.Home // of the last task
	printer *printer

	player environment.RoleAgent // the Builder of the settings
	cycles int
}

// openWork reads the settings. It changes nothing.
func openWork(in *cli.Input, open opener) (*work, error) {
	here, err := state.Real(".")
	if err != nil {
		return nil, fmt.Errorf("cannot resolve the current directory: %w", err)
	}
	out := map[bool]io.Writer{true: in.Stderr, false: in.Stdout}[in.Bool("json")]
	w := &work{in: in, open: open, here: here, root: here, printer: &printer{out: out, in: in}}
	if root, err := state.Find(here); err == nil {
		w.root = root
	}
	if err := w.set("cycles", in.String("cycles")); err != nil {
		return nil, err
	}
	return w, w.load(map[string]string{"agent": in.String("agent"), "models": in.String("model")})
}

// load reads the settings, which chosen overrides.
func (w *work) load(chosen map[string]string) error {
	conf, err := money.Settings(w.in, w.root, maps.Clone(chosen))
	if err != nil {
		return err
	}
	list, err := money.Prices(w.root, conf)
	if err != nil {
		return err
	}
	all := environment.Agents{Conf: conf, Root: w.root, Scenario: w.in.String("scenario")}
	player, err := all.ForRole(roles.Builder.Name)
	if err != nil {
		return exit.With(exit.Usage, err, "")
	}
	w.chosen, w.conf, w.prices, w.player = chosen, conf, list, player
	return nil
}

// model returns the model that the agent uses.
func (w *work) model() string { return w.player.Models[0] }

// set changes the agent, the model or the number of cycles. A new agent uses its default model.
func (w *work) set(name, value string) error {
	switch name {
	case "agent":
		return w.load(map[string]string{"agent": value})
	case "model":
		return w.load(map[string]string{"agent": w.chosen["agent"], "models": value})
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > learner.MaxCycles {
		return cli.Usagef("the number of cycles must be a whole number from 1 to %d, not %q", learner.MaxCycles, value)
	}
	w.cycles = n
	return nil
}

// check returns an error if the agent has no key, or a dollar budget cannot be enforced.
func (w *work) check() error {
	a := w.player.Agent
	if a.Provider.API != "" && (environment.Agents{Conf: w.conf, Root: w.root}).KeyFrom(a) == "" {
		return environment.Missing(a.Provider)
	}
	return money.CheckCaps(w.conf, w.prices, "the", a, w.player.Models[:1])
}

// learn runs a session on a task: a new one, or the interrupted one.
func (w *work) learn(ctx context.Context, task string) (s learner.State, err error) {
	if task = strings.TrimSpace(task); task == "" {
		return s, cli.Usagef("the task is empty")
	}
	if err := w.check(); err != nil {
		return s, err
	}
	at := filepath.Join(learner.Folder, learner.Name(task))
	h := learner.Home{Root: filepath.Join(w.here, at)}
	w.home = h
	if err := hostfs.MkdirAll(w.here, filepath.Join(at, state.Dir)); err != nil {
		return s, fmt.Errorf("cannot create the project: %w", err)
	}
	free, err := hostfs.Lock(h.Project().Lock())
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, hostfs.ChownToUser(w.here, at), free()) }()
	s, resumed, err := learner.Open(h, task, w.player.Agent.Name, w.model(), w.cycles, time.Now())
	if err != nil {
		return s, err
	}
	w.printer.show(learner.BeginText(h, s, resumed))
	s, err = w.play(ctx, s)
	if err == nil || ctx.Err() != nil {
		w.printer.show(learner.EndText(h, s))
	}
	if err == nil && s.Best() == 0 {
		err = fmt.Errorf("none of %d cycles wrote a program that runs: %s; the lessons are saved",
			len(s.Log), s.Last().Failure)
		return s, exit.With(exit.Stuck, err,
			"see "+h.Rel(h.Cycle(s.Cycle))+"; the next session on this task uses the lessons")
	}
	return s, withRecords(exit.OnEngine(err))
}

// play runs the session to its end.
func (w *work) play(ctx context.Context, s learner.State) (learner.State, error) {
	budget := time.Duration(w.conf.Loop.OutageBudget)
	x := &learner.Session{
		Home:  w.home,
		Show:  w.printer.show,
		Clean: w.in.Safe.Whole,
		Sleep: call.Sleep,
		Policy: func() call.Policy {
			return call.Policy{Now: time.Now(), Jitter: rand.Float64(), Budget: budget}
		},
	}
	closed, err := w.open(ctx, w, x, s)
	if err == nil {
		s, err = x.Play(ctx, s)
		closed(err)
	}
	return s, err
}

// withRecords adds a hint to the error of an agent: where its records are. abl logs does not show them.
func withRecords(err error) error {
	if errors.Is(err, call.ErrAgent) {
		return exit.With(exit.Agent, err, "see the records in .abl/logs/calls of the project, then run the same command again")
	}
	return err
}

// opener opens the environment for the calls of a session, and sets it in the session. Tests have one
// without an engine.
type opener func(context.Context, *work, *learner.Session, learner.State) (closed func(why error), err error)

// openPlace opens an environment on the engine. If it fails it removes what it created.
func openPlace(ctx context.Context, w *work, x *learner.Session, s learner.State) (func(error), error) {
	book, account := w.accounts(s.Session)
	if err := book.Ready(); err != nil {
		return nil, err
	}
	env, err := environment.Open(ctx, environment.Options{
		Project:   w.home.Project(),
		ID:        s.ID,
		State:     w.home.State(),
		Phase:     s.Session,
		Conf:      w.conf,
		Root:      w.root,
		CACert:    w.in.String("ca-cert"),
		Offline:   w.in.Bool("offline"),
		Weak:      w.in.Bool(cli.WeakFlag),
		Safe:      w.in.Safe,
		Note:      w.printer.Note,
		NoteImage: w.printer.Note,
	})
	if err != nil {
		return nil, err
	}
	enter := func(cycle int, o roles.Outcome) error { return book.Append(orchestrator.Rows(s.Session, cycle, o)) }
	c := &learner.Containers{
		Env:    env,
		Agent:  w.player.Agent,
		Model:  w.model(),
		Effort: w.player.Efforts[0],
		Out:    w.printer,
		Enter:  enter,
	}
	closed := func(why error) {
		account.TellSpent()
		_, _ = env.Close(ctx, why) // Close prints what it cannot remove
	}
	x.Calls, x.Admit = c, account.Admit
	x.Hosts, err = w.prepare(ctx, c, environment.Access{
		Prices: money.Of(w.prices, []string{w.model()}), Budget: account.Left, Spent: account.Spent,
	})
	if err = errors.Join(err, ctx.Err()); err != nil {
		closed(err)
	}
	return closed, err
}

// accounts returns the ledger and the account of a session's calls. For budgets, a session is a phase.
func (w *work) accounts(session int) (money.Book, *money.Account) {
	at := w.home.Project()
	used := func(key string) (money.Spendings, error) { return money.Spent(at, w.prices, session, key) }
	words := money.Words{Again: "the same command and", Safe: "everything is saved"}
	return money.Book{Ledger: ledger.Open(at.Ledger()), List: w.prices, Hide: w.in.Safe.Redact, Note: w.printer.Note},
		&money.Account{Conf: w.conf, Used: used, Words: words, Note: w.printer.Note}
}

// prepare builds the agent's image and opens its gateways: to the model, and for calls that write a program
// also to the hosts of network.allow. It returns these hosts.
func (w *work) prepare(
	ctx context.Context, c *learner.Containers, access environment.Access,
) (hosts []string, err error) {
	of, want := w.conf.Directories, images.Want{
		Agent:     c.Agent.Image,
		Version:   c.Agent.Version,
		NPM:       c.Agent.NPM,
		Toolchain: w.conf.Toolchain,
	}
	want.Dockerfile, err = environment.Dockerfile(w.root, w.conf.Images.Builder.Dockerfile,
		environment.Path(w.root, of.Src), environment.Path(w.root, of.Tests), filepath.Join(w.here, learner.Folder))
	if err != nil {
		return nil, err
	}
	if c.Image, err = c.Env.Images.Ensure(ctx, want); err != nil {
		return nil, fmt.Errorf("cannot build the agent's image: %w", err)
	}
	access.Place, access.Agent, access.Models = boundary.PlaceBuilder, c.Agent, []string{c.Model}
	if c.Gate, err = c.Env.Gate(ctx, access); err != nil {
		return nil, err
	}
	access.Fetch = true
	if c.AuthorGate, err = c.Env.Gate(ctx, access); err != nil || c.AuthorGate == nil {
		return nil, err
	}
	return c.AuthorGate.Hosts, nil
}
