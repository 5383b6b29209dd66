package main

import (
	"errors"
	"fmt"
	"os"
	"time"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/internal/config"
	"abl/orchestrator"
	"abl/orchestrator/dirs"
	"abl/prompts"
	"abl/roles"
	"abl/roles/agent"
)

// player resolves who plays a role; it needs no engine. Images come later.
func (s *session) player(role roles.Role) (orchestrator.Player, error) {
	name, models, cmds := s.conf.Agent.Builder, s.conf.Models.Builder, s.conf.BuilderCommands
	if role.Name == roles.Verifier.Name {
		name, models, cmds = s.conf.Agent.Verifier, s.conf.Models.Verifier, s.conf.VerifierCommands
	}
	a, err := s.agent(name)
	if err != nil {
		return orchestrator.Player{}, fault(exit.Usage, err, "")
	}
	own, err := os.ReadFile(s.project.Prompt(role.Name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return orchestrator.Player{}, fmt.Errorf("cannot read the %s's prompt: %w", role.Name, err)
	}
	tmpl, _, err := prompts.Choose(role.Name, own)
	if err != nil {
		return orchestrator.Player{}, fault(exit.Usage, err, "")
	}
	p := orchestrator.Player{Agent: a, Model: a.DefaultModel(), Template: tmpl, Commands: commands(cmds)}
	for _, name := range models {
		full, err := agent.FullName(a, name)
		if err != nil {
			return p, fault(exit.Usage, err, "name one in full in .abl/config.yaml (models."+role.Name+")")
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
	return ground.Agents{Conf: s.conf, Root: s.project.Root}.Find(name)
}

// commands is a declared command table in the order of its names.
func commands(table map[string]config.Command) (all []dirs.Command) {
	for _, name := range sortedKeys(table) {
		c := table[name]
		all = append(all, dirs.Command{
			Name: name, Description: c.Description, Command: c.Command, Shown: c.Output == "shown",
			Background: c.Background, TimeoutMS: time.Duration(c.Timeout).Milliseconds(),
		})
	}
	return all
}
