package learn

import (
	"context"
	"fmt"
	"os"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/orchestrator/learner"
)

func debugCommand() cli.Command {
	return cli.Command{
		Name: "debug", Group: cli.Upkeep, Usage: "show what the learner makes of an answer",
		Subs: []cli.Command{
			{
				Name: "parse", Args: "review|learnings|mistakes FILE", MinArgs: 2, MaxArgs: 2, Values: []string{"review", "learnings", "mistakes"},
				Usage: "what a file is read as, when an agent answers with it",
				Flags: []cli.Flag{{Name: "json", Usage: "one JSON document (docs/json.md)"}}, Run: debugParse,
			},
			{
				Name: "prompts", Args: "PROMPTS.md ANSWER", MinArgs: 2, MaxArgs: 2, Usage: "the prompts.md that an improved prompt makes of another one",
				Run: debugPrompts,
			},
		},
	}
}

func debugParse(_ context.Context, in *cli.Input) error {
	text, err := readFile(in.Args[1])
	if err != nil {
		return err
	}
	switch in.Args[0] {
	case "review":
		return showReview(in, learner.ParseReview(text))
	case "learnings":
		return showLessons(in, learner.ParseLessons(learner.LabelLearning, text))
	case "mistakes":
		return showLessons(in, learner.ParseLessons(learner.LabelMistake, text))
	}
	return cli.Usagef("cannot parse %q: it is review, learnings or mistakes", in.Args[0])
}

func showReview(in *cli.Input, r learner.CodeReview) error {
	if in.Bool("json") {
		return in.JSON(r)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(in.Stdout, "%-12s %-7s %s\n", f.Category, f.State, f.Text)
	}
	return nil
}

func showLessons(in *cli.Input, found learner.Lessons) error {
	if in.Bool("json") {
		return in.JSON(found)
	}
	for _, item := range found.Items {
		fmt.Fprintf(in.Stdout, "- %s\n", item)
	}
	for _, d := range found.Dropped {
		in.Say("dropped: %s (%s)", d.Text, d.Why)
	}
	return nil
}

func debugPrompts(_ context.Context, in *cli.Input) error {
	was, err := readFile(in.Args[0])
	if err != nil {
		return err
	}
	said, err := readFile(in.Args[1])
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(in.Stdout, learner.ParsePrompts(was).Next(learner.Improved(said), time.Now()).Render())
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
