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
	a, err := agent.Find(name, s.scripted)
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
		p.Model = models[0]
	}
	return p, nil
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
	return agent.NewScripted(sc, filepath.Dir(path)), nil
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

// giveKey lets a role talk to its provider with the person's own key.
func (s *session) giveKey(p *orchestrator.Player) error {
	name := agent.KeyName(p.Agent)
	if name == "" {
		return nil
	}
	value, _ := s.key(name)
	if value == "" {
		return noKey(name)
	}
	p.Direct = true
	p.Env = append(p.Env, name+"="+value)
	for _, setting := range directSettings {
		if v, _ := s.key(setting); v != "" {
			p.Env = append(p.Env, setting+"="+v)
		}
	}
	return nil
}

func noKey(name string) error {
	return fault(exit.Usage, fmt.Errorf("cannot find %s", name), fmt.Sprintf("add %s=… to .env, or choose another agent in .abl/config.yaml", name))
}

// directSettings reach a role beside its direct key: where its provider answers.
var directSettings = []string{"GOOGLE_GEMINI_BASE_URL"}
