// Package codecommit is one call of a model, a build, and a few repairs: the
// model answers in fences, the answer is checked as a whole and applied as a
// whole, and what the build says goes back to the model until the build passes
// or the attempts are used up. The reader of fences is pure and understands an
// answer whole or not at all: half an answer must never reach a disk. PathGuard
// knows every way to spell a path out of the project, the files that nobody may
// touch, and what git leaves out.
package codecommit

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"abl/prompts"
)

// Profile is a protocol: which files a run reads, what it calls those that it
// writes, and how often it tries. docs/code-commit.md describes both.
type Profile struct {
	Name     string
	Query    string // paths in the project
	Codebase string
	Keys     string // with a provider for NAME; "" where none is looked for
	// Lists models besides those that are known; "" where none can be.
	Models     string
	System     string // the system prompt's file; "" for abl's own texts
	Structure  string // replaces the part about the project's structure
	UserOutput string // collects what a model says to the person
	// The folder of the lock, of edits that are prepared, and of what a build in a container is handed.
	Own     string
	Repairs int
	// Fixed is what is protected whatever a project says: names in any folder or, with a
	// slash before them, in the project's own; those of folders end with one.
	Fixed string
}

// Names of the protocols.
const (
	V1 = "v1"
	V2 = "v2"
)

// ConfigDir is where a project of the protocol v2 keeps what belongs to this tool.
const ConfigDir = "agent-config"

// ProfileOf is the protocol of a name, V1 or V2.
func ProfileOf(name string) Profile {
	if name == V1 {
		return Profile{
			Name: V1, Query: "query.txt", Codebase: "codeRollup.txt", Keys: "NAME-key.txt", System: "gemini-system-prompt.txt",
			UserOutput: "llm-user-output.txt", Own: "logs", Repairs: 7,
			Fixed: "/build.sh /query.txt /codeRollup.txt /gemini-key.txt /openai-key.txt /gemini-system-prompt.txt " +
				"/llm-user-output.txt .git/ .abl/ .env* /abl.config.yaml /logs/",
		}
	}
	return Profile{
		Name: V2, Query: ConfigDir + "/query.txt", Codebase: ConfigDir + "/codeRollup.txt", Keys: ConfigDir + "/NAME-key.txt",
		Models: ConfigDir + "/models", Structure: ConfigDir + "/project-structure.txt", Own: ConfigDir, Repairs: 3,
		Fixed: "/.gitignore /Cargo.lock /build.sh /codeRollup.sh /LLMInstructions.md UserSpecification.md " +
			// Settings too: what a build may reach.
			".git/ .abl/ .env* /abl.config.yaml /" + ConfigDir + "/ /logs/ /target/",
	}
}

// KeyFile is where a provider's key is looked for, "" for nowhere.
func (p Profile) KeyFile(provider string) string { return strings.ReplaceAll(p.Keys, "NAME", provider) }

// Stage is where edits are prepared.
func (p Profile) Stage() string { return p.Own + "/.apply" }

// step is the name of the call n, the first being 0.
func (p Profile) step(n int) string {
	switch {
	case p.Name == V1:
		return "query-" + strconv.Itoa(n+1)
	case n == 0:
		return "initial-query"
	}
	return "repair-query-" + strconv.Itoa(n)
}

// logs are the names in the log folder of what there is of the call n: query.txt,
// response.txt, build.txt and more. The protocol v2 has two for some, and v1 keeps no
// query.json.
func (p Profile) logs(n int, what string) []string {
	long, short := p.step(n)+"-"+what, strconv.Itoa(n+1)+"-"+what
	switch {
	case what == "query.txt":
		long = p.step(n) + ".txt"
	case p.Name == V1 && what == "query.json":
		return nil
	case p.Name == V1:
	case what == "build.txt" && n == 0:
		long = "initial-build.txt"
	case !slices.Contains([]string{"response.txt", "response.json", "build.txt"}, what):
		return []string{short}
	}
	if p.Name == V1 {
		return []string{long}
	}
	return []string{long, short}
}

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

// prompt is that of the next call. After a build that failed, or an answer that could not be
// used, whose reason then stands in the place of the build's output, it asks for a repair.
func (p Profile) prompt(in Inputs, history []*Attempt) string {
	code := []string{"query", in.Query, "codebase", in.Codebase}
	title, text := "initial query system prompt", prompts.CommitInitial
	if len(history) > 0 {
		title, text = "repair query system prompt", prompts.CommitRepair
		code = slices.Concat([]string{"build.sh output", history[len(history)-1].printed}, code,
			[]string{"file replacements", replacements(latest(history))})
	}
	if p.Name == V1 {
		return join("gemini system prompt", in.System, "basic query", in.Query, "codebase", in.Codebase) + tell(history)
	}
	return join(append([]string{
		"project structure system prompt", in.Structure,
		"code modification instructions system prompt", prompts.CommitInstructions(in.Protected), title, text,
	}, code...)...)
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
	began := "\nThe query above was asked before. This is the data that your answer to it held:\n\n"
	for _, at := range history {
		b.WriteString(began)
		began = "\nThis is the data that your next answer held:\n\n"
		for _, t := range at.thoughts {
			b.WriteString(line(t))
		}
		b.WriteString(replacements(at.Files))
		b.WriteString("\nAfter the file replacements were made, the build printed the following:\n\n" + line(at.printed))
	}
	return b.String()
}
