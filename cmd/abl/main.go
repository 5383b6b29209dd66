// Command abl turns written specs into verified software: `abl phase N` has a
// Builder write the code and a Verifier test the running system, each in a
// container of its own, until every contract holds.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/images"
	"abl/orchestrator"
	"abl/orchestrator/project"
	"abl/orchestrator/state"
	"abl/orchestrator/workspace"
)

// version is set when abl is built (see the Makefile).
var version = "dev"

func main() {
	ctx, stop := exit.Signals(context.Background(), os.Stderr)
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main without the process around it.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	return cli.Main(ctx, app(), args, stdin, stdout, stderr)
}

func app() cli.App {
	return cli.App{
		Name: "abl", Version: version, Usage: "turn written specs into verified software",
		Long: `abl runs phases. You write specs, contracts of the form ACTION → EXPECTED
RESULT, one file a phase. abl has an agent build what they say and another one,
which never sees the code, test the running system against them.`,
		Code: rules().Code, Hint: hint,
		Flags: []cli.Flag{
			{Name: "project", Short: "C", Value: "DIR", Usage: "the project, when it is not the current directory or one above it"},
		},
		Commands: []cli.Command{
			initCommand(), demoCommand(), doctorCommand(),
			phaseCommand(), runCommand(), shellCommand(),
			statusCommand(), logsCommand(), costsCommand(), configCommand(),
			imagesCommand(), cleanCommand(), debugCommand(), versionCommand(), cli.Completion("abl"),
		},
	}
}

// rules say which exit code an error means.
func rules() exit.Rules {
	return exit.Rules{
		exit.Is(orchestrator.ErrAgent, exit.Agent),
		exit.Is(errBudget, exit.Budget),
		exit.Is(workspace.ErrForeign, exit.Person),
		exit.As[*state.Damaged](exit.Person),
		exit.As[*state.Newer](exit.Person),
		exit.Is(project.ErrNone, exit.Usage),
		exit.Is(images.ErrDockerfile, exit.Usage),
		exit.Is(images.ErrHelper, exit.Environment),
		exit.Is(errDisk, exit.Environment),
	}
}

// faultError is an error with its exit code and a hint on a line of its own.
type faultError struct {
	err  error
	hint string
}

func (f *faultError) Error() string { return f.err.Error() }
func (f *faultError) Unwrap() error { return f.err }

// fault gives err an exit code and a hint, unless it brings its own.
func fault(code int, err error, hint string) error {
	return &exit.Error{Code: code, What: err.Error(), Err: &faultError{err, hint}}
}

// hint is what to do about an error.
func hint(err error) string {
	var f *faultError
	if errors.As(err, &f) {
		return f.hint
	}
	if errors.Is(err, orchestrator.ErrAgent) {
		return "everything is kept; see abl logs, then run the same command again"
	}
	return ""
}

func versionCommand() cli.Command {
	return cli.Command{
		Name: "version", Group: cli.Upkeep, Usage: "print abl's version",
		Run: func(_ context.Context, in *cli.Input) error {
			_, err := fmt.Fprintln(in.Stdout, "abl", version)
			return err
		},
	}
}
