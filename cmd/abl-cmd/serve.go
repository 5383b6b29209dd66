package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"abl/cmd/abl-cmd/internal/holder"
	"abl/cmd/abl-cmd/internal/probe"
	"abl/internal/deadman"
	"abl/orchestrator/broker"
	"abl/orchestrator/dirs"
)

// brokerGrace is what a broker has to take the app down after its deadline.
const brokerGrace = 30 * time.Second

// serveCommands is the broker in the app's container.
func serveCommands(ctx context.Context, s started) int {
	var spec dirs.BrokerSpec
	data, err := os.ReadFile(s.file(dirs.Broker))
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	if err == nil {
		err = probe.First(ctx, spec.Probe, os.Stdout)
	}
	if err == nil && spec.Deadline > 0 { // for an app that stops this process
		err = deadman.Arm(max(time.Until(time.Unix(spec.Deadline, 0)), 0) + brokerGrace)
	}
	if err == nil {
		err = broker.Serve(ctx, spec)
	}
	if err != nil {
		return refuse(dirs.HelperBroker, err)
	}
	return 0
}

// until gives ctx the end that --deadline names.
func until(ctx context.Context, deadline int64) (context.Context, context.CancelFunc) {
	if deadline == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, time.Unix(deadline, 0))
}

// flags parses a program's flags; errors go to its standard error.
func flags(name string, args []string, define func(*flag.FlagSet)) (rest []string, deadline int64, err error) {
	set := flag.NewFlagSet(name, flag.ContinueOnError)
	set.Int64Var(&deadline, "deadline", 0, "Unix seconds at which to end, 0 for never")
	define(set)
	err = set.Parse(args)
	return set.Args(), deadline, err
}

// hold holds the container's network namespace.
func hold(ctx context.Context, s started) int {
	var listen, become string
	rest, deadline, err := flags(dirs.HelperHolder, s.args, func(f *flag.FlagSet) {
		f.StringVar(&listen, "listen", "127.0.0.1:53", "where to answer DNS")
		f.StringVar(&become, "seal", "", "close the network to datagrams for many, then go on as this \"uid:gid\"")
	})
	if err != nil {
		return exitUsage
	}
	if len(rest) > 0 {
		return refuse(dirs.HelperHolder, fmt.Errorf("takes no argument %q", rest[0]))
	}
	if err := seal(become); err != nil {
		return refuse(dirs.HelperHolder, err)
	}
	signal.Ignore(syscall.SIGCHLD) // of a service below this process, whose orphans nobody else waits for
	ctx, cancel := until(ctx, deadline)
	defer cancel()
	if err := holder.Serve(ctx, listen, func(addr string) { fmt.Printf("listening on %s\nready\n", addr) }); err != nil {
		return refuse(dirs.HelperHolder, err)
	}
	return 0
}

// seal closes the network and gives up the rights that this took. A kernel that
// cannot close it is told of and no reason to end: each call's probe finds out,
// and whether that is allowed is not for the holder to say.
func seal(become string) error {
	if become == "" {
		return nil
	}
	if err := holder.Seal(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", dirs.HelperHolder, err)
	}
	return holder.Become(become)
}
