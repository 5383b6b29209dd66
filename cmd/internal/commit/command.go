// Package commit is the program code-commit: the same commands as `code-commit`
// and as `abl code-commit`. What a run does is orchestrator/codecommit's.
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
	"abl/cmd/internal/trust"
	"abl/internal/sandbox"
	"abl/orchestrator/codecommit"
	"abl/roles/environment"
	"abl/roles/model"
)

// Command is code-commit under a name, "" for the program itself.
func Command(name string) cli.Command {
	self, aliases := "code-commit", []string(nil)
	if name != "" {
		self, aliases = "abl "+name, []string{"commit"}
	}
	return cli.Command{
		Name: name, Aliases: aliases, Group: cli.Running, Usage: "one call of a model, a build, and a few repairs",
		Long: `Reads agent-config/query.txt and agent-config/codeRollup.txt, asks a model for the
change, checks its answer as a whole, applies it as a whole, and runs build.sh.
While the build is red, the model is asked to repair it. git status and git diff
show all that was changed; the call, the answer and the build are in logs/.

Nobody watches build.sh: on this machine it runs as you do, on code that a model
wrote. --build-on container runs it in a box instead, which reaches the hosts of
network.allow in .abl/config.yaml, or nothing.`,
		Flags:    append(flags(), cli.EnvironmentFlags()...),
		Examples: self + " init\n./codeRollup.sh && " + self + "\n" + self + " --model gpt-5 --dry-run\n" + self + " --cc",
		Subs:     []cli.Command{initCommand(self), cleanCommand(self)},
		Codes:    Codes(),
		Run:      opened(self, run),
	}
}

// opened is a command that begins with a session; self is what the person calls
// the program.
func opened(self string, do func(context.Context, *session) error) func(context.Context, *cli.Input) error {
	return func(ctx context.Context, in *cli.Input) error {
		s, err := open(in, self)
		if err == nil {
			err = do(ctx, s)
		}
		return err
	}
}

// Codes are what exit codes mean here.
func Codes() []exit.Entry {
	return []exit.Entry{
		{Code: exit.Passed, Meaning: "the build passes (or: the report or plan was made)"},
		{Code: exit.Bug, Meaning: "unexpected error (a bug)"},
		{Code: exit.Usage, Meaning: "wrong usage, or something is missing or unsafe; no model was asked"},
		{Code: exit.Stuck, Meaning: "the build is still red after the last attempt"},
		{Code: exit.Unverified, Meaning: "the last answer was malformed or touched a protected path"},
		{Code: exit.Agent, Meaning: "the provider refused: the key, the request, or by holding the answer back"},
		{Code: exit.Environment, Meaning: "the environment failed: disk, engine, or a tool that the container lacks"},
		{Code: exit.Boundary, Meaning: "the engine cannot keep a build in a container apart"},
		{Code: exit.Person, Meaning: "you must decide: the tree has changes (--require-clean), or changed meanwhile"},
		{Code: exit.Busy, Meaning: "another code-commit works on this project"},
		{Code: exit.Away, Meaning: "the provider is unavailable or limits the rate; try again later"},
		{Code: exit.HUP, Meaning: "hung up"},
		{Code: exit.INT, Meaning: "interrupted"},
		{Code: exit.TERM, Meaning: "terminated"},
	}
}

func flags() []cli.Flag {
	return []cli.Flag{
		{Name: "model", Value: "NAME", Default: model.Gemini, Values: model.Known().Names(), Open: true, Usage: "who is asked; agent-config/models lists others"},
		{Name: "consistency-check", Usage: "report on what does not fit together, and change nothing; also --consistency and --cc"},
		{Name: "consistency", Hidden: true, Usage: "the same"},
		{Name: "cc", Hidden: true, Usage: "the same"},
		{Name: "dry-run", Usage: "ask once and show what would change; nothing is written but logs"},
		{Name: "max-repairs", Value: "N", Usage: "how often the model is asked to repair (default 3; v1: 7)"},
		{Name: "on-parse-error", Value: "WHAT", Default: "repair", Values: []string{"repair", "abort"}, Usage: "when an answer cannot be used"},
		{Name: "build-on", Value: "WHERE", Default: "host", Values: []string{"host", "container"}, Usage: "where build.sh runs"},
		{Name: "build-timeout", Value: "TIME", Default: "1h", Usage: "stop the build after TIME and count it as failed"},
		{Name: "timeout", Value: "TIME", Default: "20m", Usage: "how long the provider may take to answer one try"},
		{Name: "retries", Value: "N", Default: "4", Usage: "further tries when the provider is unavailable or limits the rate"},
		{Name: "require-clean", Usage: "refuse to start while git status shows changes"},
		{Name: "print-protected", Usage: "print what no answer may touch, and stop"},
		{Name: "log-dir", Value: "DIR", Default: "logs", Usage: "where the folder of this run's logs is made"},
		{
			Name: "protocol", Value: "NAME", Default: codecommit.V2, Env: "CODE_COMMIT_PROTOCOL", Values: []string{codecommit.V1, codecommit.V2},
			Usage: "v1 is that of earlier projects: query.txt and four kinds of fences",
		},
		{Name: "json", Usage: "print one JSON document (docs/json.md)"},
	}
}

// run does what the flags say; at most one of those that choose what is given.
func run(ctx context.Context, s *session) error {
	report := s.in.Bool("consistency-check") || s.in.Bool("consistency") || s.in.Bool("cc")
	list, dry := s.in.Bool("print-protected"), s.in.Bool("dry-run")
	switch {
	case report && list, report && dry, list && dry:
		return cli.Usagef("--consistency-check, --print-protected and --dry-run are different things to do: give one of them")
	case list:
		return s.printProtected()
	}
	if err := trust.Check(ctx, s.in, s.project.Root, s.conf); err != nil {
		return err
	}
	if report {
		return s.consistency(ctx)
	}
	return s.change(ctx)
}

func (s *session) printProtected() error {
	guard, err := s.project.Guard()
	if err != nil {
		return err
	}
	list := guard.List()
	return s.in.Show(map[string]any{"protocol": s.project.Name, "protected": list}, func(w io.Writer) {
		for _, what := range list {
			fmt.Fprintln(w, what)
		}
	})
}

// Main is the program code-commit without the process around it.
func Main(ctx context.Context, version string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := Command("")
	root.Subs = append(root.Subs, cli.Completion("code-commit"))
	return cli.Main(ctx, cli.App{
		Name: "code-commit", Version: version, Usage: root.Usage,
		Flags: []cli.Flag{{Name: "project", Short: "C", Value: "DIR", Usage: "the project, when it is not the current directory"}, trust.Flag},
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
		keys := p.KeyFile(model.Google)
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
