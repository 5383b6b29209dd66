package agent

import (
	"bytes"
	"fmt"
	"strings"

	"abl/internal/wording"
)

// known are the agents that abl knows, in the order in which help shows them. The
// scripted one has a script only where there is a project.
var known = []Agent{gemini, claude, codex, Copilot("openai-responses"), Scripted(Scenario{}, "", Provider{})}

// Names lists the agents that abl knows.
func Names() (names []string) {
	for _, a := range known {
		names = append(names, a.Name)
	}
	return names
}

// KeyVars are the variables of every provider's key.
func KeyVars() (all []string) {
	for _, a := range known {
		if a.Provider.KeyVar != "" {
			all = append(all, a.Provider.KeyVar)
		}
	}
	return all
}

// Find returns the agent of that name.
func Find(name string) (Agent, error) {
	for _, a := range known {
		if a.Name == name {
			return a, nil
		}
	}
	if near := wording.Near(name, Names()); near != "" {
		return Agent{}, fmt.Errorf("cannot find the agent %q; did you mean %q?", name, near)
	}
	return Agent{}, fmt.Errorf("cannot find the agent %q; known are %s", name, strings.Join(Names(), ", "))
}

// FullName is the model that the CLI asks for by this name, which is mostly the same:
// the gateway lets one model through, by its full name. One that only the CLI can
// resolve is an error, and so is what a command line would take for something else.
func (a Agent) FullName(model string) (string, error) {
	full, short := a.Aliases[model]
	switch {
	case strings.HasPrefix(model, "-") || strings.ContainsAny(model, " \t\r\n"):
		return "", fmt.Errorf("cannot start %s: %q is not the name of a model", a.Name, model)
	case !short:
		return model, nil
	case full == "":
		return "", fmt.Errorf("cannot use the model %q of %s: which model it stands for, only the CLI knows", model, a.Name)
	}
	return full, nil
}

// Usages reads what an agent printed, whole, as `abl debug usage` does.
func Usages(a Agent, stdout []byte, exit int) Result {
	reader := a.NewReader(Call{})
	Feed(reader, stdout)
	return reader.Result(exit)
}

// Feed gives a reader an output that is there already, as the live reader would
// get it: without line ends, and cut at MaxLine.
func Feed(r Reader, stdout []byte) {
	for line := range bytes.Lines(stdout) {
		line = bytes.TrimRight(line, "\r\n")
		r.Line(line[:min(len(line), MaxLine)], len(line) > MaxLine)
	}
}
