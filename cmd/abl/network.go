package main

import (
	"context"

	"abl/cmd/internal/ground"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/orchestrator/event"
)

// proveNetworks learns, once a run, how the engine keeps networks apart.
func (s *session) proveNetworks(ctx context.Context, eng *docker.Engine, info sandbox.Info) error {
	if s.net != nil {
		return nil
	}
	net, err := ground.Networks(ctx, s.in, eng, info, s.conf.Network.Pool)
	if err != nil {
		return err
	}
	s.net = &net
	return nil
}

// weak is why the networks of this run are not proven; "" when they are.
func (s *session) weak() string {
	if s.net == nil {
		return ""
	}
	return s.net.Weak
}

// marked says of what begins and of how all ends that the network is weak.
type marked struct {
	event.Sink
	s *session
}

// Emit marks an event and hands it on.
func (m marked) Emit(e event.Event) {
	switch e.Kind {
	case event.PhaseStart, event.CallStart, event.CallResume, event.Outcome:
		e.Weak = m.s.weak() != ""
	}
	m.Sink.Emit(e)
}
