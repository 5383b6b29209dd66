// Package commit has the commands of code-commit and `abl code-commit`. Package orchestrator/codecommit
// has the workflow.
package commit

import (
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

// Command returns the command of that name, or for "" the root command of the program code-commit.
func Command(name string) cli.Command {
	self, aliases := "code-commit", []string(nil)
	if name != "" {
		self, aliases = "abl "+name, []string{"commit"}
	}
	return cli.Command{
		Name:    name,
		Aliases: aliases,
		Group:   cli.Running,
		Usage:   "change code with one model call, a build and a few repairs",
		Long: `Reads agent-config/query.txt and agent-config/codeRollup.txt and asks a model for the
change. It checks the whole answer, applies it and runs build.sh. If the build fails, it
asks the model to repair it. git status and git diff show the changes; logs/ has the
call, the answer and the build.

Caution: build.sh runs on this machine with your rights, on code that a model wrote.
--build-on container runs it in a container, which can reach only the hosts of
network.allow in .abl/config.yaml.`,
		Flags: append(flags(), cli.EnvironmentFlags()...),
		Examples: self + " init\n./codeRollup.sh && " + self + "\n" + self + " --model claude-sonnet-5-5 --dry-run\n" + self +
			" --cc",
		Subs:  []cli.Command{initCommand(self), cleanCommand(self)},
		Codes: Codes(),
		Run:   opened(self, run),
	}
}

// opened returns a command that opens a session and calls do. self is the name of the command in messages.
func opened(self string, do func(context.Context, *session) error) func(context.Context, *cli.Input) error {
	return func(ctx context.Context, in *cli.Input) error {
		s, err := open(in, self)
		if err == nil {
			err = do(ctx, s)
		}
		return err
	}
}

// Codes returns the exit codes of code-commit.
func Codes() []exit.Entry {
	return exit.EntriesOf(map[int]string{
		exit.Passed:      "the build passes, or the report or plan was written",
		exit.Usage:       "wrong usage, or something is missing or unsafe; no model was called",
		exit.Stuck:       "the build still fails after the last attempt",
		exit.Unverified:  "the last answer was malformed or touched a protected path",
		exit.Agent:       "the provider refused the key or the request, or blocked the answer",
		exit.Budget:      "",
		exit.Environment: "the environment failed: disk, engine, or a tool that the container lacks",
		exit.Boundary:    "the engine cannot isolate a build in a container",
		exit.Person:      "you must decide: the working tree has changes (--require-clean), or changed meanwhile",
		exit.Busy:        "another code-commit works on this project",
		exit.Away:        "the provider is unavailable or limits the rate; try again later",
		exit.HUP:         "terminated by SIGHUP",
		exit.INT:         "interrupted",
		exit.TERM:        "terminated",
	})
}

// models returns the default models of the providers.
func models() (names []string) {
	for _, p := range model.Providers() {
		names = append(names, p.Model)
	}
	return names
}

func flags() []cli.Flag {
	return []cli.Flag{
		{
			Name:    "model",
			Value:   "NAME",
			Default: model.Default(),
			Values:  models(),
			Open:    true,
			Usage:   "model to use; agent-config/models lists others",
		},
		{Name: "consistency-check", Also: "consistency cc", Usage: "report contradictions and change nothing; also --consistency and --cc"},
		{Name: "dry-run", Usage: "ask once and show the changes; write only logs"},
		{Name: "max-repairs", Value: "N", Usage: "maximum of repairs by the model (default 3; v1: 7)"},
		{
			Name:    "on-parse-error",
			Value:   "WHAT",
			Default: "repair",
			Values:  []string{"repair", "abort"},
			Usage:   "what to do with an invalid answer",
		},
		{
			Name:    "build-on",
			Value:   "WHERE",
			Default: "host",
			Values:  []string{"host", "container"},
			Usage:   "where build.sh runs",
		},
		{Name: "build-timeout", Value: "TIME", Default: "1h", Usage: "stop the build after TIME and count it as failed"},
		{Name: "timeout", Value: "TIME", Default: "20m", Usage: "time limit for one answer of the provider"},
		{Name: "retries", Value: "N", Default: "4", Usage: "retries if the provider is unavailable or limits the rate"},
		{Name: "require-clean", Usage: "do not start if git status shows changes"},
		{Name: "print-protected", Usage: "print the paths that the model may not change, and exit"},
		{Name: "log-dir", Value: "DIR", Default: "logs", Usage: "parent folder for the logs of this run"},
		{
			Name:    "protocol",
			Value:   "NAME",
			Default: codecommit.V2,
			Env:     "CODE_COMMIT_PROTOCOL",
			Values:  []string{codecommit.V1, codecommit.V2},
			Usage:   "v1 is for earlier projects: query.txt and four kinds of fences",
		},
		{Name: "json", Usage: "print one JSON document (docs/json.md)"},
	}
}

// run runs the workflow that the flags select.
func run(ctx context.Context, s *session) error {
	report := s.in.Bool("consistency-check")
	list, dry := s.in.Bool("print-protected"), s.in.Bool("dry-run")
	switch {
	case report && list, report && dry, list && dry:
		return cli.Usagef("--consistency-check, --print-protected and --dry-run are mutually exclusive")
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

// Main runs the program code-commit and returns its exit code.
func Main(ctx context.Context, version string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := Command("")
	root.Subs = append(root.Subs, cli.Completion("code-commit"))
	return cli.Main(ctx, cli.App{
		Name:    "code-commit",
		Version: version,
		Usage:   root.Usage,
		Flags: []cli.Flag{{
			Name:  "project",
			Short: "C",
			Value: "DIR",
			Usage: "use the project in DIR (default: the current directory)",
		}, trust.Flag},
		Root: &root,
	}, args, stdin, stdout, stderr)
}

func initCommand(self string) cli.Command {
	return cli.Command{
		Name:  "init",
		Usage: "create the files that a run reads",
		Long: `Creates agent-config/ with a query to fill in and a text about the project's structure,
a build.sh that fails until you complete it, and a codeRollup.sh that collects the code.
Adds lines to .gitignore for agent-config, logs and .env. It never overwrites files.`,
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
	if err != nil {
		return exit.With(exit.Usage, err, "")
	}
	ignore, err := scaffold.AddLines(root.FS(), []string{"/" + codecommit.ConfigDir, "/logs", ".env"})
	if err != nil {
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
		keys := p.KeyFile(model.Providers()[0].Name)
		in.Say("hint: fill in %s and build.sh, add your key to %s, then run ./codeRollup.sh && %s", p.Query, keys, p.Self)
	})
}

func cleanCommand(self string) cli.Command {
	return cli.Command{
		Name:  "clean",
		Usage: "clean up after a killed run",
		Long: `Undoes partial changes, removes temporary files, and removes the containers, volumes and
networks of this project's builds from the engine. The next run does so too. It never
touches logs and the ledger.`,
		Codes: Codes(),
		Flags: []cli.Flag{{Name: "log-dir", Value: "DIR", Default: "logs", Usage: "parent folder of the logs"}},
		Run:   opened(self, clean),
	}
}

func clean(ctx context.Context, s *session) error {
	if err := CleanFiles(s.in, s.project.Root, s.project.Logs); err != nil {
		return err
	}
	eng, _, err := environment.Connect(ctx)
	if errors.Is(err, sandbox.ErrUnreachable) {
		s.in.Say("the engine is not reachable: containers of builds were not removed")
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
		fmt.Fprintln(s.in.Stdout, "nothing to remove from the engine")
	}
	return exit.OnEngine(err)
}

// CleanFiles undoes the partial changes of a killed run.
func CleanFiles(in *cli.Input, root, logs string) error {
	restored, err := codecommit.Project{Root: root, Logs: logs}.Tidy()
	printRestored(in, restored)
	return err
}

// Sweep removes the containers, volumes and networks of a project's builds from the engine.
func Sweep(ctx context.Context, eng sandbox.Stores, root string) ([]string, error) {
	id := codecommit.Project{Root: root}.EngineID()
	return eng.Sweep(ctx, map[string]string{sandbox.LabelProject: id}, nil)
}
