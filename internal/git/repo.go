// Package git keeps the git history of a role's directory: it takes
// snapshots of what an agent left there, without trusting a byte of it, and
// without ever leaving the history half written. That directory may be a clone of
// a person's repository, an Origin, into which commits are brought back.
//
// go-git reads and writes objects, packs and the index. An agent's tree is
// walked by hand (package scan), and refs are moved by hand (package gitdir),
// because go-git's own Worktree hangs on a FIFO, stops at an odd name, trusts
// file times and writes refs and the index in place. Nothing of a repository is
// ever executed, and no program is started. What a commit means for a phase is not
// known here.
package git

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
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
}

// Dir is the workspace directory, absolute.
func (r *Repo) Dir() string { return r.dir }

func (r *Repo) ref() string { return "refs/heads/" + r.branch }

// Open opens or makes the repository of a workspace directory, which must
// exist. A .git that is there already is adopted with its branch, history,
// remotes and config, and nothing of it is executed; a new one has the branch
// main. An error that Is ErrForeign says what a person must decide first.
func Open(dir string, o Options) (*Repo, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open workspace %q: %w", dir, err)
	}
	top, err := os.Lstat(dir)
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
	if err := r.adopt(); err != nil {
		return nil, err
	}
	tip, err := r.tip()
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
	born, err := d.EverBorn()
	if err == nil && born {
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
