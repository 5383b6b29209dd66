// Command abl-cmd is the one static program that abl puts into its containers.
// The name under which it is started says what it does there; package dirs
// lists the names. For tests and by hand, "abl-cmd --as NAME [--in FILE] …" does
// the same, FILE standing for the file in dirs.In that NAME reads.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"abl/cmd/abl-cmd/internal/commands"
	"abl/cmd/abl-cmd/internal/runner"
	"abl/internal/proc"
	"abl/orchestrator/dirs"

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
	if len(s.args) >= 2 && s.args[0] == "--as" {
		s.as, s.args = s.args[1], s.args[2:]
		if len(s.args) >= 2 && s.args[0] == "--in" {
			s.in, s.args = s.args[1], s.args[2:]
		}
	}
	return s
}

func run(s started) int {
	// Programs of the same user beside this one must not read or write its memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return refuse(s.as, fmt.Errorf("cannot keep others out of this process: %w", err))
	}
	if s.as == dirs.HelperRun || s.as == dirs.HelperBroker { // what they start is not to be trusted
		proc.HoldThreads()
		if os.Getpid() == 1 {
			return runner.First(os.Args)
		}
	}
	switch s.as {
	case dirs.HelperCmd: // it passes signals on itself
		return commands.Main(context.Background(), s.file(dirs.Cmds), s.args)
	case dirs.HelperRun:
		return runner.Run(context.Background(), s.file(dirs.Run), os.Stdout)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	switch s.as {
	case dirs.HelperAgent:
		return agent(ctx, s)
	case dirs.HelperBroker:
		return serveCommands(ctx, s)
	case dirs.HelperHolder:
		return hold(ctx, s)
	case dirs.HelperProbe:
		return look(ctx, s)
	case dirs.HelperNull:
		return serveNull(ctx, s)
	case dirs.HelperMutant:
		return serveMutant(ctx, s)
	}
	return refuse("abl-cmd", fmt.Errorf("started as %q, which is none of its names", s.as))
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
