// Package scan walks a work tree that an agent has written and says what git
// would commit of it. It opens folders and regular files only, one name at a
// time from the folder above, so it follows no link, never leaves the
// directory, and hangs on nothing that was put there.
package scan

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"abl/orchestrator/sweep"
	"abl/orchestrator/workspace/gitindex"
	"abl/orchestrator/workspace/gitobj"
	"abl/orchestrator/workspace/ignore"

	"golang.org/x/sys/unix"
)

// ErrTooLarge marks a tree beyond the limits of a walk.
var ErrTooLarge = errors.New("the tree is too large")

// Store takes the objects that a walk finds new.
type Store interface {
	Put(k gitobj.Kind, name gitindex.Hash, data []byte) error
	PutStream(k gitobj.Kind, name gitindex.Hash, size int64, r io.Reader) error
}

// Options say what to walk and how far.
type Options struct {
	Root    string
	Index   *gitindex.Index // what is tracked
	Written time.Time       // when the index was written; zero trusts no entry
	Exclude []byte          // the repository's info/exclude
	NoExec  bool            // the executable bit means nothing here (core.fileMode=false)

	// Sweep takes away what no role needs (package sweep) and walks what is left
	// out of the tree too. No container that could race it may run.
	Sweep bool

	NamesOnly bool  // read no content: entries then have a path and a mode alone
	Store     Store // nil: content is hashed and not kept

	// SizeOf is asked for the size of a tracked object when a file is beyond
	// MaxFile, from several goroutines; nil knows none.
	SizeOf func(gitindex.Hash) (int64, error)

	MaxFile              int64
	MaxDepth, MaxEntries int
}

// Skipped is a path that was left out.
type Skipped struct{ Path, Why string }

// MaxSkipped is how many skipped paths are named.
const MaxSkipped = 1000

// Result is what git would have in its index after git add -A.
type Result struct {
	Entries []gitindex.Entry
	Tree    *gitindex.Tree // all valid; nil with NamesOnly
	Skipped []Skipped

	// With Sweep alone.
	Cleared []sweep.Thing
	Marks   []Mark
	Ignored []Ignored // sorted by folder
}

// Walk reads the tree below o.Root.
func Walk(ctx context.Context, o Options) (*Result, error) {
	fd, err := unix.Open(o.Root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open %q: %w", o.Root, err)
	}
	defer unix.Close(fd)
	w := &walker{
		Options: o,
		slots:   make(chan struct{}, 2*runtime.GOMAXPROCS(0)),
		// File systems stamp times by a clock that ticks slower than this one.
		settled: time.Now().Add(-20 * time.Millisecond),
	}
	root := folder{rules: ignore.Exclude(o.Exclude), known: o.Index.Entries, cached: o.Index.Tree}
	n, err := w.folder(ctx, fd, root)
	if err != nil {
		return nil, err
	}
	return w.result(n), nil
}

type walker struct {
	Options
	slots   chan struct{}
	settled time.Time // files changed since may change again within one tick
	met     atomic.Int64

	mu      sync.Mutex
	skipped []Skipped
	cleared []sweep.Thing
	clears  tally
	marks   []Mark
	marked  tally
	ignored []Ignored
}

// folder is one directory on the way.
type folder struct {
	path    string // with a trailing slash; "" is the root
	depth   int
	rules   *ignore.Rules
	ignored bool             // only tracked names below it count
	control string           // what the files in it steer, "" for nothing
	known   []gitindex.Entry // what is tracked below it
	cached  *gitindex.Tree
}

func (w *walker) skip(path, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.skipped) < MaxSkipped {
		w.skipped = append(w.skipped, Skipped{path, why})
	}
}

// count fails when the walk has met too much, or is no longer wanted.
func (w *walker) count(ctx context.Context, names int) error {
	if met := w.met.Add(int64(names)); met > int64(w.MaxEntries) {
		return fmt.Errorf("cannot walk %q: more than %d names: %w", w.Root, w.MaxEntries, ErrTooLarge)
	}
	return ctx.Err()
}
