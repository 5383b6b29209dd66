// Package learn holds the commands of the learner, which abl and agent-learner
// share: sessions, the interactive mode, what is made of an answer, and whether
// any of it pays.
package learn

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/internal/nearest"
	"abl/orchestrator/dirs"
	"abl/roles/agent"
)

// cliAgent is an agent as the learner offers it.
type cliAgent struct {
	name, model string
	host        func(agent.Call) (agent.Command, error) // on this machine, the prompt on standard input; nil where it has no program
	reader      func(agent.Call) agent.Reader           // of what it prints there
}

// offered are abl's own, the default first.
func offered() []cliAgent {
	return []cliAgent{
		{"claude", "sonnet", installed("claude", "-p", "--model", "", "--dangerously-skip-permissions", "--output-format", "stream-json", "--verbose"), agent.Claude{}.NewReader},
		{"codex", "gpt-5.2", installed("codex", "exec", "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--model", "", "-"), agent.Codex{}.NewReader},
		{"copilot", "claude-sonnet-4", installed("copilot", "--allow-all-tools", "--allow-all-paths", "--model", "", "--no-color", "--output-format", "json", "--usage-output-file", usageFile), agent.Copilot{}.NewReader},
		{"gemini", "gemini-2.5-pro", installed("gemini", "--approval-mode", "yolo", "-m", "", "-o", "stream-json"), agent.Gemini{}.NewReader},
		{name: agent.ScriptedName, model: agent.ScriptedName},
	}
}

// usageFile is where a CLI leaves what it used that does not print it.
const usageFile = "usage.json"

// installed starts a CLI as it is installed on this machine, and asks it for records
// that can be read. The empty word stands for the model, usageFile for its path.
func installed(argv ...string) func(agent.Call) (agent.Command, error) {
	return func(c agent.Call) (agent.Command, error) {
		argv := slices.Clone(argv)
		argv[slices.Index(argv, "")] = c.Model
		if i := slices.Index(argv, usageFile); i >= 0 {
			argv[i] = filepath.Join(filepath.Dir(c.Prompt), usageFile)
		}
		return agent.Command{Argv: argv}, nil
	}
}

// own is an agent of the project's own. On this machine it has the person's home.
func own(a agent.Agent) cliAgent {
	return cliAgent{name: a.Name(), model: a.DefaultModel(), reader: a.NewReader, host: func(c agent.Call) (agent.Command, error) {
		cmd, err := a.Command(c)
		if cmd.Env["HOME"] == dirs.Home {
			delete(cmd.Env, "HOME")
		}
		return cmd, err
	}}
}

func agentNames() (names []string) {
	for _, a := range offered() {
		names = append(names, a.name)
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
func (w *work) choose(name string) (cliAgent, error) {
	if slices.Contains(w.agents().Own(), name) {
		a, err := w.agents().Find(name)
		if err != nil {
			return cliAgent{}, err
		}
		return own(a), nil
	}
	for _, a := range offered() {
		if a.name == name {
			return a, nil
		}
	}
	hint := "it is one of " + strings.Join(w.names(), ", ")
	if near := nearest.Word(name, w.names()); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return cliAgent{}, exit.With(exit.Usage, fmt.Errorf("cannot find the agent %q", name), hint)
}

// errNoHost says that an agent is abl's own and has no program on this machine.
var errNoHost = errors.New("it is abl's own, and runs in containers alone")
