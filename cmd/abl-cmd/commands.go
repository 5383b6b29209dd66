//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/term"

	"abl/internal/broker"
	"abl/internal/helper"
	"abl/internal/proc"
	"abl/internal/spec"
)

// Exit codes of abl-cmd. A command that ran has its own. With exitUsage nothing was run.
const (
	exitOK      = 0
	exitMissing = 1 // check found something missing
	exitTimeout = 124
)

const usage = `abl-cmd runs the commands that this project declares, by name.

Usage: abl-cmd NAME. A declared command takes no arguments and gets standard input.
The exit code is that of the command, 2 if the command does not exist or was not run, and
124 if it took too long. The exit code of abl-cmd app is that of the program, or 125 if
the program did not run; standard error has the reason.

`

// own are the commands of abl.
var own = []helper.Command{
	{Name: "get-spec N", Description: "print the spec of phase N, and the ids of its contracts"},
	{Name: "check", Description: "list the files that this call still has to write"},
	{Name: "restart", Description: "restart the app and wait until it is ready"},
	appCommand,
}

const (
	defaultTimeout = 10 * time.Minute
	stopGrace      = 5 * time.Second
)

// tool is abl-cmd with its settings.
type tool struct{ helper.CmdSpec }

// runCommand is abl-cmd for a role: it runs a command that the project declares, or one of abl's, and returns
// the exit code. It reads the CmdSpec in the file at path. abl never relies on its output.
func runCommand(ctx context.Context, path string, args []string) int {
	spec, err := helper.Read[helper.CmdSpec](path)
	t := tool{spec}
	if err != nil {
		return t.refuse("cannot read the list of commands: %v", err)
	}
	if len(args) == 0 {
		return t.list(usage)
	}
	name, rest := args[0], args[1:]
	switch {
	case name == "get-spec":
		return t.getSpec(rest)
	case name == "app" && t.App != nil:
		return t.runApp(ctx, rest)
	case len(rest) > 0:
		return t.refuse("%s takes no arguments, but got %q; nothing was run", name, rest[0])
	case name == "help", name == "-h", name == "--help":
		return t.list(usage)
	case name == "list":
		return t.list("")
	case name == "check":
		return t.check(ctx)
	case name == "restart" && t.URL == "":
		return t.refuse("restart works only where abl runs the app")
	case name == "restart":
		return t.show(t.broker().Restart(ctx))
	}
	if i := slices.IndexFunc(t.Commands, func(c helper.Command) bool { return c.Name == name }); i >= 0 {
		return t.run(ctx, t.Commands[i])
	}
	return t.refuse("unknown command %q; abl-cmd list shows the commands", name)
}

// refuse prints why nothing was run, and returns exitUsage.
func (t tool) refuse(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "abl-cmd: "+format+"\n", args...)
	return exitUsage
}

// list prints the commands that the role can run, after before.
func (t tool) list(before string) int {
	fmt.Print(before)
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	for _, c := range slices.Concat(t.Commands, own) {
		if (c != own[2] || t.URL != "") && (c != appCommand || t.App != nil) {
			fmt.Fprintf(w, "%s\t%s\n", c.Name, c.Description)
		}
	}
	w.Flush()
	return exitOK
}

// getSpec prints the spec of a phase and the ids of its contracts.
func (t tool) getSpec(args []string) int {
	set, _ := spec.LoadDir(t.Specs)
	number, err := strconv.Atoi(strings.Join(args, " "))
	s, ok := set.Phase(number)
	if err != nil || !ok {
		return t.refuse("get-spec needs the number of a phase: one of %v", set.Numbers())
	}
	fmt.Printf("%s\n\n[the contracts of phase %d and their ids]\n", strings.TrimRight(s.Text, "\n"), number)
	for _, c := range s.Contracts {
		fmt.Printf("%s (line %d): %s\n", c.ID, c.Line, c.Says())
	}
	return exitOK
}

// run runs a declared command, in the app's container if there is one.
func (t tool) run(ctx context.Context, c helper.Command) int {
	switch {
	case t.URL != "":
		return t.show(t.broker().Run(ctx, c.Name, os.Stdin))
	case c.Background:
		return t.refuse("%s starts the system in the background, which works only in the app's container", c.Name)
	}
	return t.runHere(ctx, c)
}

func (t tool) broker() broker.Client { return broker.Client{URL: t.URL, Token: t.Token} }

// show prints the broker's reply to a command, and returns the exit code.
func (t tool) show(reply helper.CommandReply, err error) int {
	if err != nil {
		fmt.Fprintf(os.Stderr, "abl-cmd: %v\n", err)
		return exitNotRun
	}
	fmt.Print(reply.Output)
	if reply.Truncated {
		fmt.Fprintln(os.Stderr, "abl-cmd: the output is longer; only its beginning is shown")
	}
	if reply.Error != "" {
		fmt.Fprintf(os.Stderr, "abl-cmd: %s\n", reply.Error)
	}
	return reply.Exit
}

// runHere runs a command in this container, with the standard streams of abl-cmd.
func (t tool) runHere(ctx context.Context, c helper.Command) int {
	limit := cmp.Or(time.Duration(c.TimeoutMS)*time.Millisecond, defaultTimeout)
	errLate := fmt.Errorf("%s was stopped after %v", c.Name, limit)
	cmd := exec.Command("sh", "-c", c.Command)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.Dir, os.Stdin, os.Stdout, os.Stderr
	// On a terminal the command stays in the foreground process group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !term.IsTerminal(int(os.Stdin.Fd()))}
	code, err := bounded(ctx, cmd, limit, errLate)
	switch {
	case errors.Is(err, errLate):
		fmt.Fprintf(os.Stderr, "abl-cmd: %v\n", err)
		return exitTimeout
	case err != nil && code < 0:
		fmt.Fprintf(os.Stderr, "abl-cmd: cannot run %s: %v\n", c.Name, err)
		return exitNotRun
	}
	return code
}

// bounded runs a program until it ends, a signal arrives or the limit is reached. Then it returns late.
func bounded(ctx context.Context, cmd *exec.Cmd, limit time.Duration, late error) (exit int, err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	return proc.Run(ctx, cmd, stopGrace)
}
