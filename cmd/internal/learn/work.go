package learn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/orchestrator/learner"
	"abl/orchestrator/project"
	"abl/roles/agent"
	"abl/roles/fate"
)

// work is the directory that solutions stands in, and what is known of it.
type work struct {
	in   *cli.Input
	here string // real path of the directory
	root string // the abl project around it, for settings and .env; or here
	conf *config.Loaded
	home learner.Home // of the last task
	tell *teller
	open opener
}

// calls is where agents and programs of a session run.
type calls interface {
	learner.Caller
	// Hosts are those that an author can reach besides the model.
	Hosts() []string
	// Close takes down what it has made; why is what ended the session.
	Close(ctx context.Context, why error) error
}

// opener makes them ready for a session. Tests have one without an engine.
type opener func(context.Context, *work, learner.State) (calls, error)

// openWork reads the settings. It changes nothing.
func openWork(in *cli.Input, open opener) (*work, error) {
	here, err := project.Real(".")
	if err != nil {
		return nil, fmt.Errorf("cannot work here: %w", err)
	}
	w := &work{in: in, here: here, root: here, tell: newTeller(in), open: open}
	if root, err := project.Find(here); err == nil {
		w.root = root
	}
	weak := ground.HideSecrets(in, w.root)
	set := map[string]string{}
	money.Settings(in, set)
	if w.conf, err = config.Load(w.root, os.LookupEnv, set); err != nil {
		return nil, settle(err)
	}
	if err := money.Raise(in, &w.conf.Config); err != nil {
		return nil, err
	}
	for _, text := range append(w.conf.Warnings, weak...) {
		in.Warn(text)
	}
	return w, nil
}

// secret is a key or an address: .env first, then the environment.
func (w *work) secret(name string) string {
	if v := w.conf.Dotenv[name]; v != "" {
		return v
	}
	return os.Getenv(name)
}

var modelWord = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:/@-]*$`)

func modelName(name string) (string, error) {
	if !modelWord.MatchString(name) {
		return "", cli.Usagef("%q is not the name of a model", name)
	}
	return name, nil
}

// learn plays a session on a task: a new one, or the one that was interrupted.
func (w *work) learn(ctx context.Context, task string, o options) (s learner.State, err error) {
	if task = strings.TrimSpace(task); task == "" {
		return s, cli.Usagef("the task is empty")
	}
	if err := w.playable(o); err != nil {
		return s, settle(err)
	}
	return w.learnAt(ctx, learner.Home{Root: filepath.Join(w.here, learner.Folder, learner.Name(task))}, task, o)
}

// playable says what is missing for an agent, before anything is made.
func (w *work) playable(o options) error {
	a, err := w.agents().Find(o.agent)
	if err != nil {
		return err
	}
	model, err := agent.FullName(a, o.model)
	if err != nil {
		return exit.With(exit.Usage, err, "name one model with --model")
	}
	vars, served := agent.ProviderOf(a)
	switch {
	case !served:
		return nil
	case w.secret(vars.KeyVar) == "":
		return noKey(vars.KeyVar)
	case !w.conf.NeedsPrices():
		return nil
	}
	list, err := money.Prices(w.root, w.conf)
	if err != nil {
		return err
	}
	if len(money.Of(list, []string{model})) == 0 {
		return money.Unpriced("the model "+model+" has no price", model)
	}
	return nil
}

func (w *work) learnAt(ctx context.Context, h learner.Home, task string, o options) (s learner.State, err error) {
	w.home = h
	if err := hostfs.MkdirAll(w.here, filepath.Join(learner.Folder, filepath.Base(h.Root), project.Dir)); err != nil {
		return s, settle(fmt.Errorf("cannot make the project: %w", err))
	}
	free, err := hostfs.Lock(filepath.Join(h.Private(), "lock"))
	if err != nil {
		return s, settle(err)
	}
	defer func() { err = errors.Join(err, free()) }()
	s, resumed, err := learner.Open(h, task, o.agent, o.model, o.cycles, time.Now())
	if err != nil {
		return s, settle(err)
	}
	learner.TellBegin(w.tell, h, s, resumed)
	s, err = w.play(ctx, s)
	if err == nil || ctx.Err() != nil {
		learner.TellEnd(w.tell, h, s)
	}
	if err != nil {
		return s, exit.Because(ctx, settle(err))
	}
	if s.Best() == 0 {
		return s, noneWorked(h, s)
	}
	return s, nil
}

// play takes the session to its end.
func (w *work) play(ctx context.Context, s learner.State) (_ learner.State, err error) {
	x := &learner.Session{
		Home: w.home, Tell: w.tell, Clean: w.in.Outlet.Whole, Now: time.Now, Jitter: rand.Float64, Budget: time.Duration(w.conf.Loop.OutageBudget), Sleep: fate.Sleep,
	}
	b, err := w.open(ctx, w, s)
	if err != nil {
		return s, ground.OnEngine(err)
	}
	x.Calls, x.Hosts = b, b.Hosts()
	s, err = x.Play(ctx, s)
	if cerr := b.Close(ctx, err); cerr != nil {
		w.in.Warn(cerr)
	}
	return s, ground.OnEngine(err)
}

// settle gives an error its exit code and says what to do about it, whichever
// program it is an error of.
func settle(err error) error {
	var known *exit.Error
	var usage *cli.UsageError
	if err == nil || errors.As(err, &known) || errors.As(err, &usage) || errors.Is(err, context.Canceled) {
		return err
	}
	do := ground.Hint(err)
	if do == "" && errors.Is(err, fate.ErrAgent) {
		do = "see the records in .abl/logs/calls of the project, then run the same command again"
	}
	return exit.With(ground.Rules().Code(err), err, do)
}
