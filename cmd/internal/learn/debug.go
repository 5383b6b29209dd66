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
	var found interface{ Summary() string }
	switch in.Args[0] {
	case "review":
		found = learner.ParseReview(text)
	case "learnings":
		found = learner.ParseLessons(learner.LabelLearning, text)
	case "mistakes":
		found = learner.ParseLessons(learner.LabelMistake, text)
	default:
		return cli.Usagef("cannot parse %q: it is review, learnings or mistakes", in.Args[0])
	}
	if in.Bool("json") {
		return in.JSON(found)
	}
	_, err = fmt.Fprint(in.Stdout, found.Summary())
	return err
}

func debugPrompts(_ context.Context, in *cli.Input) error {
	was, err := readFile(in.Args[0])
	if err != nil {
		return err
	}
	said, err := readFile(in.Args[1])
	if err == nil {
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
