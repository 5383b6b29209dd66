//go:build linux

// Package commands is abl-cmd as a role sees it: the commands that the project
// declares, by name, and a few that abl brings along. It judges nothing: abl believes
// no word of it.
package commands

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

// Exit codes of abl-cmd's own; a command that ran has its own.
const (
	exitOK      = 0
	exitMissing = 1 // check found something missing
	exitUsage   = 2 // nothing was run
	exitTimeout = 124
	exitNotRun  = 126
)

const usage = `abl-cmd runs the commands that this project declares, by name.

Usage: abl-cmd NAME; a declared command takes no arguments, standard input is passed on.
Exit codes: that of the command; 2 when there is no such command or it was not
run; 124 when it was stopped because it took too long. Of abl-cmd app: that of the
program; 125 when there is none, and standard error says why.

`

// own are the commands that abl brings along.
var own = []helper.Command{
	{Name: "get-spec N", Description: "print the spec of phase N, and the ids of its contracts"},
	{Name: "check", Description: "say what this call still has to leave behind"},
	{Name: "restart", Description: "start the app anew and wait until it is ready"},
	appCommand,
}

const (
	defaultTimeout = 10 * time.Minute
	stopGrace      = 5 * time.Second
)

// tool is abl-cmd with what abl told it.
type tool struct{ helper.CmdSpec }

// Main reads the CmdSpec in the file at path, does what args say, and returns
// the exit code.
func Main(ctx context.Context, path string, args []string) int {
	spec, err := helper.Read[helper.CmdSpec](path)
	t := tool{spec}
	if err != nil {
		return t.refuse("cannot read which commands there are: %v", err)
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
		return t.refuse("%s takes no arguments, so %q was not passed on and nothing was run; standard input is passed on",
			name, rest[0])
	case name == "help", name == "-h", name == "--help":
		return t.list(usage)
	case name == "list":
		return t.list("")
	case name == "check":
		return t.check(ctx)
	case name == "restart" && t.URL == "":
		return t.refuse("restart works where abl runs the app, which is not here")
	case name == "restart":
		return t.show(t.broker().Restart(ctx))
	}
	if i := slices.IndexFunc(t.Commands, func(c helper.Command) bool { return c.Name == name }); i >= 0 {
		return t.run(ctx, t.Commands[i])
	}
	return t.refuse("there is no command %q; abl-cmd list shows those that there are", name)
}

// refuse says why nothing was run.
func (t tool) refuse(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "abl-cmd: "+format+"\n", args...)
	return exitUsage
}

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

func (t tool) getSpec(args []string) int {
	set, _ := spec.LoadDir(t.Specs)
	number, err := strconv.Atoi(strings.Join(args, " "))
	s, ok := set.Phase(number)
	if err != nil || !ok {
		return t.refuse("get-spec takes the number of one phase with a spec, of %v", set.Numbers())
	}
	fmt.Printf("%s\n\n[the contracts of phase %d and their ids]\n", strings.TrimRight(s.Text, "\n"), number)
	for _, c := range s.Contracts {
		fmt.Printf("%s (line %d): %s\n", c.ID, c.Line, c.Says())
	}
	return exitOK
}

// run runs a declared command where it belongs.
func (t tool) run(ctx context.Context, c helper.Command) int {
	switch {
	case t.URL != "":
		return t.show(t.broker().Run(ctx, c.Name, os.Stdin))
	case c.Background:
		return t.refuse("%s starts the system and stays, which only the app's container can do", c.Name)
	}
	return t.runHere(ctx, c)
}

func (t tool) broker() broker.Client { return broker.Client{URL: t.URL, Token: t.Token} }

// show prints what the broker tells of a command and returns its exit code.
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

// runHere runs a command in this container, on abl-cmd's own descriptors.
func (t tool) runHere(ctx context.Context, c helper.Command) int {
	limit := cmp.Or(time.Duration(c.TimeoutMS)*time.Millisecond, defaultTimeout)
	errLate := fmt.Errorf("%s was stopped after %v", c.Name, limit)
	cmd := exec.Command("sh", "-c", c.Command)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.Dir, os.Stdin, os.Stdout, os.Stderr
	// A person at a terminal keeps the command in the foreground.
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

// bounded runs a program until it ends, this one is told to end, or it is too late.
func bounded(ctx context.Context, cmd *exec.Cmd, limit time.Duration, late error) (exit int, err error) {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	return proc.Run(ctx, cmd, stopGrace)
}
