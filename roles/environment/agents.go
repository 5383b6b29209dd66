package environment

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/roles/agent"
)

// Agents finds agents by name: abl's, and those of a project's own.
type Agents struct {
	Conf     *config.Loaded
	Root     string // of the project
	Scenario string // that the person named for the scripted agent; "" is the settings' one
}

// Own are the names of the project's own agents, sorted.
func (s Agents) Own() (names []string) {
	for _, name := range slices.Sorted(maps.Keys(s.Conf.Agents)) {
		if s.Conf.Agents[name].Own() {
			names = append(names, name)
		}
	}
	return names
}

// Find makes an agent ready to be asked for its command line.
func (s Agents) Find(name string) (agent.Agent, error) {
	own := s.Conf.Agents[name]
	switch {
	case name == agent.ScriptedName:
		return s.scripted()
	case name == "copilot":
		return agent.Copilot(s.copilotAPI()), nil
	case !own.Own():
		return agent.Find(name)
	}
	vars, err := s.service(name)
	a := agent.Agent{Name: name, Image: own.Image, NPM: own.NPM, DefaultModel: own.Model, Provider: vars}
	return agent.Custom(a, agent.Settings{Command: own.Command, ACP: own.ACP, Env: own.Env, Usage: own.Usage}), err
}

// service are the variables of the provider that the settings give an agent.
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

// maxScenario is how large a scenario may be, in bytes.
const maxScenario = 16 << 20

// scripted makes the offline agent, which plays a scenario instead of asking a model.
func (s Agents) scripted() (agent.Agent, error) {
	dir, name, called := s.Root, s.Conf.Agents[agent.ScriptedName].Scenario, s.Scenario
	if called != "" {
		dir, name = filepath.Dir(called), filepath.Base(called)
	} else if called = name; called == "" {
		return agent.Agent{}, &Error{Usage,
			"agents: {scripted: {scenario: .abl/scenario.yaml}} in the settings names one, and abl learn takes --scenario FILE (docs/scripted-agent.md)",
			errors.New("the scripted agent has no scenario")}
	}
	data, err := hostfs.Read(dir, filepath.Clean(name), maxScenario)
	if err != nil {
		return agent.Agent{}, &Error{Usage, "a scenario is a regular file; no link is followed", fmt.Errorf("cannot read the scenario: %w", err)}
	}
	script, err := agent.Parse(called, data)
	if err != nil {
		return agent.Agent{}, &Error{Class: Usage, Err: err}
	}
	vars, err := s.service(agent.ScriptedName)
	return agent.Scripted(script, filepath.Join(dir, filepath.Dir(name)), vars), err
}
