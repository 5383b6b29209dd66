//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"

	"abl/internal/witness"
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
