package learn

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/cmd/internal/money"
	"abl/orchestrator/learner"

	"golang.org/x/term"
)

// Where agents and programs run.
const (
	inContainers = "container"
	onHost       = "host"
)

// Command is `abl learn`, and all of agent-learner.
func Command() cli.Command {
	return cli.Command{
		Name: "learn", Aliases: []string{"agent-learner"}, Group: cli.Running, Args: "[TASK]", MaxArgs: 1,
		Usage: "let an agent solve a task in cycles and learn from each",
		Long: `In each cycle an agent writes a program, abl starts it, and the agent is asked
for a review, for what was done well, for mistakes and for a better prompt. What
it answers goes into the next cycle, and stays in solutions/NAME for the next
task of that name: memory.txt, mistakes.txt, prompts.md, cycle-N/, and code/ with
the last program that ran. A session that was interrupted goes on where it was.
Agents and programs run in containers that see the cycle's folder alone. Without
TASK, at a terminal, or with --repl you are asked for tasks.`,
		Examples: "abl learn \"a web server that tells the time\" --agent gemini\nabl learn --repl\nabl learn eval tasks.yaml --agent gemini",
		Flags:    flags(),
		Run:      run,
		Subs:     []cli.Command{evalCommand(), debugCommand(), cleanCommand()},
	}
}

func flags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		{Name: "agent", Short: "a", Value: "NAME", Default: offered()[0].name, Values: agentNames(), Open: true, Usage: "who writes, reviews and learns; also an agent of the settings (docs/agents.md)"},
		{Name: "model", Short: "m", Value: "NAME", Usage: "the agent's model, its default one unless given"},
		{Name: "cycles", Short: "c", Value: "N", Default: fmt.Sprint(learner.DefaultCycles), Usage: "learning cycles, 1 to 10"},
		{Name: "repl", Usage: "ask for one task after the other"},
	}, placeFlags(), []cli.Flag{{Name: "json", Usage: "one JSON document on stdout in the end (docs/json.md)"}}, money.Flags(), ground.NetworkFlags(), ground.ImageFlags())
}

func placeFlags() []cli.Flag {
	return []cli.Flag{
		{Name: "runtime", Value: "WHERE", Default: inContainers, Values: []string{inContainers, onHost}, Usage: "where agents and programs run; host gives them all that you may do"},
		{Name: "scenario", Value: "FILE", Usage: "what the scripted agent does, to try things without a model"},
	}
}

// options are what a session is started with.
type options struct {
	agent   cliAgent
	model   string
	cycles  int
	runtime string
}

func (w *work) readOptions() (o options, err error) {
	in := w.in
	if o.agent, err = w.choose(in.String("agent")); err != nil {
		return o, err
	}
	o.runtime = in.String("runtime")
	o.model = o.agent.model
	if in.Set("model") {
		if o.model, err = modelName(in.String("model")); err != nil {
			return o, err
		}
	}
	n, err := in.Int("cycles")
	if err != nil {
		return o, err
	}
	o.cycles, err = cycleCount(n)
	return o, err
}

func cycleCount(n int) (int, error) {
	if n < 1 || n > learner.MaxCycles {
		return 0, cli.Usagef("the number of cycles is %d, want 1 to %d", n, learner.MaxCycles)
	}
	return n, nil
}

func run(ctx context.Context, in *cli.Input) error {
	w, err := openWork(in, in.String("runtime"))
	if err != nil {
		return err
	}
	o, err := w.readOptions()
	if err != nil {
		return err
	}
	if in.Bool("repl") || len(in.Args) == 0 && !in.Bool("json") && interactive(in) {
		return w.repl(ctx, o, in.Args)
	}
	if len(in.Args) == 0 {
		return cli.WithHint("agent-learner \"a web server that tells the time\", or --repl to be asked for tasks", "a task is missing")
	}
	s, err := w.learn(ctx, in.Args[0], o)
	if in.Bool("json") && s.Session > 0 {
		if jerr := in.JSON(report(w.home, s)); jerr != nil && err == nil {
			err = jerr
		}
	}
	return err
}

// interactive says that a person sits at the input.
func interactive(in *cli.Input) bool {
	f, ok := in.Stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// app is agent-learner.
func app(version string) cli.App {
	root := Command()
	root.Name, root.Aliases = "", nil
	root.Examples = strings.ReplaceAll(root.Examples, "abl learn", "agent-learner")
	root.Subs = append(root.Subs, cli.Completion("agent-learner"))
	return cli.App{Name: "agent-learner", Version: version, Usage: root.Usage, Code: ground.Rules().Code, Root: &root}
}

// Main is agent-learner, whose every command line is one of `abl learn`.
func Main(ctx context.Context, version string, args []string, std [3]*os.File) int {
	return cli.Main(ctx, app(version), args, std[0], std[1], std[2])
}

// noneWorked is how a session ends in which no program ran.
func noneWorked(h learner.Home, s learner.State) error {
	return &exit.Error{
		Code: exit.Stuck, What: fmt.Sprintf("no cycle of %d made a program that runs: %s", len(s.Log), s.Last().Failure),
		Safe: "what was learned is kept", Do: "see " + h.Rel(h.Cycle(s.Cycle)) + "; the next session on this task goes on from what was learned",
	}
}
