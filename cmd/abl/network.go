package main

import (
	"context"
	"errors"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/roles/environment"
)

// proveNetworks learns, once a run, how the engine keeps networks apart.
func (s *session) proveNetworks(ctx context.Context) error {
	eng, info, err := environment.Connect(ctx)
	if err != nil {
		return exit.OnEngine(err)
	}
	if s.net == nil {
		net, nerr := environment.Networks(ctx, environment.Prober{
			Engine: eng, Info: info, Pool: s.conf.Network.Pool, CACert: s.in.String("ca-cert"), Offline: s.in.Bool("offline"),
		}, s.in.Bool(cli.WeakFlag))
		if err = nerr; err == nil {
			s.net = &net
		}
	}
	return exit.OnEngine(errors.Join(err, eng.Close()))
}

// tidyAtRest removes what a run that was killed after its last save has left:
// boxes where an engine answers, for there is nothing else to ask one for, and
// what is lent.
func (s *session) tidyAtRest(ctx context.Context, f *state.File, out state.Sink) error {
	eng, _, err := environment.Connect(ctx)
	if err == nil {
		_, err = eng.Sweep(ctx, map[string]string{sandbox.LabelProject: f.Project}, nil)
		err = errors.Join(exit.OnEngine(err), eng.Close())
		if err != nil {
			return err
		}
	}
	return s.giveBack(f, out)
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
	state.Sink
	s *session
}

// Emit marks an event and hands it on.
func (m marked) Emit(e state.Event) {
	switch e.Kind {
	case state.PhaseStart, state.CallStart, state.CallResume, state.Outcome:
		e.Weak = m.s.weak() != ""
	}
	m.Sink.Emit(e)
}
