// Package doctor looks at everything that a phase will need, and with --boundary at
// how containers are kept apart. It changes nothing of the project's.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/phase"
	"abl/internal/state"
)

// Command is `abl doctor`.
func Command() cli.Command {
	return cli.Command{
		Name: "doctor", Group: cli.Starting, Usage: "check engine, images, keys and project",
		Long: `Looks at everything a phase will need and changes nothing. Outside a project it
checks the machine alone. With --boundary it proves anew that the engine keeps
containers apart from this machine, and that a container like each role's sees
and reaches what it is meant to and nothing else; beside it stands what the last
calls have kept of their own proofs.`,
		Examples: "abl doctor\nabl doctor --boundary",
		Flags: []cli.Flag{
			{Name: "json", Usage: "one JSON document (docs/json.md)"},
			{Name: "boundary", Usage: "prove the containers' isolation, check by check; exit code 8 when it does not hold"},
		},
		Run: runDoctor,
	}
}

func runDoctor(ctx context.Context, in *cli.Input) error {
	if in.Bool("boundary") {
		return examineBoundary(ctx, in)
	}
	all := checkEngine(ctx, in)
	s, err := phase.Open(in)
	switch {
	case err == nil:
		all = append(all, checkProject(ctx, s)...)
	case in.Set("project") || !errors.Is(err, state.ErrNone):
		all = append(all, failed("project", err))
	default:
		all = append(all, phase.Finding{What: "project", OK: true, Text: "none here; `abl init` makes one"})
	}
	if err := ctx.Err(); err != nil {
		return err // whatever failed may have failed for that
	}
	if in.Bool("json") {
		if err := in.JSON(all); err != nil {
			return err
		}
	} else {
		printFindings(in, all)
	}
	return verdictOf(all)
}

// verdictOf is the error that the findings come to, nil when all is well.
func verdictOf(all []phase.Finding) error {
	var failed []string
	for _, f := range all {
		if !f.OK {
			failed = append(failed, f.What)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	return exit.With(exit.Environment, fmt.Errorf("%d of %d checks failed: %s", len(failed), len(all), strings.Join(failed, ", ")), "")
}

func printFindings(in *cli.Input, all []phase.Finding) {
	for _, f := range all {
		mark := "ok  "
		if !f.OK {
			mark = "FAIL"
		}
		fmt.Fprintf(in.Stdout, "%s  %-10s %s\n", mark, f.What, f.Text)
		if !f.OK && f.Hint != "" {
			fmt.Fprintf(in.Stdout, "                 → %s\n", f.Hint)
		}
	}
}
