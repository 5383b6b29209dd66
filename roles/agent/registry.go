package agent

import (
	"abl/internal/nearest"
	"bytes"
	"fmt"
	"strings"
)

// Names lists the agents that abl knows, in the order in which help shows them.
func Names() []string { return []string{Gemini{}.Name(), ScriptedName} }

// Find returns the agent of that name. scripted makes the offline agent from
// the project's scenario file and is asked for that agent only.
func Find(name string, scripted func() (Agent, error)) (Agent, error) {
	switch name {
	case Gemini{}.Name():
		return Gemini{}, nil
	case ScriptedName:
		return scripted()
	}
	return nil, unknown(name)
}

// Usages reads what an agent printed, whole, as `abl debug usage` does. Besides
// the form that abl asks for it takes the CLI's other machine-readable form.
func Usages(name string, stdout []byte, exit int) (Result, error) {
	var reader Reader
	switch name {
	case Gemini{}.Name():
		if res, ok := geminiWhole(stdout, exit); ok {
			return res, nil
		}
		reader = Gemini{}.NewReader(Call{})
	case ScriptedName:
		reader = Scripted{}.NewReader(Call{})
	default:
		return Result{}, unknown(name)
	}
	Feed(reader, stdout)
	return reader.Result(exit), nil
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
	if near := nearest.Word(name, Names()); near != "" {
		return fmt.Errorf("cannot find the agent %q; did you mean %q?", name, near)
	}
	return fmt.Errorf("cannot find the agent %q; known are %s", name, strings.Join(Names(), ", "))
}
