package learn

import (
	"strings"

	"abl/roles"
	"abl/roles/agent"
)

// heard is what came of a CLI on this machine.
type heard struct {
	end   ended
	text  string // its answer
	usage []agent.Usage
}

// hear reads what a CLI printed. Its own records decide, where it printed any: it
// may be of a version that knows none. Then its exit code does, all that it printed
// is its answer, and what it used is not known.
func hear(reader agent.Reader, out []byte, end ended) heard {
	said := lastWords(reader, out)
	res := reader.Result(end.Exit)
	if said == "" && res.Session == "" && len(res.Usage) == 0 && !res.Finished {
		return heard{end: end, text: string(out)}
	}
	h := heard{end, said, res.Usage}
	if end.Class != roles.Done && end.Class != roles.Failed { // abl ended it
		return h
	}
	if h.end.Class, h.end.Reason = roles.Done, ""; res.Finished || answered(res.Trouble == agent.Nothing, end.Exit, said) {
		return h
	}
	h.end.Class, h.end.Reason = roles.Failed, res.Reason
	if c, known := roles.Means(res.Trouble); known {
		h.end.Class = c
	}
	return h
}

// answered is whether an agent that used no tool gave an answer: it was asked by
// standard input, and not every question needs a tool.
func answered(toolless bool, code int, said string) bool {
	return toolless && code == 0 && strings.TrimSpace(said) != ""
}
