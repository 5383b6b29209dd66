package workspace

import (
	"context"
	"errors"
	"time"
)

// Options change how a workspace is read. The zero value is what abl uses.
type Options struct {
	MaxFile    int64         // bytes; a larger file is listed and left out, 0 is 50 MiB
	MaxEntries int           // names a walk may meet before it gives up, 0 is two million
	MaxDepth   int           // folders within folders before a walk gives up, 0 is 256
	LockWait   time.Duration // how long to wait for a lock that another git holds, 0 is 5 s
}

// Commit is one commit as abl reads it.
type Commit struct {
	Hash, Tree string // 40 hexadecimal digits
	Subject    string // the first line of the message
	Trailers   map[string]string
	When       time.Time
}

// Message says what a snapshot's commit says. Author and committer are
// abl <abl@localhost>; the trailer Abl-Call is the idempotency key.
type Message struct {
	Subject  string
	Trailers [][2]string
	When     time.Time
}

// Snap is the outcome of a snapshot.
type Snap struct {
	Commit   Commit
	Existing bool // the branch carried this call's commit already; nothing was done
	Changed  int  // paths that differ from the parent
	Skipped  []Skipped
}

// Skipped is one path that a snapshot left out.
type Skipped struct{ Path, Why string }

// ErrForeign marks a history that a person must decide about first.
var ErrForeign = errors.New("the history needs a person's decision")

var errUnbuilt = errors.New("internal error: workspace is not built yet")

// Repo is the repository of one workspace directory.
type Repo struct{ dir, branch string }

// Open opens or makes the repository of a workspace directory.
func Open(dir string, o Options) (*Repo, error) { return nil, errUnbuilt }

// Dir is the workspace directory, absolute.
func (r *Repo) Dir() string { return r.dir }

// Branch is the branch that HEAD names.
func (r *Repo) Branch() string { return r.branch }

// Head is the commit at the tip of the branch; false when there is none yet.
func (r *Repo) Head() (Commit, bool, error) { return Commit{}, false, errUnbuilt }

// Snapshot commits what stands in the directory.
func (r *Repo) Snapshot(ctx context.Context, m Message) (Snap, error) { return Snap{}, errUnbuilt }

// Tag makes a lightweight tag.
func (r *Repo) Tag(ctx context.Context, name, commit string) error { return errUnbuilt }

// TagCommit is the commit that a tag names; false when there is no such tag.
func (r *Repo) TagCommit(name string) (string, bool, error) { return "", false, errUnbuilt }

// Differs lists up to 100 paths whose content no longer equals HEAD's tree.
func (r *Repo) Differs(ctx context.Context) ([]string, error) { return nil, errUnbuilt }

// Files lists what is tracked or not ignored, sorted, at most max paths, and counts all.
func (r *Repo) Files(ctx context.Context, max int) (paths []string, total int, err error) {
	return nil, 0, errUnbuilt
}

// Fingerprint hashes what in .git steers a person's git.
func (r *Repo) Fingerprint() (string, error) { return "", errUnbuilt }

// Log lists the newest commits of the branch, first parents only.
func (r *Repo) Log(max int) ([]Commit, error) { return nil, errUnbuilt }
