// Package codecommit changes a project by one call of a model, a build, and a few repairs. The model
// answers in fences. The answer is checked and applied as a whole. If the build fails, the model
// gets its output, until the build passes or the attempts are used up. ParseAnswer accepts only a
// complete answer, because half an answer must not be applied. PathGuard refuses paths outside of
// the project, protected files, and files that git ignores.
package codecommit

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"abl/prompts"
)

// Profile is a protocol: which files a run reads, how it names the files that it writes, and how
// often it tries. docs/code-commit.md describes the protocol v2.
type Profile struct {
	Name     string
	Query    string // paths in the project
	Codebase string
	Keys     string // with a provider for NAME; "" if there are no key files
	// File with additional models; "" if there cannot be any.
	Models     string
	System     string // the system prompt's file; "" for abl's own texts
	Structure  string // replaces the part about the project's structure
	UserOutput string // file for the model's messages to the user
	// The folder of the lock, of prepared edits, and of the input of builds in containers.
	Own     string
	Repairs int
	// Fixed lists files that are always protected: names in any folder or, with a leading slash, in
	// the project's folder. Names of folders end with a slash.
	Fixed string
}

// Names of the protocols.
const (
	V1 = "v1"
	V2 = "v2"
)

// ConfigDir is the folder for this tool's files in a project of the protocol v2.
const ConfigDir = "agent-config"

// ProfileOf returns the protocol with a name, V1 or V2.
func ProfileOf(name string) Profile {
	if name == V1 {
		return Profile{
			Name:       V1,
			Query:      "query.txt",
			Codebase:   "codeRollup.txt",
			Keys:       "NAME-key.txt",
			System:     "gemini-system-prompt.txt",
			UserOutput: "llm-user-output.txt",
			Own:        "logs",
			Repairs:    7,
			Fixed: "/build.sh /query.txt /codeRollup.txt /gemini-key.txt /openai-key.txt /anthropic-key.txt " +
				"/gemini-system-prompt.txt /llm-user-output.txt .git/ .abl/ .env* /abl.config.yaml /logs/",
		}
	}
	return Profile{
		Name:      V2,
		Query:     ConfigDir + "/query.txt",
		Codebase:  ConfigDir + "/codeRollup.txt",
		Keys:      ConfigDir + "/NAME-key.txt",
		Models:    ConfigDir + "/models",
		Structure: ConfigDir + "/project-structure.txt",
		Own:       ConfigDir,
		Repairs:   3,
		Fixed: "/.gitignore /Cargo.lock /build.sh /codeRollup.sh /LLMInstructions.md UserSpecification.md " +
			// Settings are protected because they decide what a build may reach.
			".git/ .abl/ .env* /abl.config.yaml /" + ConfigDir + "/ /logs/ /target/",
	}
}

// KeyFile returns the path of a provider's key, or "".
func (p Profile) KeyFile(provider string) string { return strings.ReplaceAll(p.Keys, "NAME", provider) }

// Stage returns the folder in which edits are prepared.
func (p Profile) Stage() string { return p.Own + "/.apply" }

// step returns the name of the call n, counted from 0.
func (p Profile) step(n int) string {
	switch {
	case p.Name == V1:
		return "query-" + strconv.Itoa(n+1)
	case n == 0:
		return "initial-query"
	}
	return "repair-query-" + strconv.Itoa(n)
}

// logs returns the names in the log folder of a file of the call n, such as query.txt, response.txt
// or build.txt. The protocol v2 has two names for some files, and v1 has no query.json.
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

// join writes the parts of a prompt, each a title and its text: the title in brackets, the text
// unchanged, and an empty line.
func join(parts ...string) string {
	var all []string
	for part := range slices.Chunk(parts, 2) {
		all = append(all, "["+part[0]+"]\n"+cmp.Or(line(part[1]), "\n"))
	}
	return strings.Join(all, "\n")
}

// line adds a missing line end to a text that is not empty.
func line(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "\n"
}

// Inputs are the inputs of prompts.
type Inputs struct {
	Query, Codebase string
	System          string   // of the protocol v1
	Structure       string   // of the protocol v2
	Protected       []string // see PathGuard.List
}

// prompt returns the prompt of the next call. After a failed build it asks for a repair, and also
// after an unusable answer, with the reason instead of the build's output.
func (p Profile) prompt(in Inputs, history []*Attempt) string {
	code := []string{"query", in.Query, "codebase", in.Codebase}
	title, text := "initial query system prompt", prompts.CommitInitial
	if len(history) > 0 {
		title, text = "repair query system prompt", prompts.CommitRepair
		code = slices.Concat([]string{"build.sh output", history[len(history)-1].printed}, code,
			[]string{"file replacements", replacements(latest(history))})
	}
	if p.Name == V1 {
		return join("gemini system prompt", in.System, "basic query", in.Query, "codebase", in.Codebase) +
			historyText(history)
	}
	return join(append([]string{
		"project structure system prompt", in.Structure,
		"code modification instructions system prompt", prompts.CommitInstructions(in.Protected), title, text,
	}, code...)...)
}

// latest returns the last edit of each file, by path.
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

// historyText returns the whole history in the form of the protocol v1.
func historyText(history []*Attempt) string {
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
