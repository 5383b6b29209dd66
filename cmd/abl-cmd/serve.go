//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"abl/cmd/abl-cmd/internal/probe"
	"abl/internal/broker"
	"abl/internal/helper"
	"abl/internal/witness"
	"abl/roles/agent"
)

// serveCommands runs the broker in the app's container.
func serveCommands(ctx context.Context, s started) error {
	spec, err := helper.Read[helper.BrokerSpec](s.file(helper.Broker))
	if err != nil {
		return err
	}
	if err := probe.First(ctx, spec.Probe, os.Stdout); err != nil {
		return err
	}
	return broker.Serve(ctx, spec)
}

// playScript is the scripted agent. It plays the call in the file that the argument names, in the current
// directory, and returns the exit code.
func playScript(ctx context.Context, s started) int {
	if len(s.args) != 1 {
		return refuse(s.as, errors.New("takes one argument, the file with the call to play"))
	}
	data, err := os.ReadFile(s.args[0])
	if err != nil {
		return refuse(s.as, err)
	}
	call, err := agent.ParseCall(s.args[0], data)
	if err != nil {
		return refuse(s.as, err)
	}
	p := agent.Player{Call: call, AppURL: os.Getenv("ABL_APP_URL"), Dir: ".", Out: os.Stdout, Now: time.Now}
	return p.Play(ctx)
}

// look is the probe of the engine's networks. "look NET" probes a network and prints the result as a line of
// JSON, "say WORD ADDRESS" is a peer for it, "listen" is a server on the engine's machine that no probe may
// reach, and "await SERVICES" waits for services.
func look(ctx context.Context, s started) error {
	switch {
	case len(s.args) == 2 && s.args[0] == "look":
		var spec helper.ProbeNet
		if err := json.Unmarshal([]byte(s.args[1]), &spec); err != nil {
			return fmt.Errorf("cannot read the network to probe: %w", err)
		}
		begun := time.Now()
		proof := probe.Network(ctx, &spec)
		return json.NewEncoder(os.Stdout).Encode(helper.Probed{Proof: proof, MS: time.Since(begun).Milliseconds()})
	case len(s.args) == 3 && s.args[0] == "say":
		return say(ctx, s.args[1], s.args[2])
	case len(s.args) == 1 && s.args[0] == "listen":
		return probe.Listen(ctx, os.Stdin, os.Stdout)
	case len(s.args) == 2 && s.args[0] == "await":
		var all []helper.Service
		if err := json.Unmarshal([]byte(s.args[1]), &all); err != nil {
			return fmt.Errorf("cannot read the services to wait for: %w", err)
		}
		return json.NewEncoder(os.Stdout).Encode(broker.Await(ctx, all))
	}
	return errors.New("takes look NET, say WORD ADDRESS, listen or await SERVICES")
}

// say sends a word on each connection until ctx ends. It prints a line when it listens.
func say(ctx context.Context, word, at string) error {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", at)
	if err != nil {
		return fmt.Errorf("cannot answer probes: %w", err)
	}
	fmt.Println("ready")
	return witness.Serve(ctx, l, func(_ context.Context, conn net.Conn) { _, _ = io.WriteString(conn, word) })
}
