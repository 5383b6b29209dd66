//go:build linux

// Command abl-cmd is the one static program that abl puts into its containers.
// The name under which it is started says what it does there; package helper
// lists the names. For tests "--in FILE" comes first, FILE standing for the file in
// helper.In that it would read.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"abl/cmd/abl-cmd/internal/commands"
	"abl/internal/helper"
	"abl/internal/proc"

	"golang.org/x/sys/unix"
)

// exitUsage is what every program here ends with when it is started wrongly.
const exitUsage = 2

// started is how the program was started.
type started struct {
	as   string   // one of the names in dirs
	in   string   // file to read instead of the usual one, "" for that
	args []string // what follows
}

func main() {
	os.Exit(run(parse(os.Args)))
}

func parse(argv []string) started {
	s := started{as: filepath.Base(argv[0]), args: argv[1:]}
	if len(s.args) >= 2 && s.args[0] == "--in" {
		s.in, s.args = s.args[1], s.args[2:]
	}
	return s
}

func run(s started) int {
	// Programs of the same user beside this one must not read or write its memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return refuse(s.as, fmt.Errorf("cannot keep others out of this process: %w", err))
	}
	if s.as == helper.HelperRun || s.as == helper.HelperBroker { // what they start is not to be trusted
		proc.HoldThreads()
		if os.Getpid() == 1 {
			return first(os.Args)
		}
	}
	switch s.as {
	case helper.HelperCmd: // it passes signals on itself
		return commands.Main(context.Background(), s.file(helper.Cmds), s.args)
	case helper.HelperRun:
		return runAgent(context.Background(), s.file(helper.Run), os.Stdout)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	programs := map[string]func(context.Context, started) error{
		helper.HelperBroker: serveCommands, helper.HelperHolder: hold, helper.HelperProbe: look, helper.HelperNull: serveNull,
	}
	program := programs[s.as]
	switch {
	case s.as == helper.HelperAgent:
		return playScript(ctx, s)
	case program == nil:
		return refuse("abl-cmd", fmt.Errorf("started as %q, which is none of its names", s.as))
	}
	if err := program(ctx, s); err != nil {
		return refuse(s.as, err)
	}
	return 0
}

func (s started) file(usual string) string {
	if s.in != "" {
		return s.in
	}
	return usual
}

// refuse says why a program cannot start.
func refuse(name string, err error) int {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	return exitUsage
}

// flags parses a program's own flags and the one that all have: an end for ctx.
func (s started) flags(ctx context.Context, define func(*flag.FlagSet)) (rest []string, until context.Context, cancel context.CancelFunc, err error) {
	set := flag.NewFlagSet(s.as, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	deadline := set.Int64("deadline", 0, "Unix seconds at which to end, 0 for never")
	define(set)
	err = set.Parse(s.args)
	until, cancel = context.WithCancel(ctx)
	if *deadline != 0 {
		until, cancel = context.WithDeadline(ctx, time.Unix(*deadline, 0))
	}
	return set.Args(), until, cancel, err
}
