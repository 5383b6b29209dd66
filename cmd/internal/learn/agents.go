// Package learn holds the commands of the learner, which abl and agent-learner
// share: sessions, the interactive mode, what is made of an answer, and whether
// any of it pays.
package learn

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/config"
	"abl/internal/nearest"
	"abl/roles/agent"
	"abl/roles/scenario"
)

// cliAgent is one of the coding CLIs as the learner offers it.
type cliAgent struct {
	name, model string
	argv        func(model string) []string // on this machine; the prompt comes by standard input
}

// offered are the agents, the default first.
func offered() []cliAgent {
	return []cliAgent{
		{"claude", "sonnet", func(m string) []string {
			return []string{"claude", "-p", "--model", m, "--dangerously-skip-permissions"}
		}},
		{"codex", "gpt-5.2", func(m string) []string {
			return []string{"codex", "exec", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--model", m, "-"}
		}},
		{"copilot", "claude-sonnet-4", func(m string) []string {
			return []string{"copilot", "--allow-all-tools", "--allow-all-paths", "--model", m}
		}},
		{"gemini", "gemini-2.5-pro", func(m string) []string {
			return []string{"gemini", "--approval-mode", "yolo", "-m", m}
		}},
		{agent.ScriptedName, agent.ScriptedName, nil},
	}
}

func agentNames() (names []string) {
	for _, a := range offered() {
		names = append(names, a.name)
	}
	return names
}

// choose finds an agent by its name.
func choose(name string) (cliAgent, error) {
	for _, a := range offered() {
		if a.name == name {
			return a, nil
		}
	}
	hint := "it is one of " + strings.Join(agentNames(), ", ")
	if near := nearest.Word(name, agentNames()); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return cliAgent{}, exit.With(exit.Usage, fmt.Errorf("cannot find the agent %q", name), hint)
}

// aliases are short names that Claude's CLI has for models. In a container it is
// told the whole name, since the gateway lets through what was named and no other.
var aliases = map[string]string{"sonnet": "claude-sonnet-4-5", "opus": "claude-opus-4-5", "haiku": "claude-haiku-4-5"}

// wholeModel is the model as a provider knows it.
func wholeModel(agent, model string) string {
	if whole := aliases[model]; agent == "claude" && whole != "" {
		return whole
	}
	return model
}

// boxed is the agent as it runs in a container.
func boxed(name string, in *cli.Input, conf *config.Loaded, root string) (agent.Agent, error) {
	if name != agent.ScriptedName && !slices.Contains(agent.Names(), name) {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot run %s: this abl has no container for it yet", name),
			"--agent gemini has one; --runtime host runs "+name+" as it is installed here, without a container")
	}
	return agent.Find(name, func() (agent.Agent, error) { return scripted(in, conf, root) })
}

// scripted is the offline agent, which plays a scenario instead of asking a model.
func scripted(in *cli.Input, conf *config.Loaded, root string) (agent.Agent, error) {
	path := in.String("scenario")
	if path == "" && conf.Agents[agent.ScriptedName].Scenario != "" {
		path = filepath.Join(root, conf.Agents[agent.ScriptedName].Scenario)
	}
	if path == "" {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot play the scripted agent without a scenario"), "name one with --scenario FILE (docs/agent-learner.md has an example)")
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot read the scenario: %w", err), "")
	}
	s, err := scenario.Parse(path, data)
	if err != nil {
		return nil, exit.With(exit.Usage, err, "")
	}
	return agent.NewScripted(s, filepath.Dir(path)), nil
}
