// Package git manages the git history of a role's workspace. It commits snapshots of files that it
// does not trust, and survives a crash at any moment. A workspace may be a clone of the user's
// repository, the Origin, which receives the commits.
//
// go-git reads and writes objects, packs and the index. Package scan walks the files and package
// gitdir moves refs, because go-git's Worktree blocks on a FIFO, fails on unusual names, trusts
// file times, and writes refs and the index in place.
//
// The user's git reads the Origin, and merges in a scratch repository that borrows its objects. It
// never runs in a workspace. No hook, filter or driver of any repository runs.
package git

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"abl/internal/git/gitdir"
	"abl/internal/git/scan"
	"abl/internal/hostfs"
	"abl/internal/state"
)

// ErrForeign marks a history that only the user can repair. The message says what is wrong and what
// to do.
var ErrForeign = gitdir.ErrForeign

// ErrTooLarge means that a tree has too many entries.
var ErrTooLarge = scan.ErrTooLarge

// Options change how a workspace is read. The zero value is the default.
type Options struct {
	MaxFile  int64             // in bytes; larger files are listed and left out; 0 means 50 MiB
	Cache    string            // file that lists uncommitted files that steer the user's tools, "" for none
	Begun    bool              // the workspace had a repository before, so a missing one is an error
	Commit   string            // a commit that the history must have, "" for none
	Secrets  map[string]string // name to value of secrets that no commit may contain
	Clone    bool              // the repository is a clone made by abl, possibly with submodules
	Without  []string          // paths that the clone omits
	Identity Identity          // of the commits
}

// Repo is the repository of one workspace. Its methods are safe for concurrent use. Snapshots and
// tags wait for each other.
type Repo struct {
	repository

	id     os.FileInfo // of .git, to detect a replacement
	branch string
	noExec bool
	hooks  string // core.hooksPath below the workspace, "" if not set
	opts   Options

	mu   sync.Mutex
	last atomic.Pointer[written]
	read atomic.Pointer[scan.Result] // result of the last walk
}

// Dir returns the absolute path of the workspace.
func (r *Repo) Dir() string { return r.dir }

func (r *Repo) ref() string { return "refs/heads/" + r.branch }

// Open opens or creates the repository of an existing workspace directory. It uses an existing
// .git with its branch, history, remotes and config, but executes nothing of it. A new repository
// has the branch main. Open returns ErrForeign if the user must decide something first.
func Open(dir string, o Options) (*Repo, error) {
	dir, err1 := filepath.Abs(dir)
	top, err2 := os.Lstat(dir)
	err := errors.Join(err1, err2)
	if err == nil && !top.IsDir() {
		err = fmt.Errorf("%q is not a directory", dir)
	}
	if err == nil {
		err = hostfs.Reopen(dir)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open workspace: %w", err)
	}
	id, err := gitFolder(dir, top, o.Begun)
	if err != nil {
		return nil, err
	}
	r := &Repo{repository: repository{dir, gitdir.At(filepath.Join(dir, ".git"), id)}, id: id, opts: o}
	if _, err := r.checkedFiles(); err != nil {
		return nil, err
	}
	if err := r.readConfig(); err != nil {
		return nil, err
	}
	if err := r.leaveOut(); err != nil {
		return nil, err
	}
	tip, err := r.tip()
	if err != nil {
		return nil, err
	}
	if tip == "" && o.Commit != "" {
		return nil, gitdir.Foreign("%q lost its history, which had commit %s: restore it", r.git.Path, o.Commit)
	}
	r.git.Sweep(time.Now())
	if o.Clone {
		err = r.endCheckout(tip)
	}
	return r, err
}

// leaveOut adds the paths that the clone was created without, because it does not have their
// content. It fails if a path to omit exists in the clone.
func (r *Repo) leaveOut() error {
	data, err := hostfs.Read(r.git.Path, "info/exclude", maxSteering)
	if !r.opts.Clone || errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	var first []string
	for line := range strings.Lines(string(data)) {
		if name, is := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "/"); is {
			first = append(first, name)
		}
	}
	for _, name := range r.opts.Without {
		if _, err := os.Lstat(filepath.Join(r.dir, name)); err == nil && !slices.Contains(first, name) {
			return gitdir.Foreign("adopt.exclude names %q, but the clone %q contains it: remove it from adopt.exclude and "+
				"run abl publish; then add it again, move .abl/state.json away, and run abl pull", name, r.dir)
		}
	}
	r.opts.Without = append(first, r.opts.Without...)
	// Clones of older versions lack the file.
	if has, _ := hostfs.Read(r.git.Path, sparseFile, maxSteering); len(first) > 0 && !bytes.Equal(has, sparseOf(first)) {
		err = errors.Join(err, r.git.Replace(sparseFile, sparseOf(first)))
	}
	return err
}

