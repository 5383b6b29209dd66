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
	"time"

	"abl/cmd/abl-cmd/internal/probe"
	"abl/internal/helper"
)

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
