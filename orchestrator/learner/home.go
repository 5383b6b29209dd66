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

// Folder is the folder of all projects in the current directory.
const Folder = "solutions"

// Home is the directory of one project, solutions/NAME.
type Home struct{ Root string }

var nameless = regexp.MustCompile(`[^\p{L}\p{Nd}]`)

// Name returns the name of a task's project: its first 30 characters in lower case, with dashes for
// everything except letters and digits. A name without any of these is random.
func Name(task string) string {
	runes := []rune(strings.ToLower(strings.TrimSpace(task)))
	name := nameless.ReplaceAllString(string(runes[:min(len(runes), 30)]), "-")
	if name = strings.Trim(name, "-"); name == "" {
		return "project-" + strings.ToLower(rand.Text()[:8])
	}
	return name
}

// The files of a project, and files of abl in a cycle's folder.
const (
	MemoryFile   = "memory.txt"
	MistakesFile = "mistakes.txt"
	PromptsFile  = "prompts.md"

	promptFile = "prompt.txt"
	runFile    = "run.sh"
)

// phases describes the steps: the message to the user, the file for the agent's answer, the template
// of the question, and the next step after success.
var phases = map[Step]struct {
	title, file, template string
	next                  Step
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

// notes are abl's files in a cycle's folder, which are not part of the program.
var notes = strings.Fields("improved_prompt.txt learnings.txt mistakes.txt output.txt review.txt prompt.txt")

func (h Home) path(elem ...string) string {
	return filepath.Join(append([]string{h.Root}, elem...)...)
}

// Private returns the folder for abl's own files of a project: state, records, ledger.
func (h Home) Private() string { return h.path(".abl") }

// State returns the path of the file with the project's id.
func (h Home) State() string { return h.path(stateFile) }

// Project returns the layout of the project's records and ledger.
func (h Home) Project() state.Project { return state.NewProject(h.Root, "code", ".abl/none") }

// Abandon records that the session's running call is about to be stopped on request. The next run
// repeats it.
func (h Home) Abandon(s State) error {
	rec := roles.Record{Dir: h.Project().Call(s.Key())}
	_, ended, err := rec.Outcome()
	_, begun, ierr := rec.Intent()
	if err := errors.Join(err, ierr); err != nil || ended || !begun {
		return err
	}
	return rec.Stop(roles.Stopped{Class: outcome.Interrupted})
}

// Cycle returns the folder of a cycle of the current session.
func (h Home) Cycle(n int) string { return h.path(fmt.Sprintf("cycle-%d", n)) }

// Code returns the folder of the final program.
func (h Home) Code() string { return h.path("code") }

// Rel returns a path relative to the directory that contains solutions.
func (h Home) Rel(path string) string {
	return state.Project{Root: filepath.Join(h.Root, "../..")}.Rel(path)
}

// perm is the mode of files for the user.
const perm = 0o644

// Open resumes a task's session, or begins one. To begin one, it moves the cycles of earlier sessions
// away and creates missing files.
func Open(h Home, task, agent, model string, cycles int, now time.Time) (s State, resumed bool, err error) {
	if err := h.checkLinks(); err != nil {
		return s, false, err
	}
	if s, err = Load(h); err != nil {
		return s, false, err
	}
	if err := os.MkdirAll(h.Project().Calls(), 0o755); err != nil {
		return s, false, err
	}
	resumed = s.Session > 0 && s.Step != Done && s.Task == task
	if resumed {
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

// checkLinks fails if the project has a link that would lead abl elsewhere. No agent can create one:
// it came with a repository.
func (h Home) checkLinks() error {
	err := state.CheckOwn(h.Root)
	for n := 1; n <= MaxCycles && err == nil; n++ {
		if info, lerr := os.Lstat(h.Cycle(n)); lerr == nil && info.Mode()&fs.ModeSymlink != 0 {
			err = fmt.Errorf("%q is a link", filepath.Base(h.Cycle(n)))
		}
	}
	if err != nil {
		const do = "replace it with a regular file or a directory"
		err = &environment.Error{Class: environment.Usage, Do: do, Err: fmt.Errorf("cannot open %s: %w", h.Rel(h.Root), err)}
	}
	return err
}

// begin moves the cycles of the earlier session away and creates the missing files of a project.
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

// Projects returns the projects below a folder that have a state file.
func Projects(dir string) (homes []Home) {
	found, _ := fs.Glob(os.DirFS(dir), "*/"+stateFile) // the pattern is valid
	for _, file := range found {
		homes = append(homes, Home{filepath.Join(dir, file[:len(file)-len("/"+stateFile)])})
	}
	return homes
}

// Text returns a file of the project, "" if it does not exist. The user may have edited or deleted
// it. No container sees it.
func (h Home) Text(name string) (string, error) {
	data, err := hostfs.Read(h.Root, name, 4<<20)
	if errors.Is(err, hostfs.ErrAbsent) {
		return "", nil
	}
	return string(data), err
}

// Prompts returns the content of prompts.md, or abl's own prompt if the file is empty.
func (h Home) Prompts() (Prompts, error) {
	text, err := h.Text(PromptsFile)
	if strings.TrimSpace(text) == "" {
		text = prompts.LearnGenerate
	}
	return ParsePrompts(text), err
}

// note writes a file into a cycle's folder. It replaces whatever the agent created there.
func (h Home) note(n int, name, text string) error {
	dir := h.Cycle(n)
	// An agent may have made its folder read-only.
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755), hostfs.Remove(dir, name)); err != nil {
		return err
	}
	return hostfs.Write(filepath.Join(dir, name), []byte(text), perm)
}

// merged returns a file of lessons with new lessons added, and the number of those.
func (h Home) merged(name string, items []string) (text string, added int, err error) {
	was, err := h.Text(name)
	text, more := mergeLessons(was, items)
	return text, len(more), err
}

// saveLessons writes the lessons of a cycle and the prompt of the next. It returns the version under
// which the cycle's prompt is archived. A repetition changes nothing.
func (h Home) saveLessons(s State, now time.Time) (version int, err error) {
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
		return all.Number(), err // written by an abl that was killed afterwards
	}
	all = all.Next(c.Improved, now)
	err = hostfs.Write(h.path(PromptsFile), []byte(all.Render()), perm)
	failpoint.Here("learn.archived")
	return all.Number(), err
}

// publish creates code/ from the files of a cycle, without notes. The old code/ stays until the new
// one is complete. left lists files that are left out because they are not safe for the user.
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
		err = fmt.Errorf("cannot create %s from %s: %w", h.Rel(h.Code()), h.Rel(h.Cycle(n)), err)
	}
	return left, err
}

// copyTree copies files, folders, and links that stay inside. It follows no link.
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

// sifted is a cycle's folder without the files that code/ does not get.
type sifted struct {
	fs.ReadLinkFS
	root *os.Root
	left []string // these files with the reasons
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

// odd returns why an entry is left out, or "". An agent may create unreadable files and names that
// are not text.
func (w *sifted) odd(name string, kind fs.FileMode) string {
	var err error
	switch {
	case strings.EqualFold(path.Base(name), ".git"):
		return "git would execute its settings"
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
