package main

import (
	"context"
	"fmt"
	"slices"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/money"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/roles/agent"
)

// runFlags are the flags of everything that plays a phase.
func runFlags() []cli.Flag {
	return slices.Concat([]cli.Flag{
		{Name: "json", Usage: "one JSON event a line on stdout (docs/events.md)"},
		{Name: "progress", Value: "HOW", Default: "auto", Values: []string{"auto", "tty", "plain", "json"}, Usage: "how progress is shown"},
		{Name: "agent", Value: "NAME", Values: agent.Names(), Open: true, Usage: "play both roles with this agent (docs/agents.md)"},
		{Name: "builder-agent", Value: "NAME", Values: agent.Names(), Open: true, Usage: "play the Builder with this agent"},
		{Name: "verifier-agent", Value: "NAME", Values: agent.Names(), Open: true, Usage: "play the Verifier with this agent, best of another family than the Builder's"},
		{Name: "take-mine", Usage: "commit what you changed in the source by hand, and go on from it"},
	}, money.Flags(), cli.EnvironmentFlags())
}

// flagSettings are the settings that flags of this command line set.
func flagSettings(in *cli.Input) map[string]string {
	set := map[string]string{}
	for flag, key := range map[string]string{"agent": "agent", "builder-agent": "agent.builder", "verifier-agent": "agent.verifier"} {
		if in.Set(flag) {
			set[key] = in.String(flag)
		}
	}
	money.Settings(in, set)
	return set
}

func runCommand() cli.Command {
	return cli.Command{
		Name: "run", Group: cli.Running, Usage: "run the next pending phase; with --through all of them in order",
		Long: `Runs the first phase that has not passed, and stops after it for your audit:
refine the specs, or approve by going on. With --through it goes on to the last.`,
		Examples: "abl run\nabl run --through --json",
		Flags: append(runFlags(),
			cli.Flag{Name: "through", Usage: "do not stop between phases"}),
		Run: func(ctx context.Context, in *cli.Input) error {
			s, err := open(in)
			if err != nil {
				return err
			}
			return s.runPending(ctx, in.Bool("through"))
		},
	}
}

// runPending plays phases from the first that has not passed.
func (s *session) runPending(ctx context.Context, through bool) error {
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	defer v.Close()
	e := state.Event{Kind: state.Outcome}
	for played := false; ; played = true {
		n, last, err := s.next()
		switch {
		case err != nil:
			e.Text = err.Error()
			return s.tellOutcome(v, e, err)
		case n == 0 && played:
			return s.tellOutcome(v, e, nil)
		case n == 0: // the last one says that there is nothing to do, or what is missing
			e, err = s.playPhase(ctx, max(1, last), false, v)
			return s.tellOutcome(v, e, err)
		case played:
			v.Emit(state.Event{Kind: state.Note, Phase: e.Phase, Text: fmt.Sprintf("phase %d: %s", e.Phase, e.Text)})
		}
		e, err = s.playPhase(ctx, n, false, v)
		if e, err = s.published(ctx, n, e, err); err != nil || !through {
			return s.tellOutcome(v, e, err)
		}
	}
}

// next is the first phase that has not passed, 0 for none, and how many there are.
func (s *session) next() (n, all int, err error) {
	specs := s.specs()
	f, err := s.state()
	if err != nil {
		return 0, 0, err
	}
	return pending(f, specs), len(specs.Numbers()), nil
}

// pending is the first phase that has not passed with its spec as it is now; 0 is none.
func pending(f *state.File, specs spec.Set) int {
	for _, n := range specs.Numbers() {
		p := f.Phases[fmt.Sprint(n)]
		this, _ := specs.Phase(n)
		if p == nil || p.Status != state.Passed || p.SpecSHA != this.SHA256 {
			return n
		}
	}
	return 0
}
