package agent

import (
	"bytes"
	"fmt"
	"strings"

	"abl/internal/wording"
)

// Names lists the agents that abl knows, in the order in which help shows them.
func Names() (names []string) {
	for _, a := range clis() {
		names = append(names, a.Name())
	}
	return append(names, ScriptedName)
}

// clis are the coding CLIs, each with an image of its own.
func clis() []Agent { return []Agent{Gemini{}, Claude{}, Codex{}, Copilot{}} }

// named is the CLI of that name, nil when there is none.
func named(name string) Agent {
	for _, a := range clis() {
		if a.Name() == name {
			return a
		}
	}
	return nil
}

// Find returns the agent of that name. scripted makes the offline agent from
// the project's scenario file and is asked for that agent only.
func Find(name string, scripted func() (Agent, error)) (Agent, error) {
	if name == ScriptedName {
		return scripted()
	}
	if a := named(name); a != nil {
		return a, nil
	}
	return nil, unknown(name)
}

// Usages reads what an agent printed, whole, as `abl debug usage` does. Besides
// the form that abl asks for it takes the CLI's other machine-readable form.
func Usages(a Agent, stdout []byte, exit int) Result {
	if a == (Gemini{}) {
		if res, ok := geminiWhole(stdout, exit); ok {
			return res
		}
	}
	reader := a.NewReader(Call{})
	Feed(reader, stdout)
	return reader.Result(exit)
}

// Feed gives a reader an output that is there already, as the live reader would
// get it: without line ends, and cut at MaxLine.
func Feed(r Reader, stdout []byte) {
	for line := range bytes.Lines(stdout) {
		line = bytes.TrimRight(line, "\r\n")
		cut := len(line) > MaxLine
		if cut {
			line = line[:MaxLine]
		}
		r.Line(line, cut)
	}
}

// unknown names the agents that there are, and the one that was probably meant.
func unknown(name string) error {
	if near := wording.Near(name, Names()); near != "" {
		return fmt.Errorf("cannot find the agent %q; did you mean %q?", name, near)
	}
	return fmt.Errorf("cannot find the agent %q; known are %s", name, strings.Join(Names(), ", "))
}
