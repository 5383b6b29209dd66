// Command abl turns written specs into verified software. For `abl phase N` a Builder writes the code
// and a Verifier tests the running system, each in a separate container, until every contract holds.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/commit"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/learn"
	"abl/cmd/internal/look"
	"abl/cmd/internal/setup"
	"abl/cmd/internal/submit"
	"abl/cmd/internal/trust"
)

// The Makefile sets these when it builds abl. built is the commit's time.
var version, revision, built = "dev", "", ""

func main() {
	ctx, stop := exit.Signals(context.Background(), os.Stderr)
	code := cli.Main(ctx, app(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// app returns abl's command line.
func app() cli.App {
	return cli.App{
		Name:    "abl",
		Version: version,
		Built:   built,
		Usage:   "turn written specs into verified software",
		Long: `abl runs phases. You write specs: contracts of the form ACTION → EXPECTED RESULT, one
file per phase. An agent, the Builder, writes the code. Another agent, the Verifier, never
sees the code and tests the running system against the contracts.`,
		Flags: []cli.Flag{
			{
				Name:  "project",
				Short: "C",
				Value: "DIR",
				Usage: "use the project in DIR (default: the current directory or one above it)",
			},
			trust.Flag,
		},
		Topics: topics(),
		Habits: habits(),
		Commands: []cli.Command{
			setup.InitCommand(), setup.GuideCommand(), demoCommand(), setup.DoctorCommand(),
			phaseCommand(), runCommand(), stopCommand(), submit.Command(), publishCommand(), pullCommand(),
			look.OpenCommand(), look.ShellCommand(), learn.Command(), look.StatusCommand(), look.SpecCommand(),
			look.ReportCommand(), look.VerdictCommand(), look.LogsCommand(), look.CostsCommand(), setup.ConfigCommand(),
			commit.Command("code-commit"), look.CheckCommand(), imagesCommand(), cleanCommand(), trustCommand(),
			debugCommand(), versionCommand(), cli.Manual(), cli.Completion("abl"),
		},
	}
}

func versionCommand() cli.Command {
	return cli.Command{
		Name:  "version",
		Group: cli.Maintenance,
		Usage: "print abl's version",
		Flags: []cli.Flag{cli.JSONFlag()},
		Run: func(_ context.Context, in *cli.Input) error {
			b := build{version, revision, built, runtime.Version(), runtime.GOOS, runtime.GOARCH}
			return in.Show(b, func(w io.Writer) { fmt.Fprintln(w, "abl", version) })
		},
	}
}

// build is what `abl version --json` prints.
type build struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Built   string `json:"built,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}