// away returns the error for a missing repository.
func away(path string) error {
	return gitdir.Foreign("%q is missing: restore it, or move .abl/state.json away to start over without it", path)
}

// gitFolder returns the .git directory. It creates a missing one unless begun is set. HEAD is
// written last, because without it git sees no repository. So gitFolder can complete what a killed
// abl began.
func gitFolder(dir string, top fs.FileInfo, begun bool) (fs.FileInfo, error) {
	path := filepath.Join(dir, ".git")
	id, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) && begun {
		return nil, away(path)
	}
	if err == nil && !id.IsDir() {
		return nil, gitdir.Foreign("%q is a file or a link, so the history is elsewhere: move the repository here, or "+
			"choose another directory", path)
	}
	if err == nil {
		top = id
	}
	d := gitdir.At(path, top)
	if _, err := os.Lstat(d.Join("HEAD")); !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	has, err := born(d)
	if err == nil && has {
		return nil, gitdir.Foreign("%q is damaged: it has refs but no HEAD; git symbolic-ref HEAD refs/heads/NAME repairs it",
			path)
	}
	if err == nil {
		err = layOut(dir, top)
	}
	if err == nil {
		err = setHead(d, "main")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot create a repository in %q: %w", dir, err)
	}
	return os.Lstat(path)
}

const newConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\t" +
	"logallrefupdates = true\n"

func setHead(d gitdir.Dir, branch string) error {
	return d.Replace("HEAD", []byte("ref: refs/heads/"+branch+"\n"))
}

// layOut creates everything in the .git directory that git needs, except HEAD.
func layOut(dir string, owner fs.FileInfo) error {
	if err := gitdir.At(dir, owner).Mkdir(".git"); err != nil {
		return err
	}
	d := gitdir.At(filepath.Join(dir, ".git"), owner)
	for _, folder := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"} {
		if err := d.Mkdir(folder); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(d.Join("config")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.Replace("config", []byte(newConfig))
}

const (
	maxSteering = 4 << 20 // bytes of a config or a hook
	maxInside   = 100_000 // files in .git without objects
)

// unfinished maps files in .git to the operation that the user has to finish.
var unfinished = map[string]string{
	"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "BISECT_LOG": "a bisection",
	"rebase-merge": "a rebase", "rebase-apply": "a rebase or git am", "sequencer": "a series of picks or reverts",
}

// elsewhere are the files that point to another repository.
var elsewhere = []string{"objects/info/alternates", "objects/info/http-alternates", "commondir"}

// ordinary returns the files of .git without objects. It fails on unfinished operations, and on
// entries that are neither files nor directories: a link may leave the read-only mount, and a
// socket works through any mount.
func ordinary(d gitdir.Dir) (files []string, err error) {
	below := []string{".", "objects", "objects/pack", "objects/info"} // without their other subdirectories
	err = filepath.WalkDir(d.Path, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(d.Path, path)
		top, _, _ := strings.Cut(name, "/")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return gitdir.Foreign("cannot list %q (%v): restore the directory that git creates there", path, err)
		case unfinished[name] != "":
			return gitdir.Foreign("%s is unfinished (%q exists): git status shows how to continue or abort it",
				unfinished[name], path)
		case slices.Contains(elsewhere, name):
			return gitdir.Foreign("a part of the repository is in another one (%q exists): run git repack -a -d and remove "+
				"the file, or choose another directory", path)
		case e.Type()&^fs.ModeDir != 0:
			return gitdir.Foreign("%q is neither a file nor a directory: remove it; if it is a socket of git's file system "+
				"monitor, stop that first (git fsmonitor--daemon stop, and git config core.fsmonitor false)", path)
		case len(files) == maxInside:
			return gitdir.Foreign("%q contains more than %d files: git pack-refs --all combines those in refs", d.Path,
				maxInside)
		case !e.IsDir():
			files = append(files, name)
		case !slices.Contains([]string{"hooks", "info", "logs", "refs"}, top) && !slices.Contains(below, name):
			return fs.SkipDir
		}
		return nil
	})
	return files, err
}

