package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/orchestrator"
	"abl/orchestrator/dirs"
	"abl/prompts"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/scenario"
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
	if len(models) > 0 {
		p.Model, p.Chain = models[0], models
	}
	return p, nil
}

// agent finds an agent by name: one of the project's own, or one of abl's.
func (s *session) agent(name string) (agent.Agent, error) {
	own := s.conf.Agents[name]
	if own.Command == "" {
		return agent.Find(name, s.scripted)
	}
	a := agent.Custom{Called: name, Shell: own.Command, Env: own.Env, Usage: own.Usage, Model: own.Model, Box: own.Image}
	if own.Provider != "" {
		vars, err := s.vars("agents."+name+".provider", own.Provider)
		if err != nil {
			return nil, err
		}
		a.Service = vars
	}
	return a, nil
}

// vars are the variables of an agent's provider, which another one is given.
func (s *session) vars(key, name string) (agent.Provider, error) {
	other, err := agent.Find(name, nil)
	if err != nil {
		return agent.Provider{}, fault(exit.Usage, fmt.Errorf("%s: %w", key, err), "")
	}
	vars, _ := agent.ProviderOf(other)
	return vars, nil
}

// scripted makes the offline agent from the project's scenario.
func (s *session) scripted() (agent.Agent, error) {
	rel := s.conf.Agents[agent.ScriptedName].Scenario
	if rel == "" {
		return nil, fault(exit.Usage, errors.New("the scripted agent has no scenario"), "agents: {scripted: {scenario: .abl/scenario.yaml}}")
	}
	path := filepath.Join(s.project.Root, rel)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fault(exit.Usage, fmt.Errorf("cannot read the scenario: %w", err), "")
	}
	sc, err := scenario.Parse(rel, data)
	if err != nil {
		return nil, fault(exit.Usage, err, "")
	}
	a := agent.NewScripted(sc, filepath.Dir(path))
	if served := s.conf.Agents[agent.ScriptedName].Provider; served != "" {
		vars, err := s.vars("agents.scripted.provider", served)
		if err != nil {
			return nil, err
		}
		a = a.ServedBy(vars)
	}
	return a, nil
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
