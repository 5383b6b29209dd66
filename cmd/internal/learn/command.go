// Package learn has the commands of agent-learner and `abl learn`: flags, the environment of a session,
// the interactive mode and the output. Package orchestrator/learner has the workflow.
package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/cmd/internal/trust"
	"abl/cmd/internal/view"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/orchestrator/learner"
	"abl/roles/agent"
	"abl/roles/environment"
)

// Command returns `abl learn`.
func Command() cli.Command { return command(openPlace) }

func command(open opener) cli.Command {
	return cli.Command{
		Name:    "learn",
		Aliases: []string{"agent-learner"},
		Group:   cli.Running,
		Args:    "[TASK]",
		Usage:   "let an agent solve a task in cycles and learn from each",
		Long: `In each cycle an agent writes a program and abl starts it. Then the agent writes a
review, lessons, mistakes and a better prompt, which the next cycle uses.

solutions/NAME keeps them for later sessions with the same NAME, which is the beginning of
TASK: memory.txt, mistakes.txt, prompts.md, cycle-N/, and code/ with the last program that
ran. The same command resumes an interrupted session.

Agents and programs run in containers that see only the cycle's folder. Without TASK on a
terminal, or with --repl, it asks for tasks.`,
		Examples: "abl learn \"a web server that tells the time\" --agent gemini\nabl learn --repl",
		Flags: slices.Concat([]cli.Flag{
			{
				Name:   "agent",
				Short:  "a",
				Value:  "NAME",
				Values: agent.Names(),
				Open:   true,
				Usage:  "agent to use (default: the Builder's, docs/agents.md)",
			},
			{Name: "model", Short: "m", Value: "NAME", Usage: "model to use (default: as in a phase)"},
			{
				Name:    "cycles",
				Short:   "c",
				Value:   "N",
				Default: fmt.Sprint(learner.DefaultCycles),
				Usage:   "learning cycles, 1 to 10",
			},
			{Name: "repl", Usage: "read one task after another"},
			{Name: "scenario", Value: "FILE", Usage: "script of the scripted agent, which needs no model"},
			{Name: "json", Usage: "print one JSON document at the end (docs/json.md)"},
		}, money.Flags(), cli.EnvironmentFlags()),
		Codes: codes(),
		Run:   func(ctx context.Context, in *cli.Input) error { return run(ctx, in, open) },
		Subs:  []cli.Command{debugCommand(), cleanCommand()},
	}
}

// codes returns the exit codes of a session.
func codes() []exit.Entry {
	return exit.EntriesOf(map[int]string{
		exit.Passed:     "a cycle wrote a program that runs",
		exit.Usage:      "wrong usage or settings; no agent was called",
		exit.Stuck:      "no cycle wrote a program that runs",
		exit.Unverified: "",
		exit.Person:     "you must decide: a file of the session is damaged or from a newer abl",
	})
}

func run(ctx context.Context, in *cli.Input, open opener) error {
	w, err := openWork(in, open)
	if err != nil {
		return err
	}
	if err := trust.Check(ctx, in, w.root, w.conf); err != nil {
		return err
	}
	if in.Bool("repl") || len(in.Args) == 0 && !in.Bool("json") && view.Terminal(in.Stdin) != nil {
		return w.repl(ctx, in.Args)
	}
	if len(in.Args) == 0 {
		return cli.WithHint("add a task, such as \"a web server that tells the time\", or --repl for the interactive mode",
			"a task is missing")
	}
	s, err := w.learn(ctx, in.Args[0])
	if in.Bool("json") && s.Session > 0 {
		err = cmp.Or(err, in.JSON(sessionReport{
			Project: w.home.Rel(w.home.Root),
			Task:    s.Task,
			Agent:   s.Agent,
			Model:   s.Model,
			Session: s.Session,
			Done:    s.Step == learner.Done,
			Best:    s.Best(),
			Cycles:  s.Log,
		}))
	}
	return err
}

// app returns the program agent-learner.
func app(version string, open opener) cli.App {
	root := command(open)
	root.Name, root.Aliases = "", nil
	root.Examples = strings.ReplaceAll(root.Examples, "abl learn", "agent-learner")
	root.Subs = append(root.Subs, cli.Completion("agent-learner"))
	return cli.App{Name: "agent-learner", Version: version, Usage: root.Usage, Flags: []cli.Flag{trust.Flag}, Root: &root}
}

// Main runs agent-learner, which has the command line of `abl learn`, and returns its exit code.
func Main(ctx context.Context, version string, args []string, std [3]*os.File) int {
	return cli.Main(ctx, app(version, openPlace), args, std[0], std[1], std[2])
}

