// Package learn holds the commands of the learner, which abl and agent-learner
// share: sessions, the interactive mode, and what is made of an answer. What a
// session does is orchestrator/learner's.
package learn

import (
	"fmt"
	"slices"
	"strings"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/internal/nearest"
	"abl/roles/agent"
)

// player is an agent and the model that it is asked with.
type player struct{ agent, model string }

// offered are abl's own agents with their default models, the default first.
func offered() []player {
	return []player{{"claude", "sonnet"}, {"codex", "gpt-5.2"}, {"copilot", "claude-sonnet-4"}, {"gemini", "gemini-2.5-pro"}, {agent.ScriptedName, agent.ScriptedName}}
}

func agentNames() (names []string) {
	for _, p := range offered() {
		names = append(names, p.agent)
	}
	return names
}

// agents are those that can be found here.
func (w *work) agents() ground.Agents {
	return ground.Agents{Conf: w.conf, Root: w.root, Scenario: w.in.String("scenario")}
}

// names are the agents that can be chosen, the default first.
func (w *work) names() []string { return append(agentNames(), w.agents().Own()...) }

// choose finds an agent by its name.
func (w *work) choose(name string) (player, error) {
	if slices.Contains(w.agents().Own(), name) {
		a, err := w.agents().Find(name)
		if err != nil {
			return player{}, err
		}
		return player{name, a.DefaultModel()}, nil
	}
	for _, p := range offered() {
		if p.agent == name {
			return p, nil
		}
	}
	hint := "it is one of " + strings.Join(w.names(), ", ")
	if near := nearest.Word(name, w.names()); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return player{}, exit.With(exit.Usage, fmt.Errorf("cannot find the agent %q", name), hint)
}
