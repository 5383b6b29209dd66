package learner

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/prompts"
	"abl/roles"
	"abl/roles/environment"
)

// Folder is where all projects are, below the current directory.
const Folder = "solutions"

// Home is the directory of one project, solutions/NAME.
type Home struct{ Root string }

var nameless = regexp.MustCompile(`[^\p{L}\p{Nd}]`)

// Name is the name of a task's project: its first 30 characters in lower case, everything
// but letters and digits a dash.
func Name(task string) string {
	runes := []rune(strings.ToLower(strings.TrimSpace(task)))
	name := nameless.ReplaceAllString(string(runes[:min(len(runes), 30)]), "-")
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

// phases are what a person is told of a step, the file that keeps an agent's answer, the template
// of what it is asked, none where a program is written, and the step after it when all goes well.
var phases = map[Step]struct {
	told, file, template string
	next                 Step
}{
	Generate:  {"Phase 1: write the program", "output.txt", "", Run},
	Run:       {fmt.Sprintf("Phase 2: run it, for at most %s", RunTime), "", "", Review},
	Review:    {"Phase 3: review it", "review.txt", prompts.LearnReview, Learnings},
	Learnings: {"Phase 4: what was done well", "learnings.txt", prompts.LearnLearnings, Mistakes},
	Mistakes:  {"Phase 5: what was done wrong", "mistakes.txt", prompts.LearnMistakes, Improve},
	Improve:   {"Phase 6: a better prompt", "improved_prompt.txt", prompts.LearnImprove, Keep},
	Keep:      {next: Generate},
	Finish:    {next: Done},
	Done:      {},
}

// notes are the files about a cycle, which are no part of the program.
var notes = strings.Fields("improved_prompt.txt learnings.txt mistakes.txt output.txt review.txt prompt.txt")

func (h Home) path(elem ...string) string {
	return filepath.Join(append([]string{h.Root}, elem...)...)
}

// Private is what abl keeps of a project for itself: state, records, ledger.
func (h Home) Private() string { return h.path(".abl") }

// State is the path of the file that has the project's id.
func (h Home) State() string { return h.path(stateFile) }

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

// Cycle is the folder of a cycle of the running session.
func (h Home) Cycle(n int) string { return h.path(fmt.Sprintf("cycle-%d", n)) }

// Code is the folder of the final program.
func (h Home) Code() string { return h.path("code") }

// Rel is a path as a person reads it, from the directory that solutions is in.
func (h Home) Rel(path string) string {
	return state.Project{Root: filepath.Join(h.Root, "../..")}.Rel(path)
}

// perm is that of the files that a person reads.
const perm = 0o644

// Open is where a task's session goes on, or begins: then what earlier sessions
// left of their cycles is put away, and the files that are missing are made.
func Open(h Home, task, agent, model string, cycles int, now time.Time) (s State, resumed bool, err error) {
	if err = h.checkLinks(); err == nil {
		s, err = Load(h)
	}
	if err == nil {
		err = os.MkdirAll(h.Project().Calls(), 0o755)
	}
	if err != nil {
		return s, false, err
	}
	if resumed = s.Session > 0 && s.Step != Done && s.Task == task; resumed {
		s.Agent, s.Model, s.Cycles = agent, model, max(cycles, s.Cycle)
		s.Last().Agent, s.Last().Model = agent, model
	} else if err = h.begin(s.Session); err == nil {
		s = s.Begin(task, agent, model, cycles, now)
		var all Prompts
		all, err = h.Prompts()
		s.Book = all.Number()
	}
	if err == nil {
		err = s.Save(h)
	}
	return s, resumed, err
}

// checkLinks refuses a project in which a link would lead abl elsewhere. No agent can have made it:
// it came with a repository.
func (h Home) checkLinks() error {
	err := state.CheckOwn(h.Root)
	for n := 1; n <= MaxCycles && err == nil; n++ {
		if info, lerr := os.Lstat(h.Cycle(n)); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			err = fmt.Errorf("%q is a link", filepath.Base(h.Cycle(n)))
		}
	}
	if err != nil {
		const do = "replace it by a regular file or a directory"
		err = &environment.Error{Class: environment.Usage, Do: do, Err: fmt.Errorf("cannot open %s: %w", h.Rel(h.Root), err)}
	}
	return err
}

// begin moves the cycles of the session before to where they are in nobody's way, and
// makes the files of a project that are not there.
func (h Home) begin(before int) (err error) {
	for n := 1; n <= MaxCycles; n++ {
		from := h.Cycle(n)
		to := h.path(".abl", "sessions", fmt.Sprint(before), filepath.Base(from))
		if _, gone := os.Lstat(from); gone == nil && err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.RemoveAll(to), os.Rename(from, to))
		}
	}
	first := Prompts{Current: prompts.LearnGenerate}.Render()
	for name, text := range map[string]string{MemoryFile: "", MistakesFile: "", PromptsFile: first} {
		if _, gone := os.Lstat(h.path(name)); errors.Is(gone, fs.ErrNotExist) && err == nil {
			err = hostfs.Write(h.path(name), []byte(text), perm)
		}
	}
	return err
}

