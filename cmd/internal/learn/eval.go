package learn

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/cmd/internal/money"
	"abl/internal/hostfs"
	"abl/orchestrator/learner"
	"abl/orchestrator/learner/trial"
	"abl/orchestrator/ledger"
	"abl/orchestrator/prices"
	"abl/orchestrator/project"
)

func evalCommand() cli.Command {
	return cli.Command{
		Name: "eval", Group: cli.Looking, Args: "TASKS.yaml", MinArgs: 1, MaxArgs: 1,
		Usage: "does what was learned pay? try tasks with and without it",
		Long: `Tries each task with the learned files of a project (memory.txt, mistakes.txt,
prompts.md) and without them, in projects of its own, and puts success, attempts,
tokens and cost side by side. A try is a new project; it has succeeded when a
program runs, within so many attempts, and nothing is learned in it. What is done
is not done again: the same command goes on where it was stopped.`,
		Examples: "agent-learner eval tasks.yaml --agent gemini --learned solutions/a-web-server\nagent-learner eval tasks.yaml --agent scripted --scenario scenario.yaml",
		Flags: slices.Concat([]cli.Flag{
			{Name: "agent", Short: "a", Value: "NAME", Default: offered()[0].name, Values: agentNames(), Open: true, Usage: "who is tried; also an agent of the settings"},
			{Name: "model", Short: "m", Value: "NAME", Usage: "its model, the default one unless given"},
			{Name: "learned", Value: "DIR", Usage: "a project in solutions/; each task's own unless given"},
			{Name: "attempts", Value: "N", Default: "3", Usage: "at most so many in a try, 1 to 10"},
			{Name: "repeat", Value: "N", Default: "3", Usage: "tries of each task on each side, 1 to 100"},
		}, placeFlags(), []cli.Flag{{Name: "json", Usage: "one JSON document on stdout (docs/json.md)"}}, money.Flags(), ground.NetworkFlags(), ground.ImageFlags()),
		Run: runEval,
	}
}

// evaluation is one run of eval.
type evaluation struct {
	w       *work
	o       options
	tasks   []trial.Task
	learned []string // of each task
	repeat  int
	folder  string // in solutions, where the trials are
}

// evalReport is what `learn eval --json` prints.
type evalReport struct {
	trial.Comparison
	Agent    string        `json:"agent"`
	Model    string        `json:"model"`
	Attempts int           `json:"max_attempts"`
	Trials   []trial.Tried `json:"trials"`
}

func runEval(ctx context.Context, in *cli.Input) error {
	e, err := openEval(in)
	if err != nil {
		return err
	}
	var all []trial.Tried
	for n := 1; n <= e.repeat; n++ { // the sides in turn: what changes with time touches both alike
		for i := range e.tasks {
			for _, with := range []bool{false, true} {
				t, err := e.try(ctx, i, n, with)
				if err != nil {
					return exit.Because(ctx, settle(err))
				}
				all = append(all, t)
			}
		}
	}
	r := evalReport{trial.Compare(all), e.o.agent.name, e.o.model, e.o.cycles, all}
	if in.Bool("json") {
		return in.JSON(r)
	}
	return e.show(r)
}

func openEval(in *cli.Input) (*evaluation, error) {
	e := &evaluation{o: options{runtime: in.String("runtime")}}
	var err error
	if e.w, err = openWork(in, e.o.runtime); err != nil {
		return nil, err
	}
	if e.o.agent, err = e.w.choose(in.String("agent")); err != nil {
		return nil, err
	}
	e.o.model = e.o.agent.model
	if in.Set("model") {
		if e.o.model, err = modelName(in.String("model")); err != nil {
			return nil, err
		}
	}
	if e.o.cycles, err = between(in, "attempts", learner.MaxCycles); err != nil {
		return nil, err
	}
	const most = 100
	if e.repeat, err = between(in, "repeat", most); err != nil {
		return nil, err
	}
	text, err := readFile(in.Args[0])
	if err != nil {
		return nil, err
	}
	if e.tasks, err = trial.Parse(in.Args[0], []byte(text)); err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	if err := e.w.playable(e.o); err != nil {
		return nil, settle(err)
	}
	return e, e.find(in.String("learned"))
}

func between(in *cli.Input, name string, most int) (int, error) {
	n, err := in.Int(name)
	if err == nil && (n < 1 || n > most) {
		err = cli.Usagef("--%s is %d, want 1 to %d", name, n, most)
	}
	return n, err
}

