package learn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/orchestrator/learner"
	"abl/roles/environment"
)

func cleanCommand() cli.Command {
	return cli.Command{
		Name: "clean", Group: cli.Upkeep, Usage: "remove what sessions left running on the engine",
		Long: `Removes containers, volumes and networks that carry the label of a project in
solutions/. A project at which a run is at work is left as it is. What was made
and learned is never touched.`,
		Run: runClean,
	}
}

func runClean(ctx context.Context, in *cli.Input) error {
	here, err := state.Real(".")
	if err != nil {
		return fmt.Errorf("cannot work here: %w", err)
	}
	eng, _, err := environment.Connect(ctx)
	if err != nil {
		return exit.OnEngine(err)
	}
	defer eng.Close()
	removed, err := Clean(ctx, in, here, eng)
	if err == nil && removed == 0 {
		fmt.Fprintln(in.Stdout, "nothing was left")
	}
	return exit.OnEngine(err)
}

// Clean removes what the projects in the solutions of a directory left, and says what
// and how much.
func Clean(ctx context.Context, in *cli.Input, here string, eng sandbox.Stores) (removed int, err error) {
	for _, h := range learner.Projects(filepath.Join(here, learner.Folder)) {
		names, cerr := cleanOne(ctx, here, h, eng)
		for _, name := range names {
			fmt.Fprintln(in.Stdout, "removed", name)
		}
		removed += len(names)
		if errors.Is(cerr, hostfs.ErrHeld) {
			in.Say("%s is left as it is: a run is at work there", h.Rel(h.Root))
		} else if cerr != nil {
			err = errors.Join(err, fmt.Errorf("%s: %w", h.Rel(h.Root), cerr))
		}
	}
	return removed, err
}

func cleanOne(ctx context.Context, here string, h learner.Home, eng sandbox.Stores) (removed []string, err error) {
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
	}
	sweep := errors.Join(hostfs.SweepTemps(h.Private()), hostfs.SweepTemps(h.Root))
	return removed, errors.Join(err, sweep, hostfs.HandOver(here, h.Rel(h.Root)))
}

func debugCommand() cli.Command {
	return cli.Command{
		Name: "debug", Group: cli.Upkeep, Usage: "show what the learner makes of an answer",
		Subs: []cli.Command{{
			Name: "parse", Args: "review|learnings|mistakes FILE", Values: []string{"review", "learnings", "mistakes"},
			Usage: "what a file is read as, when an agent answers with it",
			Flags: []cli.Flag{{Name: "json", Usage: "one JSON document (docs/json.md)"}}, Run: debugParse,
		}, {
			Name: "prompts", Args: "PROMPTS.md ANSWER", Usage: "the prompts.md that an improved prompt makes of another one",
			Run: debugPrompts,
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
	was, err := readFile(in.Args[0])
	said, serr := readFile(in.Args[1])
	if err = cmp.Or(err, serr); err == nil {
		_, err = fmt.Fprint(in.Stdout, learner.ParsePrompts(was).Next(learner.Improved(said), time.Now()).Render())
	}
	return err
}

// readFile reads a file that the person names.
func readFile(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		err = exit.With(exit.Usage, fmt.Errorf("cannot read the file: %w", err), "")
	}
	return string(data), err
}
