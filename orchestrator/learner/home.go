package learner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/prompts"
	"abl/roles"
)

// Folder is where all projects are, below the current directory.
const Folder = "solutions"

// Home is the directory of one project, solutions/NAME.
type Home struct{ Root string }

var nameless = regexp.MustCompile(`[^\p{L}\p{Nd}]`)

// Name is the name of a task's project: its first 30 characters in lower case, everything
// but letters and digits a dash.
func Name(task string) string {
	const most = 30
	runes := []rune(strings.ToLower(strings.TrimSpace(task)))
	name := nameless.ReplaceAllString(string(runes[:min(len(runes), most)]), "-")
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

// phases are what a person is told of a step, the file that keeps an agent's answer, and the
// template of what it is asked: none where a program is written.
var phases = map[Step]struct{ told, file, template string }{
	Generate:  {"Phase 1: write the program", "output.txt", ""},
	Run:       {told: fmt.Sprintf("Phase 2: run it, for at most %s", RunTime)},
	Review:    {"Phase 3: review it", "review.txt", prompts.LearnReview},
	Learnings: {"Phase 4: what was done well", "learnings.txt", prompts.LearnLearnings},
	Mistakes:  {"Phase 5: what was done wrong", "mistakes.txt", prompts.LearnMistakes},
	Improve:   {"Phase 6: a better prompt", "improved_prompt.txt", prompts.LearnImprove},
}

// notes are the files about a cycle, which are no part of the program.
func notes() []string {
	return strings.Fields("improved_prompt.txt learnings.txt mistakes.txt output.txt review.txt prompt.txt")
}

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

// perm is that of the files that a person reads.
const perm = 0o644

// Open is where a task's session goes on, or begins: then what earlier sessions
// left of their cycles is put away, and the files that are missing are made.
func Open(h Home, task, agent, model string, cycles int, now time.Time) (s State, resumed bool, err error) {
	if err := os.MkdirAll(filepath.Join(h.Private(), "logs", "calls"), 0o755); err != nil {
		return s, false, fmt.Errorf("cannot make the project: %w", err)
	}
	if s, err = Load(h); err != nil {
		return s, false, err
	}
	if resumed = s.Session > 0 && s.Step != Done && s.Task == task; resumed {
		s.Agent, s.Model, s.Cycles = agent, model, max(cycles, s.Cycle)
		s.at().Agent, s.at().Model = agent, model
		return s, true, s.Save(h)
	}
	if err := h.putAway(s.Session); err != nil {
		return s, false, err
	}
	book, err := h.begin()
	if err != nil {
		return s, false, err
	}
	s = s.Begin(task, agent, model, cycles, now)
	s.Book = book
	return s, false, s.Save(h)
}

// begin makes the files of a project that are not there, and says which version
// prompts.md is at.
func (h Home) begin() (version int, err error) {
	for name, text := range map[string]string{MemoryFile: "", MistakesFile: "", PromptsFile: Prompts{Current: prompts.LearnGenerate}.Render()} {
		if _, err := os.Lstat(h.path(name)); errors.Is(err, fs.ErrNotExist) {
			if err := hostfs.Write(h.path(name), []byte(text), perm); err != nil {
				return 0, err
			}
		}
	}
	all, err := h.Prompts()
	return all.Number(), err
}

// putAway moves the cycles of an earlier session to where they are in nobody's way.
func (h Home) putAway(session int) error {
	for n := 1; n <= MaxCycles; n++ {
		from := h.Cycle(n)
		if _, err := os.Lstat(from); err != nil {
			continue
		}
		to := h.path(".abl", "sessions", fmt.Sprint(session), filepath.Base(from))
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.RemoveAll(to), os.Rename(from, to)); err != nil {
			return fmt.Errorf("cannot put the cycles of an earlier session away: %w", err)
		}
	}
	return nil
}

// Projects are those below a folder that were ever begun.
func Projects(dir string) (homes []Home, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		h := Home{filepath.Join(dir, e.Name())}
		if _, err := os.Lstat(h.state()); err == nil && e.IsDir() {
			homes = append(homes, h)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return homes, err
}

// Text is a file of the project's, which no container sees; "" when it is not there:
// a person may have taken it away. They may have written more than abl would, too.
func (h Home) Text(name string) (string, error) {
	const most = 4 << 20
	data, err := hostfs.Read(h.Root, name, most)
	if errors.Is(err, hostfs.ErrAbsent) {
		return "", nil
	}
	return string(data), err
}

// Prompts is a project's prompts.md; without any text it has abl's own prompt.
func (h Home) Prompts() (Prompts, error) {
	text, err := h.Text(PromptsFile)
	if strings.TrimSpace(text) == "" {
		text = prompts.LearnGenerate
	}
	return ParsePrompts(text), err
}

// clear makes the folder of a cycle, empty.
func (h Home) clear(n int) error {
	if err := remove(h.Cycle(n)); err != nil {
		return fmt.Errorf("cannot empty %s: %w", h.Rel(h.Cycle(n)), err)
	}
	return os.MkdirAll(h.Cycle(n), 0o755)
}

// note writes a file beside a cycle's program, whatever the agent put there.
func (h Home) note(n int, name, text string) error {
	dir := h.Cycle(n)
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755), remove(filepath.Join(dir, name))); err != nil { // an agent may have made it read-only
		return err
	}
	return hostfs.Write(filepath.Join(dir, name), []byte(text), perm)
}

// weigh counts which lessons of a cycle are new.
func (h Home) weigh(c Cycle) (Kept, error) {
	_, learned, err := h.merged(MemoryFile, c.Learned)
	_, mistaken, merr := h.merged(MistakesFile, c.Mistaken)
	return Kept{Remembers: len(learned), Avoids: len(mistaken)}, errors.Join(err, merr)
}

// keep writes what a cycle taught. Done twice it is done once.
func (h Home) keep(s State, now time.Time) (k Kept, err error) {
	c := s.Last()
	for name, lessons := range map[string][]string{MemoryFile: c.Learned, MistakesFile: c.Mistaken} {
		text, added, err := h.merged(name, lessons)
		if err == nil && len(added) > 0 {
			err = hostfs.Write(h.path(name), []byte(text), perm)
		}
		if err != nil {
			return k, err
		}
		failpoint.Here("learn.merged")
	}
	all, err := h.Prompts()
	if k.Version = all.Number(); err != nil || k.Version > s.Book {
		return k, err // written by one that was killed right afterwards
	}
	all = all.Next(c.Improved, now)
	k.Version = all.Number()
	err = hostfs.Write(h.path(PromptsFile), []byte(all.Render()), perm)
	failpoint.Here("learn.archived")
	return k, err
}

// merged is a file of lessons with more of them, and those that it did not have.
func (h Home) merged(name string, items []string) (text string, added []string, err error) {
	was, err := h.Text(name)
	text, added = mergeLessons(was, items)
	return text, added, err
}

// hasRun says why a cycle's program cannot be started, "" when it can.
func (h Home) hasRun(n int) string {
	f, err := hostfs.Open(h.Cycle(n), runFile)
	switch {
	case err == nil:
		f.Close()
		return ""
	case errors.Is(err, hostfs.ErrAbsent):
		return "there is no " + runFile
	}
	return err.Error()
}
