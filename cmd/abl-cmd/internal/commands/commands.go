//go:build linux

// Package commands is abl-cmd as a role sees it: the commands that the project
// declares, by name, and a few that abl brings along. It judges nothing: abl believes
// no word of it.
package commands

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"abl/internal/helper"
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

Usage:
  abl-cmd [list]       show the commands
  abl-cmd NAME         run a declared command; it takes no arguments, standard input is passed on
  abl-cmd get-spec N   print the spec of phase N, and the ids of its contracts
  abl-cmd check        say what this call still has to leave behind
  abl-cmd restart      start the app anew and wait until it is ready

Exit codes: that of the command; 2 when there is no such command or it was not
run; 124 when it was stopped because it took too long.
`

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
		return t.list(usage + "\n")
	}
	name, rest := args[0], args[1:]
	if name == "get-spec" {
		return t.getSpec(rest)
	}
	if len(rest) > 0 {
		return t.refuse("%s takes no arguments, so %q was not passed on and nothing was run; standard input is passed on", name, rest[0])
	}
	switch name {
	case "help", "-h", "--help":
		return t.list(usage + "\n")
	case "list":
		return t.list("")
	case "check":
		return t.check(ctx)
	case "restart":
		return t.restart(ctx)
	}
	for _, c := range t.Commands {
		if c.Name == name {
			return t.run(ctx, c)
		}
	}
	return t.refuse("there is no command %q; %s", name, t.names())
}

// refuse says why nothing was run.
func (t tool) refuse(format string, args ...any) int {
	fmt.Fprintf(os.Stderr, "abl-cmd: "+format+"\n", args...)
	return exitUsage
}

func (t tool) names() string {
	names := make([]string, 0, len(t.Commands))
	for _, c := range t.Commands {
		names = append(names, c.Name)
	}
	own := "abl's own are list, get-spec, check, restart"
	if len(names) == 0 {
		return "the project declares none, " + own
	}
	return "declared are " + strings.Join(names, ", ") + "; " + own
}

func (t tool) list(before string) int {
	fmt.Fprint(os.Stdout, before)
	w := tabwriter.NewWriter(os.Stdout, 0, 8, 2, ' ', 0)
	for _, c := range t.Commands {
		fmt.Fprintf(w, "%s\t%s\n", c.Name, c.Description)
	}
	for _, c := range [][2]string{
		{"get-spec N", "print the spec of phase N, and the ids of its contracts"},
		{"check", "say what this call still has to leave behind"},
		{"restart", "start the app anew and wait until it is ready"},
	} {
		if c[0] != "restart" || t.URL != "" {
			fmt.Fprintf(w, "%s\t%s\n", c[0], c[1])
		}
	}
	w.Flush()
	return exitOK
}

func (t tool) getSpec(args []string) int {
	set, _ := spec.LoadDir(t.Specs)
	have := "there are none"
	if n := set.Numbers(); len(n) > 0 {
		have = "there are those of phases " + strings.Trim(fmt.Sprint(n), "[]")
	}
	if len(args) != 1 {
		return t.refuse("get-spec takes the number of one phase; %s", have)
	}
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return t.refuse("get-spec takes the number of a phase, not %q; %s", args[0], have)
	}
	s, ok := set.Phase(number)
	if !ok {
		return t.refuse("there is no spec of phase %d; %s", number, have)
	}
	fmt.Fprintf(os.Stdout, "%s\n\n[the contracts of phase %d and their ids]\n", strings.TrimRight(s.Text, "\n"), number)
	for _, c := range s.Contracts {
		fmt.Fprintf(os.Stdout, "%s (line %d): %s\n", c.ID, c.Line, c.Says())
	}
	return exitOK
}
