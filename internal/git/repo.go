// Package git keeps the git history of a role's directory: it takes
// snapshots of what an agent left there, without trusting a byte of it, and
// without ever leaving the history half written.
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
	"os"
	"sync"
	"sync/atomic"
	"time"

	"abl/internal/git/gitdir"
	"abl/internal/git/scan"
)

// ErrForeign marks a history that a person must decide about first: the
// message says what stands in the way and what to do.
var ErrForeign = gitdir.ErrForeign

// ErrTooLarge marks a tree beyond Options.MaxEntries.
var ErrTooLarge = scan.ErrTooLarge

// Options change how a workspace is read. The zero value is what abl uses.
type Options struct {
	MaxFile    int64             // bytes; a larger file is listed and left out, 0 is 50 MiB
	MaxEntries int               // names that a walk may meet before it gives up, 0 is two million
	MaxDepth   int               // folders within folders; what lies deeper is left out, 0 is 256
	Cache      string            // file that remembers what steers a person's tools and is in no tree, "" for none
	LockWait   time.Duration     // how long to wait for a lock that another git holds, 0 is 5 s
	Begun      bool              // the workspace had a repository before: none is made in its place
	Commit     string            // one that it held, "" for none: it has a history
	Secrets    map[string]string // name → value: what no commit may hold
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
