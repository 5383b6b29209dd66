package environment

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/roles"
	"abl/roles/agent"
)

// Agents finds agents by name: abl's own, and those of the project's settings.
type Agents struct {
	Conf     *config.Loaded
	Root     string // of the project
	Scenario string // file for the scripted agent, "" for that of the settings
}

// Own returns the sorted names of the project's own agents.
func (s Agents) Own() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Conf.Agents)) {
		if s.Conf.Agents[name].Own() {
			names = append(names, name)
		}
	}
	return names
}

// RoleAgent is the agent of a role, with the full names of its models and the effort of each.
type RoleAgent struct {
	Agent           agent.Agent
	Models, Efforts []string
}

// ForRole returns the agent that the settings choose for the Builder or the Verifier.
func (s Agents) ForRole(role string) (c RoleAgent, err error) {
	name, models, effort := s.Conf.Agent.Builder, s.Conf.Models.Builder, s.Conf.Effort.Builder
	if role == roles.Verifier.Name {
		name, models, effort = s.Conf.Agent.Verifier, s.Conf.Models.Verifier, s.Conf.Effort.Verifier
	}
	if c.Agent, err = s.LoggedIn(name); err != nil {
		return c, err
	}
	if len(models) == 0 {
		models = config.Chain{c.Agent.DefaultModel}
	}
	for _, short := range models {
		full, err := c.Agent.FullName(short)
		if err != nil {
			do := "set models." + role + " in .abl/config.yaml, or --model, to the full name of a model"
			return c, &Error{Usage, do, err}
		}
		effort, err := c.Agent.EffortOf(full, effort, s.Conf.Chosen("effort."+role))
		if err != nil {
			return c, &Error{Usage, "leave out effort." + role + ", or set models." + role + " to another model", err}
		}
		c.Models, c.Efforts = append(c.Models, full), append(c.Efforts, effort)
	}
	return c, nil
}

// Find returns the agent with a name.
func (s Agents) Find(name string) (agent.Agent, error) {
	own := s.Conf.Agents[name]
	switch {
	case name == agent.ScriptedName:
		return s.scripted()
	case name == "copilot":
		a := agent.Copilot(s.copilotAPI())
		a.Version = own.Version
		return a, nil
	case !own.Own():
		a, err := agent.Find(name)
		a.Version = own.Version
		return a, err
	}
	vars, err := s.service(name)
	a := agent.Agent{Name: name, Image: own.Image, NPM: own.NPM, DefaultModel: own.Model, Provider: vars}
	return agent.Custom(a, agent.Settings{Command: own.Command, ACP: own.ACP, Env: own.Env, Usage: own.Usage}), err
}

// service returns the provider that the settings give an agent.
func (s Agents) service(name string) (agent.Provider, error) {
	own := s.Conf.Agents[name]
	of := own.Provider
	switch {
	case own.API != "":
		keyVar := own.Key
		if keyVar == config.NoKey {
			keyVar = ""
		}
		return agent.OwnProvider(name, own.API, keyVar, own.Base), nil
	case of == "":
		return agent.Provider{}, nil
	}
	other, err := s.Find(of)
	if err != nil {
		return agent.Provider{}, &Error{Class: Usage, Err: fmt.Errorf("agents.%s.provider: %w", name, err)}
	}
	return other.Provider, nil
}

// maxScenario is the largest size of a scenario, in bytes.
const maxScenario = 16 << 20

// scripted returns the offline agent, which plays a scenario instead of calling a model.
func (s Agents) scripted() (agent.Agent, error) {
	dir, name, called := s.Root, s.Conf.Agents[agent.ScriptedName].Scenario, s.Scenario
	if called != "" {
		dir, name = filepath.Dir(called), filepath.Base(called)
	} else if called = name; called == "" {
		return agent.Agent{}, &Error{Usage,
			"set agents: {scripted: {scenario: .abl/scenario.yaml}}, or use abl learn --scenario FILE (docs/scripted-agent.md)",
			errors.New("the scripted agent has no scenario")}
	}
	data, err := hostfs.Read(dir, filepath.Clean(name), maxScenario)
	if err != nil {
		return agent.Agent{}, &Error{Usage, "a scenario must be a regular file, not a link",
			fmt.Errorf("cannot read the scenario: %w", err)}
	}
	script, err := agent.Parse(called, data)
	if err != nil {
		return agent.Agent{}, &Error{Class: Usage, Err: err}
	}
	vars, err := s.service(agent.ScriptedName)
	return agent.Scripted(script, filepath.Join(dir, filepath.Dir(name)), vars), err
}