// born reports whether the repository has or had any ref. If so, a missing branch is a loss, not a
// new repository.
func born(d gitdir.Dir) (bool, error) {
	files, err1 := ordinary(d)
	refs, err2 := d.Packed()
	tells := func(name string) bool {
		return (strings.HasPrefix(name, "refs/") || strings.HasPrefix(name, "logs/")) && !strings.HasSuffix(name, ".lock")
	}
	return len(refs) > 0 || slices.ContainsFunc(files, tells), errors.Join(err1, err2)
}

// readConfig reads the settings that a snapshot needs.
func (r *Repo) readConfig() error {
	c, err := configOf(r.git, "")
	if err != nil {
		return err
	}
	core := c.Section("core")
	is := func(option string) bool {
		return slices.Contains([]string{"true", "yes", "on", "1"}, core.Option(option))
	}
	if core.Option("worktree") != "" || is("bare") {
		return gitdir.Foreign("%q sets core.worktree or core.bare, so its files are elsewhere: unset it, or choose "+
			"another directory", r.git.Join("config"))
	}
	r.noExec = core.HasOption("filemode") && !is("filemode")
	hooks := core.Option("hookspath")
	if filepath.IsAbs(hooks) {
		hooks, _ = filepath.Rel(r.dir, hooks)
	}
	if filepath.IsLocal(hooks) {
		r.hooks = filepath.ToSlash(filepath.Clean(hooks)) + "/"
	}
	return nil
}

// there fails if .git is missing or was replaced after Open.
func (r *Repo) there() error {
	now, err := os.Lstat(r.git.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return away(r.git.Path)
	case err != nil || !os.SameFile(now, r.id):
		return gitdir.Foreign("%q was replaced while abl used it: find the program that did it", r.git.Path)
	}
	return nil
}

// checkedFiles returns the ordinary files of .git. It fails if .git was replaced or switched to
// another branch after Open.
func (r *Repo) checkedFiles() ([]string, error) {
	if err := r.there(); err != nil {
		return nil, err
	}
	files, err := ordinary(r.git)
	if err != nil {
		return nil, err
	}
	branch, commit, err := r.git.Head()
	if r.branch == "" { // called by Open
		r.branch = branch
	}
	switch {
	case err == nil && commit != "":
		err = gitdir.Foreign("HEAD of %q is detached at %.12s: switch to a branch first (git switch NAME)", r.dir, commit)
	case err == nil && branch != r.branch:
		err = gitdir.Foreign("%q is on branch %q now, but was on %q: switch back, or run abl again", r.dir, branch, r.branch)
	}
	return files, err
}

// steering lists the files of .git, in addition to hooks, that decide what the user's git runs,
// reads and writes.
var steering = []string{"config", "config.worktree", "info/attributes", "info/grafts"}

// Seal returns a fingerprint of .git: the hashes of the files that steer git, and all refs. It
// omits the index, objects, packs and logs, which the user's git changes, and remote branches,
// which it may fetch in the background. It returns ErrForeign if .git contains something
// unexpected.
func (r *Repo) Seal() (s state.Seal, err error) {
	files, err := r.checkedFiles()
	if err == nil {
		s.History, err = r.git.Packed()
	}
	if err != nil {
		return s, err
	}
	s.Steering = map[string]string{}
	for _, name := range files {
		hook := strings.HasPrefix(name, "hooks/") && !strings.HasSuffix(name, ".sample") // git runs no sample
		ref := strings.HasPrefix(name, "refs/") || name == "HEAD"
		if !hook && !ref && !slices.Contains(steering, name) {
			continue
		}
		data, err := hostfs.Read(r.git.Path, name, maxSteering)
		switch {
		case errors.Is(err, hostfs.ErrAbsent): // git packed the ref just now
		case err != nil:
			return s, gitdir.Foreign("%q: %v: restore the file that git creates there", r.git.Path, err)
		case ref:
			s.History[name] = strings.TrimSpace(string(data))
		default:
			s.Steering[name] = fmt.Sprintf("%x%s", sha256.Sum256(data), runs(r.git.Join(name)))
		}
	}
	maps.DeleteFunc(s.History, func(name, _ string) bool {
		fetched := strings.HasPrefix(name, "refs/remotes/") || strings.HasPrefix(name, "refs/prefetch/")
		return fetched || strings.HasSuffix(name, ".lock")
	})
	return s, nil
}

// runs returns "+x" for an executable file. git runs a hook only if it is executable.
func runs(path string) string {
	if info, err := os.Lstat(path); err == nil && info.Mode()&0o111 != 0 {
		return "+x"
	}
	return ""
}