// Projects are those below a folder that were ever begun.
func Projects(dir string) (homes []Home) {
	found, _ := fs.Glob(os.DirFS(dir), "*/"+stateFile) // the pattern is right
	for _, file := range found {
		homes = append(homes, Home{filepath.Join(dir, file[:len(file)-len("/"+stateFile)])})
	}
	return homes
}

// Text is a file of the project's, which no container sees; "" when it is not there:
// a person may have taken it away. They may have written more than abl would, too.
func (h Home) Text(name string) (string, error) {
	data, err := hostfs.Read(h.Root, name, 4<<20)
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

// note writes a file beside a cycle's program, whatever the agent put there.
func (h Home) note(n int, name, text string) error {
	dir := h.Cycle(n)
	// An agent may have made its folder read-only.
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755), hostfs.Remove(dir, name)); err != nil {
		return err
	}
	return hostfs.Write(filepath.Join(dir, name), []byte(text), perm)
}

// merged is a file of lessons with those of a cycle, and how many it did not have.
func (h Home) merged(name string, items []string) (text string, added int, err error) {
	was, err := h.Text(name)
	text, more := mergeLessons(was, items)
	return text, len(more), err
}

// keep writes what a cycle taught, and the prompt of the next, and says under which version that
// of the cycle is archived. Done twice it is done once.
func (h Home) keep(s State, now time.Time) (version int, err error) {
	c := s.Last()
	for _, f := range []struct {
		name  string
		items []string
	}{{MemoryFile, c.Learned}, {MistakesFile, c.Mistaken}} {
		text, added, err := h.merged(f.name, f.items)
		if err == nil && added > 0 {
			err = hostfs.Write(h.path(f.name), []byte(text), perm)
			failpoint.Here("learn.merged")
		}
		if err != nil {
			return 0, err
		}
	}
	all, err := h.Prompts()
	if err != nil || all.Number() > s.Book {
		return all.Number(), err // written by one that was killed right afterwards
	}
	all = all.Next(c.Improved, now)
	err = hostfs.Write(h.path(PromptsFile), []byte(all.Render()), perm)
	failpoint.Here("learn.archived")
	return all.Number(), err
}

// publish makes code/ of a cycle: all its files and folders, without the notes.
// The old code/ stays until the new one is whole. What a person should not run
// into is left out and named.
func (h Home) publish(n int) (left []string, err error) {
	const fresh = ".abl/code.new"
	if err = hostfs.Remove(h.Root, fresh); err == nil {
		left, err = copyTree(h.Cycle(n), h.path(fresh))
	}
	failpoint.Here("learn.copied")
	if err == nil {
		err = hostfs.Remove(h.Root, "code")
	}
	failpoint.Here("learn.replacing")
	if err == nil {
		err = os.Rename(h.path(fresh), h.Code())
	}
	if err != nil {
		err = fmt.Errorf("cannot make %s of %s: %w", h.Rel(h.Code()), h.Rel(h.Cycle(n)), err)
	}
	return left, err
}

// copyTree copies files, folders and those links that stay inside. Nothing is
// followed on the way: the source is reached through open folders alone.
func copyTree(from, to string) ([]string, error) {
	src, err := os.OpenRoot(from)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	w := &sifted{ReadLinkFS: src.FS().(fs.ReadLinkFS), root: src}
	err = os.CopyFS(to, w)
	const most = 20
	if n := len(w.left); n > most {
		w.left = append(w.left[:most], fmt.Sprintf("and %d more", n-most))
	}
	return w.left, err
}

// sifted is a cycle's folder without what code/ does not get.
type sifted struct {
	fs.ReadLinkFS
	root *os.Root
	left []string // what that is, and why
}

// ReadDir implements fs.ReadDirFS.
func (w *sifted) ReadDir(dir string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.ReadLinkFS, dir)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		name := path.Join(dir, e.Name())
		if slices.Contains(notes, name) {
			return true
		}
		why := w.odd(name, e.Type())
		if why != "" {
			w.left = append(w.left, fmt.Sprintf("%q: %s", name, why))
		}
		return why != ""
	}), err
}

// odd says why an entry is left out, "" for one that is not. An agent may make what its
// owner may not read, and names that are no text.
func (w *sifted) odd(name string, kind fs.FileMode) string {
	var err error
	switch {
	case strings.EqualFold(path.Base(name), ".git"):
		return "git would run what its settings say"
	case kind.IsDir(), kind.IsRegular():
		var f fs.File
		if f, err = w.Open(name); err == nil {
			f.Close()
		}
	case kind&fs.ModeSymlink != 0:
		if _, err = w.root.Stat(name); err != nil {
			return "a link that leads outside, or nowhere"
		}
	default:
		return "neither a file nor a folder"
	}
	if err != nil {
		return "it cannot be read: " + err.Error()
	}
	return ""
}
