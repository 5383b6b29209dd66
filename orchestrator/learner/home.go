package learner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
)

// Folder is where all projects are, below the current directory.
const Folder = "solutions"

// Home is the directory of one project, solutions/NAME.
type Home struct{ Root string }

// maxName is how much of a task is in the name of its project, in characters.
const maxName = 30

// Name is the name of a task's project: its beginning in lower case, everything
// but letters and digits a dash.
func Name(task string) string {
	runes := []rune(strings.TrimSpace(task))
	runes = runes[:min(len(runes), maxName)]
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return '-'
	}, string(runes))
	if name = strings.Trim(name, "-"); name == "" {
		return "project-" + strings.ToLower(rand.Text()[:8])
	}
	return name
}

// The files of a project, and those that are beside the program in a cycle's folder.
const (
	MemoryFile   = "memory.txt"
	MistakesFile = "mistakes.txt"
	PromptsFile  = "prompts.md"

	promptFile = "prompt.txt"
	runFile    = "run.sh"
)

// answerFiles are where the answers of an agent are kept.
var answerFiles = map[Step]string{
	Generate: "output.txt", Review: "review.txt", Learnings: "learnings.txt", Mistakes: "mistakes.txt", Improve: "improved_prompt.txt",
}

// notes are the files about a cycle, which are no part of the program.
func notes() []string { return append(slices.Sorted(maps.Values(answerFiles)), promptFile) }

func (h Home) path(elem ...string) string {
	return filepath.Join(append([]string{h.Root}, elem...)...)
}

// Private is what abl keeps of a project for itself: state, records, ledger.
func (h Home) Private() string { return h.path(".abl") }

// Project is where its records and its ledger are.
func (h Home) Project() state.Project { return state.NewProject(h.Root, "code", ".abl/none") }

// Abandon notes of the call that a session rests in that it is about to be ended on
// request: the next run begins it anew.
func (h Home) Abandon(s State) error {
	rec := roles.Record{Dir: h.Project().Call(s.Key())}
	_, ended, err := rec.Outcome()
	_, begun, ierr := rec.Intent()
	if err := errors.Join(err, ierr); err != nil || ended || !begun {
		return err
	}
	return rec.Stop(outcome.Interrupted)
}

func (h Home) state() string { return h.path(".abl", stateFile) }

// Cycle is the folder of a cycle of the running session.
func (h Home) Cycle(n int) string { return h.path(fmt.Sprintf("cycle-%d", n)) }

// Code is the folder of the final program.
func (h Home) Code() string { return h.path("code") }

// Rel is a path as a person reads it, from the directory that solutions is in.
func (h Home) Rel(path string) string {
	rel, err := filepath.Rel(filepath.Dir(filepath.Dir(h.Root)), path)
	if err != nil || strings.HasPrefix(rel, "..") {
		return path
	}
	return rel
}
