package commit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/scaffold"
	"abl/internal/sandbox"
	"abl/orchestrator/codecommit"
	"abl/roles/environment"
	"abl/roles/model"
)

// Main is the program code-commit without the process around it.
func Main(ctx context.Context, version string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := Command("")
	root.Subs = append(root.Subs, cli.Completion("code-commit"))
	return cli.Main(ctx, cli.App{
		Name: "code-commit", Version: version, Usage: root.Usage,
		Flags: []cli.Flag{{Name: "project", Short: "C", Value: "DIR", Usage: "the project, when it is not the current directory"}},
		Root:  &root,
	}, args, stdin, stdout, stderr)
}

func initCommand(self string) cli.Command {
	return cli.Command{
		Name: "init", Usage: "make the files that a run reads",
		Long: `Makes agent-config/ with a query to fill in and a text about the project's
structure, a build.sh that fails until you say how to build, a codeRollup.sh that
collects the code, and lines in .gitignore that keep agent-config, logs and .env out
of the repository. What is there already stays as it is.`,
		Codes: Codes(),
		Flags: []cli.Flag{{Name: "json", Usage: "print one JSON document (docs/json.md)"}},
		Run:   opened(self, initialise),
	}
}

func initialise(_ context.Context, s *session) error {
	in, p := s.in, s.project
	root, err := os.OpenRoot(p.Root)
	if err != nil {
		return exit.With(exit.Usage, err, "")
	}
	defer root.Close()
	var files []scaffold.File
	for _, f := range p.FirstFiles() {
		files = append(files, scaffold.File{Path: f[0], Data: []byte(f[1])})
	}
	steps, err := scaffold.Missing(root.FS(), files)
	ignore, ierr := scaffold.AddLines(root.FS(), []string{"/" + codecommit.ConfigDir, "/logs", ".env"})
	if err = cmp.Or(err, ierr); err != nil {
		return exit.With(exit.Usage, err, "")
	}
	steps = append(steps, ignore)
	if err := scaffold.Apply(root, steps); err != nil {
		return err
	}
	return in.Show(map[string]any{"steps": steps}, func(w io.Writer) {
		for _, op := range steps {
			fmt.Fprintln(w, op)
		}
		keys := fmt.Sprintf(p.Keys, model.Google)
		in.Say("hint: fill in %s and build.sh, put your key into %s, then: ./codeRollup.sh && %s", p.Query, keys, p.Self)
	})
}

func cleanCommand(self string) cli.Command {
	return cli.Command{
		Name: "clean", Usage: "remove what a run that was killed has left",
		Long: `Puts files back that were changed by half, removes temporary files, and takes
containers, volumes and networks of this project's builds off the engine, if one
answers. The next run does so too. Logs and the ledger are never touched.`,
		Codes: Codes(),
		Flags: []cli.Flag{{Name: "log-dir", Value: "DIR", Default: "logs", Usage: "where the folders of the logs are"}},
		Run:   opened(self, clean),
	}
}

func clean(ctx context.Context, s *session) error {
	if err := CleanFiles(s.in, s.project.Root, s.project.Logs); err != nil {
		return err
	}
	eng, _, err := environment.Connect(ctx)
	if errors.Is(err, sandbox.ErrUnreachable) {
		s.in.Say("no engine answers, so none was asked for what builds in containers have left")
		return nil
	}
	if err != nil {
		return exit.OnEngine(err)
	}
	defer eng.Close()
	removed, err := Sweep(ctx, eng, s.project.Root)
	for _, name := range removed {
		fmt.Fprintln(s.in.Stdout, "removed", name)
	}
	if err == nil && len(removed) == 0 {
		fmt.Fprintln(s.in.Stdout, "nothing was left on the engine")
	}
	return exit.OnEngine(err)
}

// CleanFiles removes what a run that was killed has left in a project's files.
func CleanFiles(in *cli.Input, root, logs string) error {
	restored, err := codecommit.Project{Root: root, Logs: logs}.Tidy()
	tellRestored(in, restored)
	return err
}

// Sweep removes what runs in a project have left on an engine.
func Sweep(ctx context.Context, eng sandbox.Stores, root string) ([]string, error) {
	id := codecommit.Project{Root: root}.EngineID()
	return eng.Sweep(ctx, map[string]string{sandbox.LabelProject: id}, nil)
}
