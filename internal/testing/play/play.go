// Package play runs a phase in this process on the engine that a test provides, with the real
// loop, roles, ledger and repositories. It leaves out what cmd/abl adds: the lock, the lease, the
// view and the configuration.
package play

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"abl/internal/git"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/prompts"
	"abl/roles"
	"abl/roles/app"
	"abl/roles/boundary"
	"abl/roles/call"
	"abl/roles/replay"
)

// Phase is phase 1 of a project.
type Phase struct {
	Root    string
	Engine  sandbox.Engine
	Outages orchestrator.Outages
	Quota   roles.DiskQuota
	Out     state.Sink // nil discards the output
	// Change replaces the agent of a role. If it is nil, both roles use Tiny.
	Change func(role roles.Role, containers *boundary.Containers, p *orchestrator.Player)
}

// Play runs the phase until it stops, and then removes its containers and networks.
func (x Phase) Play(ctx context.Context) (state.Phase, error) {
	if x.Out == nil {
		x.Out = state.Discard
	}
	l, err := x.loop()
	if err != nil {
		return state.Phase{}, err
	}
	r, err := l.Run(ctx)
	if err != nil {
		return r, err
	}
	_, err = x.Engine.Sweep(ctx, map[string]string{sandbox.LabelProject: l.File.Project}, nil)
	return r, err
}

func (x Phase) loop() (*orchestrator.Loop, error) {
	p, out := state.NewProject(x.Root, "src", ".abl/tests"), redact.NewSanitizer(nil)
	f, err := state.Load(p.State())
	if err != nil {
		return nil, err
	}
	specs, _ := spec.LoadDir(p.Specs())
	_, ok := specs.Phase(1)
	o := git.Options{Begun: len(f.Begun()) > 0}
	src, err1 := git.Open(p.Src, o)
	tests, err2 := git.Open(p.Tests, o)
	book, err3 := openBook(p.Ledger())
	if err := errors.Join(err1, err2, err3); err != nil || !ok {
		return nil, fmt.Errorf("cannot begin: %w, a spec: %t", err, ok)
	}
	if f.Phases["1"] == nil {
		f.Phases["1"] = &state.Phase{Status: state.Ready}
	}
	containers := x.containers(f.Project, out)
	app := &app.App{
		Containers: containers,
		Project:    p,
		Image:      "app",
		Copy:       "tar",
		Commits:    repo{src},
		Out:        x.Out,
		Silence:    time.Minute,
		Life:       time.Hour,
		Spec:       helper.BrokerSpec{Port: helper.BrokerPort, Dir: helper.Src},
	}
	return &orchestrator.Loop{
		Number:    1,
		Max:       5,
		Specs:     orchestrator.HeldSpecs{Set: specs},
		Project:   p,
		File:      f,
		Save:      func() error { return state.Save(p.State(), f) },
		Calls:     &call.Runner{Containers: containers, Project: p, Output: 1 << 20, Timeout: time.Minute, Quota: x.Quota, Out: x.Out},
		App:       app,
		Jobs:      x.jobs(p, specs, containers, out),
		Src:       repo{src},
		Tests:     repo{tests},
		Ledger:    book,
		CheckLock: func() error { return nil },
		Before:    func(string) error { return nil },
		Outages:   x.Outages,
		Out:       x.Out,
		Safe:      out,
		Replay: &replay.Runner{App: app, Image: "tools", Tests: func(ctx context.Context, w io.Writer, _, as string) error {
			return hostfs.Tar(w, as, p.Tests, ".git")
		}},
		Strictness: orchestrator.Strictness{NoNull: "nobody knows its port"},
		TestNames:  func(context.Context) ([]string, error) { return nil, nil },
	}, nil
}

func (x Phase) containers(project string, out *redact.Sanitizer) *boundary.Containers {
	return &boundary.Containers{
		Engine: x.Engine,
		ID:     project,
		Phase:  1,
		UID:    uid,
		GID:    uid,
		Limits: limits,
		Helper: "holder",
		Pool:   "10.231.0.0/16",
		Gated:  map[string]bool{},
		Safe:   out,
	}
}

// uid is the user id of the roles.
const uid = 1000

// limits are the limits of every container of a phase.
var limits = sandbox.Limits{Memory: 1 << 30, CPUs: 1, Pids: 64, FileSize: 1 << 30, OpenFile: 256}

func (x Phase) jobs(p state.Project, specs spec.Set, containers *boundary.Containers, out *redact.Sanitizer) *orchestrator.RoleJobs {
	none := func(context.Context, int) ([]string, error) { return nil, nil }
	jobs := &orchestrator.RoleJobs{
		Number:  1,
		Project: p,
		Specs:   specs,
		Players: map[string]orchestrator.Player{},
		Safe:    out,
		Files:   map[string]orchestrator.Files{roles.Builder.Name: none, roles.Verifier.Name: none},
	}
	for _, r := range []roles.Role{roles.Builder, roles.Verifier} {
		who := orchestrator.Player{Agent: Tiny(), Models: []string{"m"}, Image: "tools", Template: prompts.Default(r.Name)}
		if x.Change != nil {
			x.Change(r, containers, &who)
		}
		jobs.Players[r.Name] = who
	}
	return jobs
}
