//go:build linux

// Command abl-cmd is the static program that abl puts into its containers. It does a different job
// under each of its names, which package helper lists. In tests "--in FILE" comes first: the
// program reads FILE instead of its file in helper.In.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"abl/internal/helper"
	"abl/internal/proc"

	"golang.org/x/sys/unix"
)

// exitUsage is the exit code of each program for a wrong command line.
const exitUsage = 2

// started is the command line of the program.
type started struct {
	as   string   // one of the names in helper
	in   string   // file to read instead of the default one; may be ""
	args []string // the arguments without flags

	// Flags of a holder; flags describes them.
	listen, seal  string
	pass          []string
	watch, record string
	null          string
	commands      string
	ran           string
	bytes         bool
	sockets       string
}

func main() {
	s := started{as: filepath.Base(os.Args[0]), args: os.Args[1:]}
	if len(s.args) >= 2 && s.args[0] == "--in" {
		s.in, s.args = s.args[1], s.args[2:]
	}
	os.Exit(run(s))
}

func run(s started) int {
	// Other programs of the same user must not read or write the memory of this one.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return refuse(s.as, fmt.Errorf("cannot protect the memory of this process: %w", err))
	}
	if s.as == helper.HelperRun || s.as == helper.HelperBroker { // these start untrusted programs
		if err := resetFatalSignals(); err != nil {
			return refuse(s.as, err)
		}
		proc.HoldThreads()
		if os.Getpid() == 1 {
			_ = nameUser(helper.Users, helper.Home, os.Getuid(), os.Getgid()) // the user works without a name too
			return first(s)
		}
	}
	switch s.as {
	case helper.HelperCmd: // handles signals itself
		return runCommand(context.Background(), s.file(helper.Cmds), s.args)
	case helper.HelperRun:
		return runAgent(context.Background(), s.file(helper.Run), os.Stdout)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	program := map[string]func(context.Context, started) error{
		helper.HelperBroker: serveCommands, helper.HelperHolder: hold, helper.HelperProbe: look,
		helper.HelperKill: killContainer,
	}[s.as]
	switch {
	case s.as == helper.HelperAgent:
		return playScript(ctx, s)
	case s.as == helper.HelperACP:
		return askAgent(ctx, s)
	case program == nil:
		return refuse("abl-cmd", fmt.Errorf("unknown program name %q", s.as))
	}
	until, err := s.flags()
	if err != nil {
		return refuse(s.as, err)
	}
	ctx, cancel := context.WithDeadline(ctx, time.Unix(until, 0))
	defer cancel()
	if err := program(ctx, s); err != nil {
		return refuse(s.as, err)
	}
	return 0
}

func (s started) file(usual string) string { return cmp.Or(s.in, usual) }

// refuse prints why a program cannot start, and returns exitUsage.
func refuse(name string, err error) int {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	return exitUsage
}

// never is a time in the distant future, in Unix seconds.
const never = 1 << 40

// flags parses the flags and removes them from the arguments. until is when the program must end.
func (s *started) flags() (until int64, err error) {
	set := flag.NewFlagSet(s.as, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Int64Var(&until, "deadline", never, "Unix seconds at which to end")
	set.StringVar(&s.listen, "listen", "", "holder: address for DNS, \"\" for the default")
	set.StringVar(&s.seal, "seal", "", "holder: drop packets to other networks, then continue as this \"uid:gid\"")
	set.Func("pass", "holder: relay connections, \"FROM=TO\"; one of them is the path of a socket",
		func(pass string) error {
			s.pass = append(s.pass, pass)
			return nil
		})
	set.StringVar(&s.watch, "watch", "", "holder: relay connections to the app, \"FROM=TO\", and record the exchanges")
	set.StringVar(&s.record, "record", helper.Record, "holder: file for the record of watch")
	set.StringVar(&s.in, "altering", s.in, "holder: file that says how watch alters responses")
	set.StringVar(&s.null, "null", "",
		"holder: null app that responds with an empty body, \"FROM=STATUS\", or with a line, \"FROM=line:TEXT\"")
	set.StringVar(&s.commands, "commands", "", "holder: address of a fake broker")
	set.StringVar(&s.ran, "ran", "", "holder: the fake broker's result of a run of the app; may be \"\"")
	set.BoolVar(&s.bytes, "bytes", false, "holder: watch only counts bytes, as the app does not speak HTTP")
	set.StringVar(&s.sockets, "sockets", "",
		"holder: folder of the sockets between null or commands and their clients; \"\" for none")
	err = set.Parse(s.args)
	s.args = set.Args()
	return until, err
}