// sessionReport is what `learn --json` prints.
type sessionReport struct {
	Project string `json:"project"` // its folder
	Task    string `json:"task"`
	Agent   string `json:"agent"`
	Model   string `json:"model"`
	Session int    `json:"session"` // counted from 1 in the project
	Done    bool   `json:"done"`    // false: the same command resumes it
	Best    int    `json:"best"`    // the cycle of the program in code/, 0 for none

	Cycles []learner.Cycle `json:"cycles"`
}

func cleanCommand() cli.Command {
	return cli.Command{
		Name:  "clean",
		Group: cli.Maintenance,
		Usage: "remove the containers and networks of sessions",
		Long: `Removes the containers, volumes and networks of the projects in solutions/ from the
engine, except those of a project that a run works on. It never touches programs and
lessons.`,
		Run: runClean,
	}
}

func runClean(ctx context.Context, in *cli.Input) error {
	here, err := state.Real(".")
	if err != nil {
		return fmt.Errorf("cannot resolve the current directory: %w", err)
	}
	eng, _, err := environment.Connect(ctx)
	if err != nil {
		return exit.OnEngine(err)
	}
	defer eng.Close()
	removed, err := Clean(ctx, in, here, eng)
	if err == nil && removed == 0 {
		fmt.Fprintln(in.Stdout, "nothing to remove")
	}
	return exit.OnEngine(err)
}

// Clean removes what the projects in the solutions folder of a directory left on the engine. It prints each
// removed name and returns their number.
func Clean(ctx context.Context, in *cli.Input, here string, eng environment.Sweeper) (removed int, err error) {
	for _, h := range learner.Projects(filepath.Join(here, learner.Folder)) {
		names, cerr := cleanOne(ctx, here, h, eng)
		for _, name := range names {
			fmt.Fprintln(in.Stdout, "removed", name)
		}
		removed += len(names)
		if errors.Is(cerr, hostfs.ErrHeld) {
			in.Say("skipped %s: a run works on it", h.Rel(h.Root))
		} else if cerr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", h.Rel(h.Root), cerr))
		}
	}
	return removed, err
}

// cleanOne cleans up after one project. It fails with hostfs.ErrHeld if a run works on the project.
func cleanOne(ctx context.Context, here string, h learner.Home, eng environment.Sweeper) (removed []string, err error) {
	free, err := hostfs.Lock(h.Project().Lock())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, free()) }()
	s, err := learner.Load(h)
	if err == nil {
		err = h.Abandon(s)
	}
	if err == nil {
		removed, err = eng.Sweep(ctx, map[string]string{sandbox.LabelProject: s.ID}, nil)
		earlier, eerr := environment.SweepEarlier(ctx, eng, h.State(), s.ID)
		removed, err = append(removed, earlier...), errors.Join(err, eerr)
	}
	sweep := errors.Join(hostfs.SweepTemps(h.Private()), hostfs.SweepTemps(h.Root))
	return removed, errors.Join(err, sweep, hostfs.ChownToUser(here, h.Rel(h.Root)))
}

func debugCommand() cli.Command {
	return cli.Command{
		Name:  "debug",
		Group: cli.Maintenance,
		Usage: "show how the learner parses files",
		Subs: []cli.Command{{
			Name:   "parse",
			Args:   "review|learnings|mistakes FILE",
			Values: []string{"review", "learnings", "mistakes"},
			Usage:  "parse a file as the answer of an agent",
			Flags:  []cli.Flag{cli.JSONFlag()},
			Run:    debugParse,
		}, {
			Name:  "prompts",
			Args:  "PROMPTS.md ANSWER",
			Usage: "print prompts.md after an answer with an improved prompt",
			Run:   debugPrompts,
		}},
	}
}

func debugParse(_ context.Context, in *cli.Input) error {
	text, err := readFile(in.Args[1])
	if err != nil {
		return err
	}
	var found interface{ Summary() string } = learner.ParseReview(text)
	labels := map[string]string{"learnings": learner.LabelLearning, "mistakes": learner.LabelMistake}
	if label, is := labels[in.Args[0]]; is {
		found = learner.ParseLessons(label, text)
	}
	return in.Show(found, func(w io.Writer) { fmt.Fprint(w, found.Summary()) })
}

func debugPrompts(_ context.Context, in *cli.Input) error {
	old, err := readFile(in.Args[0])
	if err != nil {
		return err
	}
	answer, err := readFile(in.Args[1])
	if err != nil {
		return err
	}
	next := learner.ParsePrompts(old).Next(learner.Improved(answer), time.Now())
	_, err = fmt.Fprint(in.Stdout, next.Render())
	return err
}

// readFile reads a file of the command line.
func readFile(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		err = exit.With(exit.Usage, fmt.Errorf("cannot read the file: %w", err), "")
	}
	return string(data), err
}
