package phase

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"abl/internal/state"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// Call is one call on disk.
type Call struct {
	roles.Record
	roles.KeyParts
	roles.Intent
	Iteration int // 0 when it cannot be told
	Outcome   roles.Outcome
	Ended     bool
}

// Calls lists the calls on disk, oldest first. A record is begun before the engine is
// asked for anything: one that was not started is no call.
func (s *Project) Calls() ([]Call, error) {
	entries, err := os.ReadDir(s.Paths.Calls())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the calls: %w", err)
	}
	f, err := s.State()
	if err != nil { // it only tells which iteration a call was
		s.In.Warn(err)
		f = &state.File{}
	}
	var all []Call
	for _, e := range entries {
		k, ok := roles.ParseKey(e.Name())
		if !ok || !e.IsDir() {
			continue
		}
		c := Call{Record: roles.Record{Dir: s.Paths.Call(e.Name())}, KeyParts: k}
		c.Iteration = iterationOf(f.Phase(c.Phase), c.Step)
		c.Intent, _, _ = c.Record.Intent()
		c.Key = e.Name()
		if c.Outcome, c.Ended, err = c.Record.Outcome(); err != nil {
			return nil, err
		}
		if c.Ended || c.Started() {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b Call) int { return a.Begun.Compare(b.Begun) })
	return all, nil
}

// iterationOf finds the iteration that a step was, from the phase's history.
func iterationOf(p state.Phase, step int) int {
	if p.Step == step {
		return p.Iteration
	}
	for _, h := range p.History {
		if h.Step == step {
			return h.Iteration
		}
	}
	return 0
}

// Proofs are those that the call's record keeps: of its own box, and of the app's
// that was up for it.
func (c Call) Proofs() (all []roles.Boundary, err error) {
	own, ok, err := c.Boundary()
	if ok {
		all = append(all, own)
	}
	app, ok, aerr := c.App().Boundary()
	if ok {
		all = append(all, app)
	}
	return all, errors.Join(err, aerr)
}

// Transcript tells what the agent of a call said and did, in its order, as far as it
// printed it.
func Transcript(s *Project, c Call, each func(agent.Message)) error {
	to := Messages(s, c, each)
	err := roles.Lines(context.Background(), c.Stdout(), to, func() (bool, error) { return true, nil })
	to(nil, false)
	return err
}

// Messages takes the lines of a call's output, an empty one after the last, and hands on
// what its agent says and does.
func Messages(s *Project, c Call, each func(agent.Message)) func(line []byte, cut bool) {
	a, err := agent.Find(c.Agent)
	if s.Conf.Agents[c.Agent].Command != "" {
		a, err = environment.Agents{Conf: s.Conf, Root: s.Paths.Root}.Find(c.Agent)
	}
	if err != nil { // the settings have it no more: each line is its words
		a = agent.Custom(agent.Agent{Name: c.Agent}, "", nil, "")
	}
	return roles.Messages(a.NewReader(agent.Call{Model: c.Model}), s.In.Safe, each)
}
