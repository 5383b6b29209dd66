//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"abl/cmd/abl-cmd/internal/holder"
	"abl/cmd/abl-cmd/internal/probe"
	"abl/internal/broker"
	"abl/internal/helper"
	"abl/roles/agent"
)

// brokerGrace is what a broker has to take the app down after its deadline.
const brokerGrace = 30 * time.Second

// serveCommands is the broker in the app's container.
func serveCommands(ctx context.Context, s started) error {
	var spec helper.BrokerSpec
	data, err := os.ReadFile(s.file(helper.Broker))
	if err == nil {
		err = json.Unmarshal(data, &spec)
	}
	if err == nil {
		err = probe.First(ctx, spec.Probe, os.Stdout)
	}
	if err == nil && spec.Deadline > 0 { // for an app that stops this process
		err = armDeadMan(max(time.Until(time.Unix(spec.Deadline, 0)), 0) + brokerGrace)
	}
	if err == nil {
		err = broker.Serve(ctx, spec)
	}
	return err
}

// hold holds the container's network namespace.
func hold(ctx context.Context, s started) error {
	var listen, become string
	rest, ctx, cancel, err := s.flags(ctx, func(f *flag.FlagSet) {
		f.StringVar(&listen, "listen", "127.0.0.1:53", "where to answer DNS")
		f.StringVar(&become, "seal", "", "close the network to datagrams for many, then go on as this \"uid:gid\"")
	})
	defer cancel()
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("takes no argument %q", rest[0])
	}
	if err == nil && become != "" {
		// A kernel that cannot close the network is told of and no reason to end: each
		// call's probe finds out, and whether that is allowed is not for the holder to say.
		if err := holder.Seal(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.as, err)
		}
		err = holder.Become(become)
	}
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGCHLD) // of a service below this process, whose orphans nobody else waits for
	return holder.Serve(ctx, listen, func(addr string) { fmt.Printf("listening on %s\nready\n", addr) })
}

// playScript is the scripted agent: abl-agent FILE plays the one call in FILE in the
// folder where it is started.
func playScript(ctx context.Context, s started) int {
	if len(s.args) != 1 {
		return refuse(helper.HelperAgent, errors.New("takes one argument, the file with the call to play"))
	}
	data, err := os.ReadFile(s.args[0])
	if err != nil {
		return refuse(helper.HelperAgent, err)
	}
	call, err := agent.ParseCall(s.args[0], data)
	if err != nil {
		return refuse(helper.HelperAgent, err)
	}
	p := agent.Player{Call: call, AppURL: os.Getenv("ABL_APP_URL"), Dir: ".", Out: os.Stdout, Now: time.Now}
	return p.Play(ctx)
}
