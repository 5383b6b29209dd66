package phase

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

// Player resolves who plays a role; it needs no engine. Images come later.
func (s *Project) Player(role roles.Role) (orchestrator.Player, error) {
	set := settingOf(s.Conf, role)
	a, err := environment.Agents{Conf: s.Conf, Root: s.Paths.Root}.Find(set.agent)
	if err != nil {
		return orchestrator.Player{}, exit.With(exit.Usage, err, "")
	}
	own, err := os.ReadFile(s.Paths.Prompt(role.Name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return orchestrator.Player{}, fmt.Errorf("cannot read the %s's prompt: %w", role.Name, err)
	}
	tmpl, _, err := prompts.Choose(role.Name, own)
	if err != nil {
		return orchestrator.Player{}, exit.With(exit.Usage, err, "")
	}
	p := orchestrator.Player{Agent: a, Model: a.DefaultModel, Template: tmpl, Commands: environment.Commands(set.commands)}
	for _, name := range set.models {
		full, err := a.FullName(name)
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

// Image is what is wanted for a role.
func (s *Project) Image(role roles.Role, a agent.Agent) (want images.Want, err error) {
	want.Agent = a.Image
	want.Dockerfile, err = s.dockerfile(settingOf(s.Conf, role).dockerfile)
	return want, err
}

// CheckImages looks whether the project's Dockerfiles may be built at all.
func (s *Project) CheckImages() error {
	own := s.Conf.Images
	for _, rel := range []string{own.Builder.Dockerfile, own.Verifier.Dockerfile, own.App.Dockerfile} {
		if _, err := s.dockerfile(rel); err != nil {
			return err
		}
	}
	return nil
}

func (s *Project) dockerfile(rel string) (string, error) {
	return environment.Dockerfile(s.Paths.Root, rel, s.Paths.Src, s.Paths.Tests)
}

// setUp finds who plays which role, makes their images and the app, and opens the
// workspaces.
func (r *Run) setUp(ctx context.Context) (err error) {
	r.jobs = &orchestrator.RoleJobs{
		Number: r.phase, Project: r.Paths, Specs: r.specs, App: environment.AppSpec(r.Conf),
		Players: map[string]orchestrator.Player{}, Safe: r.In.Safe,
	}
	for _, role := range roles.Both() {
		p, err := r.Player(role)
		if err != nil {
			return err
		}
		want, err := r.Image(role, p.Agent)
		if err != nil {
			return err
		}
		if p.Image, err = r.env.Images.Ensure(ctx, want); err != nil {
			return fmt.Errorf("cannot make the %s's image: %w", role.Name, err)
		}
		r.jobs.Players[role.Name] = p
	}
	if r.app, err = r.env.App(ctx, r.jobs.Players[roles.Builder.Name].Image, r.out); err != nil {
		return err
	}
	if err := r.openWorkspaces(); err != nil {
		return err
	}
	r.jobs.Files = map[string]orchestrator.Files{
		roles.Builder.Name: orchestrator.FilesOf(r.Paths.Src, r.src.Files), roles.Verifier.Name: orchestrator.FilesOf(r.Paths.Tests, r.tests.Files),
	}
	r.runner = r.env.Runner(r.Paths, r.out)
	r.runner.Price = r.price
	return nil
}

// openGates puts a gateway between each role and what it may reach.
func (r *Run) openGates(ctx context.Context) error {
	for _, role := range roles.Both() {
		p := r.jobs.Players[role.Name]
		g, err := r.env.Gate(ctx, environment.Access{
			Place: role.Name, Role: role.Name, Image: p.Image, Agent: p.Agent, Models: p.Models(), Prices: money.Of(r.book.List, p.Models()),
			Fetch: role.Fetches, Budget: r.account.Left, Spent: r.account.Spent,
		})
		if err != nil {
			return err
		}
		if g == nil { // it needs none
			continue
		}
		for _, text := range g.Notes {
			r.emit(state.Event{Phase: r.phase, Role: role.Name, Text: text})
		}
		p.Gate, p.Hosts, p.Files = g, g.Hosts, g.Files
		r.jobs.Players[role.Name] = p
	}
	return nil
}
