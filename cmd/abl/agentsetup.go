package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/images"
	"abl/internal/config"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/prompts"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// roleSetting is what the settings say of one role.
type roleSetting struct {
	agent      string
	models     []string
	dockerfile string
	commands   map[string]config.Command
}

func settingOf(c *config.Loaded, role roles.Role) roleSetting {
	if role.Name == roles.Verifier.Name {
		return roleSetting{c.Agent.Verifier, c.Models.Verifier, c.Images.Verifier.Dockerfile, c.VerifierCommands}
	}
	return roleSetting{c.Agent.Builder, c.Models.Builder, c.Images.Builder.Dockerfile, c.BuilderCommands}
}

// player resolves who plays a role; it needs no engine. Images come later.
func (s *session) player(role roles.Role) (orchestrator.Player, error) {
	set := settingOf(s.conf, role)
	a, err := s.agent(set.agent)
	if err != nil {
		return orchestrator.Player{}, exit.With(exit.Usage, err, "")
	}
	own, err := os.ReadFile(s.project.Prompt(role.Name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return orchestrator.Player{}, fmt.Errorf("cannot read the %s's prompt: %w", role.Name, err)
	}
	tmpl, _, err := prompts.Choose(role.Name, own)
	if err != nil {
		return orchestrator.Player{}, exit.With(exit.Usage, err, "")
	}
	p := orchestrator.Player{Agent: a, Model: a.DefaultModel(), Template: tmpl, Commands: environment.Commands(set.commands)}
	for _, name := range set.models {
		full, err := agent.FullName(a, name)
		if err != nil {
			return p, exit.With(exit.Usage, err, "name one in full in .abl/config.yaml (models."+role.Name+")")
		}
		p.Chain = append(p.Chain, full)
	}
	if len(p.Chain) > 0 {
		p.Model = p.Chain[0]
	}
	return p, nil
}

// agent finds an agent by name: one of abl's, or one of the project's own.
func (s *session) agent(name string) (agent.Agent, error) {
	return environment.Agents{Conf: s.conf, Root: s.project.Root}.Find(name)
}

// image is what is wanted for a role.
func (s *session) image(role roles.Role, a agent.Agent) (want images.Want, err error) {
	want.Agent = a.Image()
	want.Dockerfile, err = s.dockerfile(settingOf(s.conf, role).dockerfile)
	return want, err
}

// checkImages looks whether the project's Dockerfiles may be built at all.
func (s *session) checkImages() error {
	own := s.conf.Images
	for _, rel := range []string{own.Builder.Dockerfile, own.Verifier.Dockerfile, own.App.Dockerfile} {
		if _, err := s.dockerfile(rel); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) dockerfile(rel string) (string, error) {
	return environment.Dockerfile(s.project.Root, rel, s.project.Src, s.project.Tests)
}

// castRoles finds who plays which role and makes their images and the app.
func (r *phaseRun) castRoles(ctx context.Context) error {
	r.jobs = &orchestrator.RoleJobs{
		Number: r.phase, Project: r.project, Specs: r.specs, App: environment.AppSpec(r.conf),
		Players: map[string]orchestrator.Player{}, Holder: r.env.Site.Holder, Safe: r.in.Safe,
	}
	for _, role := range roles.Both() {
		p, err := r.player(role)
		if err != nil {
			return err
		}
		want, err := r.image(role, p.Agent)
		if err != nil {
			return err
		}
		if p.Image, err = r.env.Images.Ensure(ctx, want); err != nil {
			return fmt.Errorf("cannot make the %s's image: %w", role.Name, err)
		}
		r.jobs.Players[role.Name] = p
	}
	var err error
	r.app, err = r.env.App(ctx, r.jobs.Players[roles.Builder.Name].Image, r.out)
	return err
}

// setUp gives the roles their ways out, and makes what runs their calls.
func (r *phaseRun) setUp(ctx context.Context, keys bool) error {
	r.jobs.Files = map[string]orchestrator.Files{roles.Builder.Name: files(r.src), roles.Verifier.Name: files(r.tests)}
	r.runner = r.env.Runner(r.project, r.out)
	r.runner.Price = r.price
	for _, role := range roles.Both() {
		if err := r.giveGate(ctx, role, keys); err != nil {
			return err
		}
	}
	return nil
}

// giveGate puts a gateway between a role and what it may reach.
func (r *phaseRun) giveGate(ctx context.Context, role roles.Role, keys bool) error {
	if !keys {
		return nil
	}
	list, err := r.pricing()
	if err != nil {
		return err
	}
	p := r.jobs.Players[role.Name]
	g, err := r.env.Gate(ctx, environment.Access{
		Place: role.Name, Role: role.Name, Image: p.Image, Agent: p.Agent, Models: p.Models(), Prices: money.Of(list, p.Models()),
		Fetch: role.Fetches, Budget: r.account.Left,
	})
	if g == nil || err != nil {
		return err
	}
	for _, text := range g.Notes {
		r.emit(state.Event{Phase: r.phase, Role: role.Name, Text: text})
	}
	p.Gate, p.Hosts, p.Files = g, g.Hosts, g.Files
	r.jobs.Players[role.Name] = p
	return nil
}
