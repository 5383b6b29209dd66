package learn

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/orchestrator/learner"
	"abl/roles/agent"
	"abl/roles/environment"
	"abl/roles/retry"
)

// work is the directory that solutions stands in, and what is known of it.
type work struct {
	in   *cli.Input
	open opener
	here string // real path of the directory
	root string // the abl project around it, for settings and .env; or here
	conf *config.Loaded
	home learner.Home // of the last task
	tell *teller
}

// openWork reads the settings. It changes nothing.
func openWork(in *cli.Input, open opener) (*work, error) {
	here, err := state.Real(".")
	if err != nil {
		return nil, fmt.Errorf("cannot work here: %w", err)
	}
	w := &work{in: in, open: open, here: here, root: here, tell: newTeller(in)}
	if root, err := state.Find(here); err == nil {
		w.root = root
	}
	w.conf, err = money.Settings(in, w.root, map[string]string{})
	return w, err
}

// options are who is asked in a session, and how often.
type options struct {
	agent, model string
	cycles       int
}

// usual are the models that agents are asked with here unless a person names one
// (seed 004); any other agent is asked with its own default.
var usual = map[string]string{"claude": "sonnet", "codex": "gpt-5.2", "copilot": "claude-sonnet-4", agent.ScriptedName: agent.ScriptedName}

// defaultAgent is the one that is asked unless a person names one.
const defaultAgent = "claude"

// agents are those that can be found here.
func (w *work) agents() environment.Agents {
	return environment.Agents{Conf: w.conf, Root: w.root, Scenario: w.in.String("scenario")}
}

// names are the agents that can be chosen.
func (w *work) names() []string { return append(agent.Names(), w.agents().Own()...) }

// modelWord is the name of a model: a command line takes nothing of it for a flag.
var modelWord = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.:/@-]*$`)

// set changes one of the options. With an agent comes the model that it is asked with
// unless a person names one.
func (w *work) set(o *options, name, value string) error {
	switch name {
	case "agent":
		if !slices.Contains(w.names(), value) {
			return cli.WithHint("", "cannot find the agent %q: it is one of %s", value, strings.Join(w.names(), ", "))
		}
		model := usual[value]
		if model == "" {
			a, err := w.agents().Find(value)
			if err != nil {
				return err
			}
			model = a.DefaultModel
		}
		o.agent, o.model = value, model
	case "model":
		if !modelWord.MatchString(value) {
			return cli.Usagef("%q is not the name of a model", value)
		}
		o.model = value
	case "cycles":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > learner.MaxCycles {
			return cli.Usagef("the number of cycles is %q, want a whole number from 1 to %d", value, learner.MaxCycles)
		}
		o.cycles = n
	}
	return nil
}

// find finds who is to answer, or says what is missing, before anything is made.
func (w *work) find(o options) (who asked, err error) {
	if who.prices, err = money.Prices(w.root, w.conf); err != nil {
		return who, err
	}
	if who.agent, err = w.agents().Find(o.agent); err != nil {
		return who, err
	}
	if who.model, err = who.agent.FullName(o.model); err != nil {
		return who, exit.With(exit.Usage, err, "name one model with --model")
	}
	vars := who.agent.Provider
	key, _ := w.conf.Key(vars.KeyVar)
	switch {
	case vars.API == "": // it needs none
	case key == "":
		err = exit.With(exit.Usage, fmt.Errorf("cannot find %s", vars.KeyVar), fmt.Sprintf("add %s=… to .env or the environment, or choose another agent with --agent", vars.KeyVar))
	case w.conf.NeedsPrices() && len(money.Of(who.prices, []string{who.model})) == 0:
		err = money.Unpriced("the model "+who.model+" has no price", who.model)
	}
	return who, err
}

// learn plays a session on a task: a new one, or the one that was interrupted.
func (w *work) learn(ctx context.Context, task string, o options) (s learner.State, err error) {
	if task = strings.TrimSpace(task); task == "" {
		return s, cli.Usagef("the task is empty")
	}
	who, err := w.find(o)
	if err != nil {
		return s, err
	}
	at := filepath.Join(learner.Folder, learner.Name(task))
	h := learner.Home{Root: filepath.Join(w.here, at)}
	w.home = h
	if err := hostfs.MkdirAll(w.here, filepath.Join(at, state.Dir)); err != nil {
		return s, fmt.Errorf("cannot make the project: %w", err)
	}
	free, err := hostfs.Lock(filepath.Join(h.Private(), "lock"))
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, hostfs.HandOver(w.here, at), free()) }() // nothing is left root's
	s, resumed, err := learner.Open(h, task, o.agent, o.model, o.cycles, time.Now())
	if err != nil {
		return s, err
	}
	w.tell.show(learner.BeginText(h, s, resumed))
	s, err = w.play(ctx, s, who)
	if err == nil || ctx.Err() != nil {
		w.tell.show(learner.EndText(h, s))
	}
	if err == nil && s.Best() == 0 {
		return s, &exit.Error{
			Code: exit.Stuck, What: fmt.Sprintf("no cycle of %d made a program that runs: %s", len(s.Log), s.Last().Failure),
			Safe: "what was learned is kept", Do: "see " + h.Rel(h.Cycle(s.Cycle)) + "; the next session on this task goes on from what was learned",
		}
	}
	return s, settle(exit.OnEngine(err))
}

// play takes the session to its end.
func (w *work) play(ctx context.Context, s learner.State, who asked) (learner.State, error) {
	calls, hosts, closed, err := w.open(ctx, w, s, who)
	if err != nil {
		return s, err
	}
	x := &learner.Session{
		Home: w.home, Calls: calls, Tell: w.tell.show, Hosts: hosts, Clean: w.in.Safe.Whole, Now: time.Now, Jitter: rand.Float64,
		Budget: time.Duration(w.conf.Loop.OutageBudget), Sleep: retry.Sleep,
	}
	s, err = x.Play(ctx, s)
	closed(err)
	return s, err
}

// settle says where the records of an agent that failed are, which abl logs does not show.
func settle(err error) error {
	if errors.Is(err, retry.ErrAgent) {
		return exit.With(exit.Agent, err, "see the records in .abl/logs/calls of the project, then run the same command again")
	}
	return err
}
