package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"

	"abl/orchestrator/broker"
	"abl/orchestrator/challenge"
	"abl/orchestrator/dirs"
)

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
			return challenge.Say(ctx, l, text)
		}
		return challenge.Null(ctx, l, status)
	}
	return serveAll(ctx, place{listen, null}, place{commands, challenge.Commands})
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

// serveMutant stands before the app and changes its answers in one way.
func serveMutant(ctx context.Context, s started) error {
	var listen, to, name string
	rest, ctx, cancel, err := s.flags(ctx, func(f *flag.FlagSet) {
		f.StringVar(&listen, "listen", "", "where to serve")
		f.StringVar(&to, "to", "", "address of the app; :PORT is on this container's own address")
		f.StringVar(&name, "mutation", challenge.Control, "what to change")
	})
	defer cancel()
	if err != nil || len(rest) > 0 || listen == "" || to == "" {
		return errors.Join(err, errors.New("takes -listen ADDRESS -to ADDRESS -mutation NAME"))
	}
	m, err := challenge.Named(name)
	if err != nil {
		return err
	}
	if port, ok := strings.CutPrefix(to, ":"); ok {
		own, err := broker.OwnAddress()
		if err != nil {
			return err
		}
		to = net.JoinHostPort(own, port)
	}
	out := json.NewEncoder(os.Stdout)
	p := &challenge.Proxy{To: to, Mutation: m, Tell: func(r dirs.Mutated) { _ = out.Encode(r) }}
	return serveAll(ctx, place{listen, p.Serve})
}
