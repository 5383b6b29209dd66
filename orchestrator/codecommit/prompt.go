package codecommit

import (
	"maps"
	"slices"
	"strings"

	"abl/prompts"
)

// section is a part of a prompt under its title.
type section struct{ title, text string }

// join writes sections as a prompt: a title in brackets, the text as it is, and
// an empty line.
func join(list []section) string {
	var b strings.Builder
	for i, s := range list {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("[" + s.title + "]\n" + s.text)
		if !strings.HasSuffix(s.text, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// line ends the last line of a text that has any.
func line(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// Inputs are what prompts are made of.
type Inputs struct {
	Query, Codebase string
	System          string   // of the protocol v1
	Structure       string   // of the protocol v2
	Protected       []string // in words
}

// First is the prompt of the first call.
func (p Profile) First(in Inputs) string {
	if p.Name == V1 {
		return join(in.v1())
	}
	return join(append(in.system("initial query system prompt", prompts.CommitInitial), section{"query", in.Query}, section{"codebase", in.Codebase}))
}

func (in Inputs) v1() []section {
	return []section{{"gemini system prompt", in.System}, {"basic query", in.Query}, {"codebase", in.Codebase}}
}

func (in Inputs) system(title, text string) []section {
	return []section{
		{"project structure system prompt", in.Structure},
		{"code modification instructions system prompt", prompts.CommitInstructions(in.Protected)},
		{title, text},
	}
}

// Repair is the prompt after a build that failed, or an answer that could not
// be used, whose reason then stands in the place of the build's output.
func (p Profile) Repair(in Inputs, history []Round) string {
	if p.Name == V1 {
		return join(in.v1()) + "\n" + tell(history)
	}
	list := append(in.system("repair query system prompt", prompts.CommitRepair),
		section{"build.sh output", history[len(history)-1].Output}, section{"query", in.Query},
		section{"codebase", in.Codebase}, section{"file replacements", replacements(latest(history))})
	return join(list)
}

// Round is what came of one call: what was applied, and what the build said.
type Round struct {
	Thoughts []string
	Edits    []Edit
	Output   string
	Outcome  string // as of an attempt
	says     string // why the model changes nothing
}

// latest are the last edits of each file, by path.
func latest(history []Round) []Edit {
	last := map[string]Edit{}
	for _, r := range history {
		for _, e := range r.Edits {
			last[e.Path] = e
		}
	}
	return slices.SortedFunc(maps.Values(last), func(a, b Edit) int { return strings.Compare(a.Path, b.Path) })
}

// replacements lists edits for a model.
func replacements(edits []Edit) string {
	var b strings.Builder
	for _, e := range edits {
		if e.Delete {
			b.WriteString("--- FILE REMOVED " + e.Path + " ---\n")
			continue
		}
		b.WriteString("--- FILE REPLACEMENT " + e.Path + " ---\n" + line(e.Content))
	}
	return b.String()
}

// tell is the whole history, as the protocol v1 has it.
func tell(history []Round) string {
	var b strings.Builder
	for i, r := range history {
		if i == 0 {
			b.WriteString("The query above was asked before. This is the data that your answer to it held:\n\n")
		} else {
			b.WriteString("\nThis is the data that your next answer held:\n\n")
		}
		for _, t := range r.Thoughts {
			b.WriteString(line(t))
		}
		b.WriteString(replacements(r.Edits))
		b.WriteString("\nAfter the file replacements were made, the build printed the following:\n\n" + line(r.Output))
	}
	return b.String()
}