// find looks for what was learned. The folder of the trials goes by it, so that
// trials with other lessons, another agent or other tasks are others.
func (e *evaluation) find(dir string) error {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q %d\n", e.o.agent.name, e.o.model, e.o.runtime, e.o.cycles)
	for _, t := range e.tasks {
		at := filepath.Join(e.w.here, learner.Folder, learner.Name(t.Task))
		if dir != "" {
			real, err := project.Real(dir)
			if err != nil {
				return exit.With(exit.Usage, fmt.Errorf("cannot open --learned: %w", err), "")
			}
			at = real
		}
		home := learner.Home{Root: at}
		if !home.Learned() {
			return exit.With(exit.Usage, fmt.Errorf("nothing was learned in %s", home.Rel(at)), "learn first, agent-learner \"TASK\", or name a project that has learned with --learned")
		}
		e.learned = append(e.learned, at)
		fmt.Fprintf(h, "%q %q\n", t.Task, t.Expect)
		for _, name := range []string{learner.MemoryFile, learner.MistakesFile, learner.PromptsFile} {
			text, err := readFile(filepath.Join(at, name))
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return err
			}
			fmt.Fprintf(h, "%q\n", text)
		}
	}
	e.folder = filepath.Join(learner.TrialFolder, hex.EncodeToString(h.Sum(nil))[:12])
	return nil
}

// try makes one trial, or finds what came of it.
func (e *evaluation) try(ctx context.Context, i, n int, with bool) (t trial.Tried, err error) {
	task, side := e.tasks[i], map[bool]string{false: "without", true: "with"}[with]
	t = trial.Tried{Task: task.Task, With: with, Number: n}
	name := filepath.Join(e.folder, fmt.Sprintf("task%d-%s-%d", i+1, side, n))
	h := learner.Home{Root: filepath.Join(e.w.here, learner.Folder, name)}
	if err := hostfs.MkdirAll(e.w.here, filepath.Join(learner.Folder, name, project.Dir)); err != nil {
		return t, err
	}
	free, err := hostfs.Lock(filepath.Join(h.Private(), "lock"))
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, free()) }()
	learned := ""
	if with {
		learned = e.learned[i]
	}
	s, err := learner.OpenTrial(h, learned, task.Task, task.Expect, e.o.agent.name, e.o.model, e.o.cycles, time.Now())
	if err != nil {
		return t, err
	}
	if s.Step != learner.Done {
		e.w.in.Say("trial %d of %q %s the learned files", n, task.Task, side)
		e.w.home, e.w.tell = h, besides(e.w.in)
		if s, err = e.w.play(ctx, s, e.o); err != nil {
			return t, err
		}
	}
	t.OK, t.Attempts, t.Failure = s.Best() > 0, len(s.Log), s.Last().Failure
	return t, e.cost(h, &t)
}

// cost adds what a trial used, where all of it is known.
func (e *evaluation) cost(h learner.Home, t *trial.Tried) error {
	list, err := money.Prices(e.w.root, e.w.conf)
	if err != nil {
		return err
	}
	tokens, usd, err := money.Known(ledger.Open(filepath.Join(h.Private(), "logs", "tokens.csv")), list)
	if t.Tokens = tokens; usd != nil {
		cost := float64(*usd) / float64(prices.Dollar)
		t.CostUSD = &cost
	}
	return err
}

// show prints both sides.
func (e *evaluation) show(r evalReport) error {
	out, percent := e.w.in.Stdout, func(i trial.Interval) string {
		return fmt.Sprintf("%.0f %% (%.0f to %.0f)", 100*i.Value, 100*i.Low, 100*i.High)
	}
	fmt.Fprintf(out, "%s, %s of each on each side, at most %s; %s (%s)\n\n", plural(len(e.tasks), "task"), plural(e.repeat, "trial"), plural(r.Attempts, "attempt"), r.Agent, r.Model)
	const columns = "%-10s  %-22s  %-22s  %s\n"
	var b strings.Builder
	fmt.Fprintf(&b, columns, "", "without learned files", "with learned files", "difference")
	fmt.Fprintf(&b, columns, "success", percent(r.Without.Success), percent(r.With.Success), fmt.Sprintf("%+.0f points (%+.0f to %+.0f)", 100*r.Success.Value, 100*r.Success.Low, 100*r.Success.High))
	fmt.Fprintf(&b, columns, "attempts", fmt.Sprintf("%.1f", r.Without.Attempts), fmt.Sprintf("%.1f", r.With.Attempts), between95("%+.1f", r.Comparison.Attempts))
	fmt.Fprintf(&b, columns, "tokens", known("%.0f", r.Without.Tokens), known("%.0f", r.With.Tokens), between95("%+.0f", r.Tokens))
	fmt.Fprintf(&b, columns, "USD", known("%.4f", r.Without.CostUSD), known("%.4f", r.With.CostUSD), between95("%+.4f", r.CostUSD))
	b.WriteString("\nMeans of a trial, and 95 % confidence intervals: of shares by Wilson, of their\ndifference by Newcombe, of other differences by a percentile bootstrap.\n")
	b.WriteString(map[trial.Verdict]string{
		trial.Pays: "What was learned pays.\n", trial.Hurts: "What was learned does harm.\n",
		trial.Unclear: "Whether what was learned pays cannot be told from these trials; more of them (--repeat) narrow the intervals.\n",
	}[r.Verdict])
	_, err := fmt.Fprint(out, b.String())
	return err
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func known(form string, v *float64) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf(form, *v)
}

func between95(form string, i *trial.Interval) string {
	if i == nil {
		return "unknown"
	}
	return fmt.Sprintf(form+" ("+form+" to "+form+")", i.Value, i.Low, i.High)
}
