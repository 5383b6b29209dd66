package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
)

// TestMain lets the test binary play the program that a shell completes.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "abl" {
		os.Exit(cli.Main(context.Background(), demo(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

var errKnown = exit.With(exit.Busy, errors.New("known trouble"), "wait for it")

// printArgs prints the arguments and flags of a command.
func printArgs(_ context.Context, in *cli.Input) error {
	iterations, err := in.Int("iterations")
	if err != nil {
		return err
	}
	fmt.Fprintf(in.Stdout, "args=%q json=%t iterations=%d agent=%q progress=%q quiet=%t", in.Args,
		in.Bool("json"), iterations, in.String("agent"), in.String("progress"), in.Bool("quiet"))
	for _, name := range []string{"json", "agent"} {
		if in.Set(name) {
			fmt.Fprintf(in.Stdout, " +%s", name)
		}
	}
	_, err = fmt.Fprintln(in.Stdout)
	return err
}

// demo returns a program with every type of flag and argument.
func demo() cli.App {
	say := func(what string) func(context.Context, *cli.Input) error {
		return func(_ context.Context, in *cli.Input) error {
			_, err := fmt.Fprintln(in.Stdout, what)
			return err
		}
	}
	return cli.App{
		Name: "abl", Version: "1.2.3", Built: "2026-01-02T03:04:05Z", Usage: "build software in phases, each one verified",
		Long: "abl lets a Builder write and a Verifier refute.",
		Flags: []cli.Flag{
			{Name: "progress", Value: "HOW", Default: "auto", Env: "ABL_PROGRESS", Values: []string{"auto", "tty", "plain", "json"}, Usage: "how to show progress"},
			{Name: "quiet", Short: "q", Usage: "say less"},
		},
		Topics: []cli.Topic{{Name: "environment", Usage: "variables that abl reads", Text: "Variables:\n\n  ABL_AGENT    the agent"}},
		Habits: map[string]string{"lint": "abl images build", "clean N": "abl phase N", "-v": "--version"},
		Commands: []cli.Command{
			{Name: "clean", Group: cli.Maintenance, Usage: "remove what runs left on the engine", Run: say("clean")},
			{
				Name: "phase", Aliases: []string{"p"}, Group: cli.Running, Usage: "take one phase to its verdict", Args: "N",
				Long: "The Builder and the Verifier are called in turn, at most five times, until\nthe phase passes.\n\n.abl/ keeps → what they said:\n  C:\\ one line\n  .two",
				Flags: []cli.Flag{
					{Name: "json", Usage: "print one event a line"},
					{Name: "iterations", Short: "n", Value: "N", Default: "5", Usage: "how many iterations a round has at most before the phase counts as stuck"},
					{Name: "agent", Value: "NAME", Env: "ABL_AGENT", Usage: "the agent of both roles"},
				},
				Examples: "abl phase 1\nabl phase 2 --json",
				Run:      printArgs,
			},
			{
				Name: "images", Group: cli.Maintenance, Usage: "build or carry the images",
				Subs: []cli.Command{
					{Name: "build", Usage: "build what is missing", Run: say("images build")},
					{Name: "save", Usage: "write them to a file", Args: "FILE", Flags: []cli.Flag{{Name: "force", Usage: "replace the file"}}, Run: say("images save")},
				},
			},
			{Name: "logs", Group: cli.Inspecting, Usage: "show what a role printed", Args: "[ROLE]", Values: []string{"builder", "verifier", "app"}, Flags: []cli.Flag{{Name: "follow", Short: "f", Usage: "go on as it grows"}}, Run: say("logs")},
			{Name: "init", Group: cli.Starting, Usage: "write a project", Run: say("init")},
			cli.Manual(), cli.Completion("abl"),
		},
	}
}

// odd is the demo with commands for each way to end.
func odd() cli.App {
	fails := func(err error) func(context.Context, *cli.Input) error {
		return func(context.Context, *cli.Input) error { return err }
	}
	app := demo()
	app.Commands = append(app.Commands,
		cli.Command{Name: "known", Run: fails(fmt.Errorf("cannot go on: %w", errKnown))},
		cli.Command{Name: "hint", Run: fails(&exit.Error{Code: exit.Stuck, What: "it is stuck", Safe: "all is kept", Do: "repair it"})},
		cli.Command{Name: "odd", Run: fails(errors.New("first\n\x1b[31msecond"))},
		cli.Command{Name: "panic", Run: func(context.Context, *cli.Input) error { panic("lost my way") }},
		cli.Command{Name: "misuse", Run: fails(fmt.Errorf("wrapped: %w", cli.Usagef("phase 0 does not exist")))},
		cli.Command{Name: "gone", Run: func(ctx context.Context, _ *cli.Input) error { return fmt.Errorf("cannot wait: %w", ctx.Err()) }},
		cli.Command{
			Name: "config", Args: "[KEY] [VALUE]", Run: printArgs,
			Subs: []cli.Command{{Name: "path", Run: func(_ context.Context, in *cli.Input) error {
				_, err := fmt.Fprintln(in.Stdout, "config path")
				return err
			}}},
		})
	return app
}

// call runs the demo program.
func call(ctx context.Context, args ...string) (code int, stdout, stderr string) {
	return run(ctx, demo(), args...)
}

func run(ctx context.Context, app cli.App, args ...string) (code int, stdout, stderr string) {
	var outBuf, errBuf bytes.Buffer
	code = cli.Main(ctx, app, args, strings.NewReader(""), &outBuf, &errBuf)
	return code, outBuf.String(), errBuf.String()
}
