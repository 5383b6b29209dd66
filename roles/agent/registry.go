package agent

import (
	"bytes"
	"fmt"
	"strings"
)

// Names lists the agents that abl knows, in the order in which help shows them.
func Names() []string { return []string{Gemini{}.Name(), ScriptedName} }

// ScriptedName is the name of the offline agent.
const ScriptedName = "scripted"

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

// unknown names the agents that there are, the likeliest one first in the hint.
func unknown(name string) error {
	msg := fmt.Sprintf("cannot find an agent named %q: abl knows %s", name, strings.Join(Names(), ", "))
	if near := nearest(name, Names()); near != "" {
		msg += fmt.Sprintf("; did you mean %q?", near)
	}
	return fmt.Errorf("%s", msg)
}

// nearest is the name that differs in the fewest letters, or "" when none is
// closer than half of its own length.
func nearest(name string, names []string) string {
	best, at := "", 0
	for _, n := range names {
		d := distance(strings.ToLower(name), n)
		if 2*d <= len(n) && (best == "" || d < at) {
			best, at = n, d
		}
	}
	return best
}

// distance counts the letters to insert, delete or change to make a into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
