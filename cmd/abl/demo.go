package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"abl"
	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/hostfs"
	"abl/roles/environment"
)

func demoCommand() cli.Command {
	var o runOptions
	return cli.Command{
		Name:  "demo",
		Group: cli.Starting,
		Args:  "[DIR]",
		Usage: "watch a whole phase, offline and without a key",
		Long: `Copies a small project, a link shortener in two phases, to DIR (default: a new temporary
directory) and runs its first phase. Containers, networks, repositories and tests are
real; only the model is a script. The Verifier finds a failure in the first version, the
Builder fixes it, and the second version passes.`,
		Examples: "abl demo\nabl demo ./shortener --through",
		Flags:    append(project.Flags(), cli.Flag{Name: "through", To: &o.through, Usage: "run the second phase too"}),
		Run:      o.demo,
	}
}

func (o *runOptions) demo(ctx context.Context, in *cli.Input) error {
	if len(in.Args) > 0 {
		if there, err := os.ReadDir(in.Args[0]); len(there) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return cli.WithHint("name a directory that does not exist",
				"cannot write the demo: %q exists and is not an empty directory", in.Args[0])
		}
	}
	eng, _, err := environment.Connect(ctx)
	if err != nil {
		return exit.OnEngine(err)
	}
	defer eng.Close()
	dir, err := writeDemo(in.Args)
	if err != nil {
		return err
	}
	in.Say("the demo project is in %s", dir)
	s, err := project.OpenAt(in, dir)
	if err != nil {
		return err
	}
	if err := o.play(ctx, s, 0); err != nil {
		return err
	}
	if !in.Bool("json") {
		fmt.Fprintf(in.Stdout, "\nThe project is in %s. In there, abl report 1 shows the evidence for the verdict, and abl run runs the next phase.\n", dir)
	}
	return nil
}

// writeDemo copies the demo to the directory that args name, or to a new temporary one.
func writeDemo(args []string) (dir string, err error) {
	if len(args) == 0 {
		dir, err = os.MkdirTemp("", "abl-demo-")
	} else if dir, err = filepath.Abs(args[0]); err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	if err == nil {
		err = errors.Join(os.CopyFS(dir, abl.Demo()), hostfs.ChownToUser(dir, "."))
	}
	if err != nil {
		return "", fmt.Errorf("cannot write the demo: %w", err)
	}
	return dir, nil
}
