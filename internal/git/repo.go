// Package git keeps the git history of a role's directory: it takes
// snapshots of what an agent left there, without trusting a byte of it, and
// without ever leaving the history half written. That directory may be a clone of
// a person's repository, an Origin, into which commits are brought back.
//
// go-git reads and writes objects, packs and the index. An agent's tree is
// walked by hand (package scan), and refs are moved by hand (package gitdir),
// because go-git's own Worktree hangs on a FIFO, stops at an odd name, trusts
// file times and writes refs and the index in place.
//
// The user's git reads their repository, and merges in a scratch repository that borrows
// its objects. It never runs in a workspace, and no hook, filter or driver of any
// repository is run.
package git

import (
	"bytes"
	"cmp"
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

// ErrForeign marks a history that a person must decide about first: the
// message says what stands in the way and what to do.
var ErrForeign = gitdir.ErrForeign

// ErrTooLarge marks a tree beyond Options.MaxEntries.
var ErrTooLarge = scan.ErrTooLarge

// Options change how a workspace is read. The zero value is what most want.
type Options struct {
	MaxFile    int64             // bytes; a larger file is listed and left out, 0 is 50 MiB
	MaxEntries int               // names that a walk may meet before it gives up, 0 is two million
	MaxDepth   int               // folders within folders; what lies deeper is left out, 0 is 256
	Cache      string            // file that remembers what steers a person's tools and is in no tree, "" for none
	LockWait   time.Duration     // how long to wait for a lock that another git holds, 0 is 5 s
	Begun      bool              // the workspace had a repository before: none is made in its place
	Commit     string            // one that it held, "" for none: it has a history
	Secrets    map[string]string // name → value: what no commit may hold
	Clone      bool              // it is one of abl's own making, with submodules perhaps
	Without    []string          // paths that are left out of such a clone
	Identity   Identity          // of the commits
}

func (o Options) filled() Options {
	o.MaxFile = cmp.Or(o.MaxFile, 50<<20)
	o.MaxEntries = cmp.Or(o.MaxEntries, 2_000_000)
	o.MaxDepth = cmp.Or(o.MaxDepth, 256)
	o.LockWait = cmp.Or(o.LockWait, 5*time.Second)
	return o
}

// Repo is the repository of one workspace directory. Its methods may be
// called from several goroutines; snapshots and tags wait for each other.
type Repo struct {
	repository

	id     os.FileInfo // of .git, so that a replaced one is noticed
	branch string
	noExec bool
	hooks  string // folder below the workspace from which the config runs hooks, "" for none
	opts   Options

	mu   sync.Mutex
	last atomic.Pointer[written]
	read atomic.Pointer[scan.Result] // what was read last of the work tree
}

// Dir is the workspace directory, absolute.
func (r *Repo) Dir() string { return r.dir }

func (r *Repo) ref() string { return "refs/heads/" + r.branch }

// Open opens or makes the repository of a workspace directory, which must
// exist. A .git that is there already is adopted with its branch, history,
// remotes and config, and nothing of it is executed; a new one has the branch
// main. An error that Is ErrForeign says what a person must decide first.
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
	r := &Repo{repository: repository{dir, gitdir.At(filepath.Join(dir, ".git"), id)}, id: id, opts: o.filled()}
	_, err = r.settled()
	if err == nil {
		err = r.readConfig()
	}
	if err == nil {
		err = r.leaveOut()
	}
	tip := ""
	if err == nil {
		tip, err = r.tip()
	}
	if err == nil && tip == "" && o.Commit != "" {
		err = gitdir.Foreign("%q has no history any more, and had commit %s: put back what was there", r.git.Path, o.Commit)
	}
	if err != nil {
		return nil, err
	}
	r.git.Sweep(time.Now())
	if o.Clone {
		err = r.endCheckout(tip)
	}
	return r, err
}

// leaveOut takes up what a clone was made without, whose content it does not have, and refuses
// to leave out what it has.
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
			return gitdir.Foreign("%q is in the clone %q, and adopt.exclude names it now: take it out of adopt.exclude and run abl publish; then name it again, move .abl/state.json away, and run abl pull", name, r.dir)
		}
	}
	r.opts.Without = append(first, r.opts.Without...)
	if has, _ := hostfs.Read(r.git.Path, sparseFile, maxSteering); len(first) > 0 && !bytes.Equal(has, sparseOf(first)) { // an earlier version made the clone
		err = errors.Join(err, r.git.Replace(sparseFile, sparseOf(first)))
	}
	return err
}

// away is that the history of a workspace is no longer there.
func away(path string) error {
	return gitdir.Foreign("%q was moved away: put it back; to begin anew without it, move .abl/state.json away as well", path)
}

// gitFolder finds the .git folder, or makes it unless there was one before. HEAD comes last:
// without it git sees no repository, and what a killed abl began is ended.
func gitFolder(dir string, top fs.FileInfo, begun bool) (fs.FileInfo, error) {
	path := filepath.Join(dir, ".git")
	id, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) && begun {
		return nil, away(path)
	}
	if err == nil && !id.IsDir() {
		return nil, gitdir.Foreign("%q is a file or a link and not a folder, so the history lies elsewhere: put a repository of its own here, or choose another directory", path)
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
		return nil, gitdir.Foreign("%q has refs but no HEAD: it is damaged; git symbolic-ref HEAD refs/heads/NAME mends it", path)
	}
	if err == nil {
		err = layOut(dir, top)
	}
	if err == nil {
		err = setHead(d, "main")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a repository in %q: %w", dir, err)
	}
	return os.Lstat(path)
}

const newConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"

func setHead(d gitdir.Dir, branch string) error {
	return d.Replace("HEAD", []byte("ref: refs/heads/"+branch+"\n"))
}

// layOut makes all that git wants in the .git folder of a folder, but for HEAD.
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
	maxInside   = 100_000 // files of .git that are no objects
)

// waits are what git leaves in .git while something waits for a person.
var waits = map[string]string{
	"MERGE_HEAD": "a merge", "CHERRY_PICK_HEAD": "a cherry-pick", "REVERT_HEAD": "a revert", "BISECT_LOG": "a bisection",
	"rebase-merge": "a rebase", "rebase-apply": "a rebase or git am", "sequencer": "a series of picks or reverts",
}

// elsewhere are by what a repository is not all of itself.
var elsewhere = []string{"objects/info/alternates", "objects/info/http-alternates", "commondir"}

// ordinary lists the files of .git that are no objects, and refuses what waits for a person, and
// what is neither file nor folder there: a link leads out of what is mounted read-only, and a
// socket can be talked to through any mount.
func ordinary(d gitdir.Dir) (files []string, err error) {
	below := []string{".", "objects", "objects/pack", "objects/info"} // and all that is below the others
	err = filepath.WalkDir(d.Path, func(path string, e fs.DirEntry, err error) error {
		name, _ := filepath.Rel(d.Path, path)
		top, _, _ := strings.Cut(name, "/")
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return gitdir.Foreign("%q cannot be listed (%v): put back what git makes there", path, err)
		case waits[name] != "":
			return gitdir.Foreign("%s is not finished, as %q says: git status tells how to go on or to abort it", waits[name], path)
		case slices.Contains(elsewhere, name):
			return gitdir.Foreign("a part of the repository lies in another, as %q says: git repack -a -d and remove the file, or choose another directory", path)
		case e.Type()&^fs.ModeDir != 0:
			return gitdir.Foreign("%q is not what git makes there: remove it, and if it is a socket of git's own watcher end that (git fsmonitor--daemon stop, and git config core.fsmonitor false)", path)
		case len(files) == maxInside:
			return gitdir.Foreign("%q holds more than %d files: git pack-refs --all makes one of those in refs", d.Path, maxInside)
		case !e.IsDir():
			files = append(files, name)
		case !slices.Contains([]string{"hooks", "info", "logs", "refs"}, top) && !slices.Contains(below, name):
			return fs.SkipDir
		}
		return nil
	})
	return files, err
}

// born says whether any ref or any history of one exists, so that a missing branch is a loss
// and not a beginning.
func born(d gitdir.Dir) (bool, error) {
	files, err1 := ordinary(d)
	refs, err2 := d.Packed()
	tells := func(name string) bool {
		return (strings.HasPrefix(name, "refs/") || strings.HasPrefix(name, "logs/")) && !strings.HasSuffix(name, ".lock")
	}
	return len(refs) > 0 || slices.ContainsFunc(files, tells), errors.Join(err1, err2)
}

// pathsIn returns what is in a folder of .git, nothing if it cannot be read.
func pathsIn(d gitdir.Dir, folder string) (paths []string) {
	names, _ := hostfs.Names(d.Path, folder, maxInside)
	for _, name := range names {
		paths = append(paths, folder+"/"+name)
	}
	return paths
}

// readConfig takes from the config what a snapshot must know.
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
		return gitdir.Foreign("%q sets core.worktree or core.bare, so its files lie elsewhere: unset it, or choose another directory", r.git.Join("config"))
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

// there refuses a repository that is no longer the one that was opened.
func (r *Repo) there() error {
	now, err := os.Lstat(r.git.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return away(r.git.Path)
	case err != nil || !os.SameFile(now, r.id):
		return gitdir.Foreign("%q is no longer the folder that was opened: see who replaced it", r.git.Path)
	}
	return nil
}

// settled lists what is ordinary of a repository, and refuses one that is no longer the one that
// was opened, or on another branch.
func (r *Repo) settled() ([]string, error) {
	if err := r.there(); err != nil {
		return nil, err
	}
	files, err := ordinary(r.git)
	if err != nil {
		return nil, err
	}
	branch, commit, err := r.git.Head()
	if r.branch == "" { // it is being opened
		r.branch = branch
	}
	switch {
	case err == nil && commit != "":
		err = gitdir.Foreign("HEAD of %q is detached at %.12s: switch to a branch (git switch NAME) first", r.dir, commit)
	case err == nil && branch != r.branch:
		err = gitdir.Foreign("%q is on branch %q now and was on %q: switch back, or run abl again", r.dir, branch, r.branch)
	}
	return files, err
}

// steering is what in .git decides what a person's git runs and where it reads
// and writes, besides the hooks.
var steering = []string{"config", "config.worktree", "info/attributes", "info/grafts"}

// Seal says what .git is like now: what steers git by its hash, and where the
// history stands. The index, objects, packs and logs are the person's git's
// own business, and so are the branches of remotes, which it fetches by itself.
// An error that Is ErrForeign names something that must not be there.
func (r *Repo) Seal() (s state.Seal, err error) {
	files, err := r.settled()
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
		case errors.Is(err, hostfs.ErrAbsent): // a ref that was packed just now, say
		case err != nil:
			return s, gitdir.Foreign("%q: %v: put back what git makes there", r.git.Path, err)
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

// runs tells of the mode of a file, since git runs a hook only when it is executable.
func runs(path string) string {
	if info, err := os.Lstat(path); err == nil && info.Mode()&0o111 != 0 {
		return "+x"
	}
	return ""
}
