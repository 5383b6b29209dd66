package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/internal/git"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/environment"
)

// phaseRun is a phase, or a shell in one, in its environment.
type phaseRun struct {
	*session
	phase   int
	file    *state.File
	specs   spec.Set
	out     state.Sink
	env     *environment.Environment
	src     *git.Repo
	tests   *git.Repo
	jobs    *orchestrator.RoleJobs
	runner  *roles.Runner
	app     *roles.App
	book    money.Book
	account *money.Account
}

// Whether the agents of a run get their keys.
const (
	withKeys    = true
	withoutKeys = false
)

// begin opens the environment and sets up the roles in it. When that fails, what was
// made so far is taken down.
func (s *session) begin(ctx context.Context, n int, f *state.File, specs spec.Set, out state.Sink, keys bool) (*phaseRun, error) {
	r := &phaseRun{session: s, phase: n, file: f, specs: specs, out: out}
	r.account = r.accounts()
	var err error
	if r.env, err = environment.Open(ctx, r.options()); err != nil {
		return nil, exit.OnEngine(err)
	}
	s.net = r.env.Net
	for _, do := range []func() error{
		func() error { return r.castRoles(ctx) }, r.openWorkspaces, func() error { return r.setUp(ctx, keys) }, ctx.Err,
	} {
		if err := do(); err != nil {
			return nil, errors.Join(exit.OnEngine(err), r.end(ctx, err))
		}
	}
	return r, nil
}

func (r *phaseRun) options() environment.Options {
	return environment.Options{
		Project: r.project, ID: r.file.Project, Phase: r.phase, Conf: r.conf, Root: r.project.Root, Life: r.life(),
		CACert: r.in.String("ca-cert"), Offline: r.in.Bool("offline"), Weak: r.in.Bool(cli.WeakFlag), Net: r.net,
		Secret: func(name string) string { value, _ := r.key(name); return value }, Safe: r.in.Safe,
		Alone: r.held.Still, Ready: r.known, Down: func() error { return r.giveBack(r.file, r.out) }, AtRest: func() string { return callAtRest(r.file, fmt.Sprint(r.phase)) },
		Note: r.note, NoteImage: func(line string) { r.emit(state.Event{Text: line}) },
	}
}

// life is beyond what a whole round of calls can take: after it what holds the
// phase's networks ends by itself, should nobody have taken it down.
func (r *phaseRun) life() time.Duration {
	const tries = 3 // of each role's call, at most
	call := time.Duration(r.conf.Loop.CallTimeout) + environment.StartTime(r.conf) + 10*time.Minute
	return 24*time.Hour + time.Duration(r.conf.Loop.OutageBudget) + time.Duration(2*tries*r.conf.Loop.MaxVerifierIterations)*call
}

// known keeps the project's id before anything stands under it on the engine: what
// a kill leaves there is looked for under the id in state.json.
func (r *phaseRun) known() error {
	if kept, err := state.Load(r.project.State()); err == nil && kept.Project == r.file.Project {
		return nil
	}
	return r.save()
}

// emit tells those who follow the run.
func (r *phaseRun) emit(e state.Event) {
	e.Time, e.Kind = time.Now().UTC(), state.Note
	r.out.Emit(e)
}

// note tells the person something worth knowing.
func (r *phaseRun) note(text string) { r.emit(state.Event{Phase: r.phase, Text: text}) }

// save writes state.json, unless it may be another abl's by now.
func (r *phaseRun) save() error {
	if err := r.held.Still(); err != nil {
		return err
	}
	return state.Save(r.project.State(), r.file)
}

// end closes the environment.
func (r *phaseRun) end(ctx context.Context, why error) error {
	left, err := r.env.Close(ctx, why)
	if left != "" && err == nil {
		r.emit(state.Event{Phase: r.phase, Call: left, Text: environment.Left(left)})
	}
	return err
}

// callAtRest is the call that a phase rests in, "" between calls.
func callAtRest(f *state.File, phase string) string {
	p := f.Phases[phase]
	if p == nil || p.Status != state.Building && p.Status != state.Verifying {
		return ""
	}
	return p.Call
}

// loop is what takes the phase to where it rests next.
func (r *phaseRun) loop() *orchestrator.Loop {
	this, _ := r.specs.Phase(r.phase)
	return &orchestrator.Loop{
		Number: r.phase, Max: r.conf.Loop.MaxVerifierIterations, NoProgress: r.conf.Loop.NoProgress.Failed, NoVerdict: r.conf.Loop.NoProgress.Unverified, Spec: this, Specs: orchestrator.HeldSpecs{Set: r.specs, Now: r.session.specs}, Project: r.project, File: r.file, Save: r.save,
		Calls: r.runner, App: r.app, Jobs: r.jobs, Src: repo{r.src}, Tests: repo{r.tests},
		Ledger: r.book, Alone: r.held.Still, Before: r.budget, Replay: r.replays(), Challenge: r.challenge(), TestNames: r.testNames, Out: r.out, Safe: r.in.Safe,
		Outages: r.outages(), TakeMine: r.in.Bool("take-mine"),
	}
}

// outages say how this phase lives through its provider's absence.
func (r *phaseRun) outages() orchestrator.Outages {
	o := orchestrator.Outages{Budget: time.Duration(r.conf.Loop.OutageBudget), Models: map[string]int{}}
	for role, p := range r.jobs.Players {
		o.Models[role] = len(p.Models())
	}
	return o
}
