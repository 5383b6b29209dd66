//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"abl/cmd/abl-cmd/internal/probe"
	"abl/internal/broker"
	"abl/internal/helper"
	"abl/internal/witness"
	"abl/roles/agent"
)

// brokerGrace is what a broker has to take the app down after its deadline.
const brokerGrace = 30 * time.Second

// serveCommands is the broker in the app's container.
func serveCommands(ctx context.Context, s started) error {
	spec, err := helper.Read[helper.BrokerSpec](s.file(helper.Broker))
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
	var listen, user string
	rest, ctx, cancel, err := s.flags(ctx, func(f *flag.FlagSet) {
		f.StringVar(&listen, "listen", "127.0.0.1:53", "where to answer DNS")
		f.StringVar(&user, "seal", "", "close the network to datagrams for many, then go on as this \"uid:gid\"")
	})
	defer cancel()
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("takes no argument %q", rest[0])
	}
	if err == nil && user != "" {
		// A kernel that cannot close the network is told of and no reason to end: each
		// call's probe finds out, and whether that is allowed is not for the holder to say.
		if err := sealNetwork(); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", s.as, err)
		}
		err = become(user)
	}
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGCHLD) // of a service below this process, whose orphans nobody else waits for
	return serveDNS(ctx, listen, func(addr string) { fmt.Printf("listening on %s\nready\n", addr) })
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

// serveNull stands in for the app and, where it is told to, for its broker.
func serveNull(ctx context.Context, s started) error {
	var listen, commands, text string
	var status int
	rest, ctx, cancel, err := s.flags(ctx, func(f *flag.FlagSet) {
		f.StringVar(&listen, "listen", "", "where the app would listen, \"\" for an app that is away")
		f.IntVar(&status, "status", 200, "what it answers every request with")
		f.StringVar(&text, "says", "", "the text of every answer, with the status 200")
		f.StringVar(&commands, "commands", "", "where the broker would listen, \"\" for no broker")
	})
	defer cancel()
	if err != nil || len(rest) > 0 || listen+commands == "" || status < 200 || status > 599 || text != "" && status != 200 {
		return errors.Join(err, errors.New("takes -listen ADDRESS, -commands ADDRESS or both, and a -status from 200 to 599 or what it -says"))
	}
	null := func(ctx context.Context, l net.Listener) error {
		if text != "" {
			return witness.Say(ctx, l, text)
		}
		return witness.Null(ctx, l, status)
	}
	return serveAll(ctx, place{listen, null}, place{commands, witness.Commands})
}

// place is an address with what serves there until ctx ends.
type place struct {
	at    string
	serve func(context.Context, net.Listener) error
}

// serveAll serves at each place whose address is not "", having said where it
// listens; when one cannot go on, none does.
func serveAll(ctx context.Context, places ...place) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	open := map[net.Listener]place{}
	for _, p := range places {
		if p.at == "" {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.at)
		if err != nil {
			return fmt.Errorf("cannot serve: %w", err)
		}
		defer l.Close()
		open[l] = p
	}
	ended := make(chan error, len(open))
	for l, p := range open {
		fmt.Fprintf(os.Stdout, "{\"ready\":%q}\n", l.Addr())
		go func() { ended <- p.serve(ctx, l) }()
	}
	var errs []error
	for range open {
		errs = append(errs, <-ended)
		cancel()
	}
	return errors.Join(errs...)
}

// answerTime bounds one conversation of the server.
const answerTime = 5 * time.Second

// look is the engine's probe: "abl-probe look NET" prints what it found of a
// network as a line of JSON, "abl-probe [--deadline N] say WORD ADDRESS" is a
// peer for it.
func look(ctx context.Context, s started) error {
	args, ctx, cancel, err := s.flags(ctx, func(*flag.FlagSet) {})
	defer cancel()
	switch {
	case err != nil:
		return err
	case len(args) == 2 && args[0] == "look":
		return lookAround(ctx, args[1])
	case len(args) == 3 && args[0] == "say":
		return say(ctx, args[1], args[2])
	}
	return errors.New("takes look NET or say WORD ADDRESS")
}

func lookAround(ctx context.Context, text string) error {
	var spec helper.ProbeNet
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		return fmt.Errorf("cannot read what to look for: %w", err)
	}
	begun := time.Now()
	proof := probe.Network(ctx, &spec)
	return json.NewEncoder(os.Stdout).Encode(helper.Probed{Proof: proof, MS: time.Since(begun).Milliseconds()})
}

// say tells everybody who connects a word, until ctx ends, and prints a line when it is ready to.
func say(ctx context.Context, word, at string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", at)
	if err != nil {
		return fmt.Errorf("cannot answer probes: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	fmt.Println("ready")
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot go on answering probes: %w", err)
		}
		go func() {
			defer conn.Close()
			if conn.SetDeadline(time.Now().Add(answerTime)) == nil {
				_, _ = conn.Write([]byte(word))
			}
		}()
	}
}
