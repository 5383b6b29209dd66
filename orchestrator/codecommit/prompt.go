package codecommit

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"abl/prompts"
)

// join writes the parts of a prompt, each a title and its text: the title in brackets,
// the text as it is, and an empty line.
func join(parts ...string) string {
	var all []string
	for part := range slices.Chunk(parts, 2) {
		all = append(all, "["+part[0]+"]\n"+cmp.Or(line(part[1]), "\n"))
	}
	return strings.Join(all, "\n")
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
		return join(in.v1()...)
	}
	return join(append(in.system("initial query system prompt", prompts.CommitInitial), "query", in.Query, "codebase", in.Codebase)...)
}

func (in Inputs) v1() []string {
	return []string{"gemini system prompt", in.System, "basic query", in.Query, "codebase", in.Codebase}
}

func (in Inputs) system(title, text string) []string {
	return []string{
		"project structure system prompt", in.Structure,
		"code modification instructions system prompt", prompts.CommitInstructions(in.Protected),
		title, text,
	}
}

// Repair is the prompt after a build that failed, or an answer that could not
// be used, whose reason then stands in the place of the build's output.
func (p Profile) Repair(in Inputs, history []*Attempt) string {
	if p.Name == V1 {
		return join(in.v1()...) + "\n" + tell(history)
	}
	return join(append(in.system("repair query system prompt", prompts.CommitRepair), "build.sh output", history[len(history)-1].printed,
		"query", in.Query, "codebase", in.Codebase, "file replacements", replacements(latest(history)))...)
}

// latest are the last edits of each file, by path.
func latest(history []*Attempt) []Edit {
	last := map[string]Edit{}
	for _, at := range history {
		for _, e := range at.Files {
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
func tell(history []*Attempt) string {
	var b strings.Builder
	for i, at := range history {
		began := "\nThis is the data that your next answer held:\n\n"
		if i == 0 {
			began = "The query above was asked before. This is the data that your answer to it held:\n\n"
		}
		b.WriteString(began)
		for _, t := range at.thoughts {
			b.WriteString(line(t))
		}
		b.WriteString(replacements(at.Files))
		b.WriteString("\nAfter the file replacements were made, the build printed the following:\n\n" + line(at.printed))
	}
	return b.String()
}
