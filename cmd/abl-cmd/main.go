//go:build linux

// Command abl-cmd is the one static program that abl puts into its containers.
// The name under which it is started says what it does there; package helper
// lists the names. For tests "--in FILE" comes first, FILE standing for the file in
// helper.In that it would read.
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

	"abl/cmd/abl-cmd/internal/commands"
	"abl/internal/helper"
	"abl/internal/proc"

	"golang.org/x/sys/unix"
)

// exitUsage is what every program here ends with when it is started wrongly.
const exitUsage = 2

// started is how the program was started.
type started struct {
	as   string   // one of the names in helper
	in   string   // file to read instead of the usual one, "" for that
	args []string // what follows, without the flags of those that have some

	listen, seal  string   // of a holder, as the following
	pass          []string // what it passes on, FROM=TO
	watch, record string   // likewise, and the file that takes what it sees
	null          string   // where it stands in the app's place, FROM=STATUS or FROM=line:TEXT
	commands      string   // likewise in its broker's
	ran           string   // what that answers of a run of the app, "" for nothing
	bytes         bool     // of the watch: the app speaks no HTTP
	door          string   // folder of the sockets that stand for a door where there is none, "" for no sockets
}

func main() {
	s := started{as: filepath.Base(os.Args[0]), args: os.Args[1:]}
	if len(s.args) >= 2 && s.args[0] == "--in" {
		s.in, s.args = s.args[1], s.args[2:]
	}
	os.Exit(run(s))
}

func run(s started) int {
	// Programs of the same user beside this one must not read or write its memory.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return refuse(s.as, fmt.Errorf("cannot keep others out of this process: %w", err))
	}
	if s.as == helper.HelperRun || s.as == helper.HelperBroker { // what they start is not to be trusted
		if err := resetFaultSignals(); err != nil {
			return refuse(s.as, err)
		}
		proc.HoldThreads()
		if os.Getpid() == 1 {
			_ = nameUser(helper.Users, helper.Home, os.Getuid(), os.Getgid()) // what runs here does without a name
			return first(s)
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
		return refuse("abl-cmd", fmt.Errorf("started as %q, which is none of its names", s.as))
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

// refuse says why a program cannot start.
func refuse(name string, err error) int {
	fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
	return exitUsage
}

// never is a time, in Unix seconds, that no program here will see.
const never = 1 << 40

// flags parses what stands before the arguments; until is when to end.
func (s *started) flags() (until int64, err error) {
	set := flag.NewFlagSet(s.as, flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.Int64Var(&until, "deadline", never, "Unix seconds at which to end")
	set.StringVar(&s.listen, "listen", "", "where a holder answers DNS, \"\" for nowhere")
	set.StringVar(&s.seal, "seal", "", "holder: close the network to datagrams for many, then go on as this \"uid:gid\"")
	set.Func("pass", "holder: pass connections on, \"FROM=TO\", one of them the path of a socket", func(pass string) error {
		s.pass = append(s.pass, pass)
		return nil
	})
	set.StringVar(&s.watch, "watch", "", "holder: pass connections on to the app, \"FROM=TO\", and write down what is seen")
	set.StringVar(&s.record, "record", helper.Record, "holder: where to write that")
	set.StringVar(&s.in, "altering", s.in, "holder: file with what of the app's answers to alter")
	set.StringVar(&s.null, "null", "", "holder: answer everything with a status and no body, \"FROM=STATUS\", or with a line, \"FROM=line:TEXT\"")
	set.StringVar(&s.commands, "commands", "", "holder: where to answer as the app's broker does")
	set.StringVar(&s.ran, "ran", "", "holder: what to answer there of a run of the app, \"\" for nothing")
	set.BoolVar(&s.bytes, "bytes", false, "holder: count what passes to the app, which speaks no HTTP")
	set.StringVar(&s.door, "door", "", "holder: folder of sockets that connections to null and commands pass")
	err = set.Parse(s.args)
	s.args = set.Args()
	return until, err
}
