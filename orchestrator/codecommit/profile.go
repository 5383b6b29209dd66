// Package codecommit is one call of a model, a build, and a few repairs: the
// model answers in fences, the answer is checked as a whole and applied as a
// whole, and what the build says goes back to the model until the build passes
// or the attempts are used up. The reader of fences is pure and understands an
// answer whole or not at all: half an answer must never reach a disk. PathGuard
// knows every way to spell a path out of the project, the files that nobody may
// touch, and what git leaves out.
package codecommit

import (
	"fmt"
	"strconv"

	"abl/roles/model"
)

// Profile is a protocol: which files a run reads, what it calls those that it
// writes, and how often it tries. docs/code-commit.md describes both.
type Profile struct {
	Name       string
	Query      string // paths in the project
	Codebase   string
	Keys       map[string]string // by provider
	Models     string            // lists models besides those that are known; "" where none can be
	System     string            // the system prompt's file; "" for abl's own texts
	Structure  string            // replaces the part about the project's structure
	UserOutput string            // collects what a model says to the person
	Stage      string            // where edits are prepared
	Yard       string            // where a build in a container has what is handed to it
	Suffix     string            // of the log folder
	Repairs    int
	Ignored    bool // .gitignore has to hold the folder of the keys
}

// Names of the protocols.
const (
	V1 = "v1"
	V2 = "v2"
)

// ConfigDir is where a project of the protocol v2 keeps what belongs to this
// tool.
const ConfigDir = "agent-config"

// ProfileOf is the protocol of a name.
func ProfileOf(name string) (Profile, error) {
	switch name {
	case V1:
		return Profile{
			Name: V1, Query: "query.txt", Codebase: "codeRollup.txt", System: "gemini-system-prompt.txt", UserOutput: "llm-user-output.txt",
			Keys:  map[string]string{model.Google: "gemini-key.txt", model.OpenAI: "openai-key.txt"},
			Stage: ".code-commit", Yard: "logs/.build", Repairs: 7,
		}, nil
	case V2:
		return Profile{
			Name: V2, Query: ConfigDir + "/query.txt", Codebase: ConfigDir + "/codeRollup.txt", Structure: ConfigDir + "/project-structure.txt",
			Keys: map[string]string{model.Google: ConfigDir + "/gemini-key.txt", model.OpenAI: ConfigDir + "/openai-key.txt"}, Models: ConfigDir + "/models",
			Stage: ConfigDir + "/.apply", Yard: ConfigDir + "/.build", Suffix: "-committing-code", Repairs: 3, Ignored: true,
		}, nil
	}
	return Profile{}, fmt.Errorf("unknown protocol %q: there are %s and %s", name, V1, V2)
}

// Stages are where edits of any protocol are prepared, for Recover.
func Stages() []string { return []string{".code-commit", ConfigDir + "/.apply"} }

// files are the names of one call's files in the log folder; one file may have two.
type files struct {
	query, text, body, build []string
	request                  string // "" where it is not kept
}

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

// numbered begins the names of further files of the call n.
func (p Profile) numbered(n int) string {
	if p.Name == V1 {
		return p.step(n) + "-"
	}
	return strconv.Itoa(n+1) + "-"
}

// files names those of the call n.
func (p Profile) files(n int) files {
	step, no := p.step(n), p.numbered(n)
	f := files{query: []string{step + ".txt"}, text: []string{step + "-response.txt"}, body: []string{step + "-response.json"}, build: []string{step + "-build.txt"}}
	if p.Name == V1 {
		return f
	}
	if n == 0 {
		f.build[0] = "initial-build.txt"
	}
	f.query, f.text = append(f.query, no+"query.txt"), append(f.text, no+"response.txt")
	f.body, f.build = append(f.body, no+"response.json"), append(f.build, no+"build.txt")
	f.request = no + "query.json"
	return f
}
