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

	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
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

// Commit is one commit as abl reads it.
type Commit struct {
	Hash, Tree string // 40 hexadecimal digits
	Parent     string // the first one, "" for none
	Call       string // of Message
	When       time.Time
}

// Snap is the outcome of a snapshot.
type Snap struct {
	Commit   Commit
	Existing bool // the branch carried this call's commit already; nothing was done
	Changed  int  // paths that differ from the parent
	Skipped  []Skipped
}

// Skipped is one path that a snapshot left out, and why.
type Skipped = scan.Skipped

// Repo is the repository of one workspace directory. Its methods may be
// called from several goroutines; snapshots and tags wait for each other.
type Repo struct {
	dir    string
	git    gitdir.Dir
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
	if path := filepath.Join(dir, ".git"); o.Begun {
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, away(path)
		}
	}
	id, err := gitFolder(dir, top)
	if err != nil {
		return nil, err
	}
	r := &Repo{dir: dir, git: gitdir.At(filepath.Join(dir, ".git"), id), id: id, opts: o.filled()}
	if err := r.adopt(); err != nil {
		return nil, err
	}
	if err := leaveOut(r); err != nil {
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
		_, err = endCheckout(r, tip)
	}
	return r, err
}

// leaveOut takes up what a clone was made without, whose content it does not have, and refuses
// to leave out what it has.
func leaveOut(r *Repo) error {
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

// gitFolder finds the .git folder, or makes it.
func gitFolder(dir string, top fs.FileInfo) (fs.FileInfo, error) {
	path := filepath.Join(dir, ".git")
	id, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := gitdir.At(dir, top).Mkdir(".git"); err != nil {
			return nil, fmt.Errorf("cannot make %q: %w", path, err)
		}
		id, err = os.Lstat(path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open %q: %w", path, err)
	}
	if !id.IsDir() {
		return nil, gitdir.Foreign("%q is a file or a link and not a folder, so the history lies elsewhere: put a repository of its own here, or choose another directory", path)
	}
	d := gitdir.At(path, id)
	if _, err := os.Lstat(d.Join("HEAD")); !errors.Is(err, fs.ErrNotExist) {
		return id, err
	}
	if err := initialise(d); err != nil {
		return nil, fmt.Errorf("cannot make a repository in %q: %w", dir, err)
	}
	return id, nil
}

const newConfig = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n"

// initialise makes a repository, or ends what a killed abl began: HEAD comes
// last, and without it git sees no repository.
func initialise(d gitdir.Dir) error {
	born, err := d.EverBorn()
	if err != nil {
		return err
	}
	if born {
		return gitdir.Foreign("%q has refs but no HEAD: it is damaged; git symbolic-ref HEAD refs/heads/NAME mends it", d.Path)
	}
	if err := layOut(d); err != nil {
		return err
	}
	return d.Replace("HEAD", []byte("ref: refs/heads/main\n"))
}

// layOut makes all that git wants in a .git folder, but for HEAD. go-git's PlainInit does the
// same by these calls, on a file system of its own, and brings its transports along.
func layOut(d gitdir.Dir) error {
	s := filesystem.NewStorage(d.FS(), cache.NewObjectLRUDefault())
	if err := errors.Join(s.Init(), d.Mkdir("info"), d.Mkdir("hooks")); err != nil {
		return err
	}
	if _, err := os.Lstat(d.Join("config")); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.Replace("config", []byte(newConfig))
}
