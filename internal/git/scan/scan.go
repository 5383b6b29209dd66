// Package scan walks a work tree that an agent has written and says what git
// would commit of it. It opens folders and regular files only, one name at a
// time from the folder above, so it follows no link, never leaves the
// directory, and hangs on nothing that was put there. It knows no repository:
// what is tracked it is told, and what is new it hands on.
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

	"abl/internal/git/ignore"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/sys/unix"
)

// ErrTooLarge marks a tree beyond the limits of a walk.
var ErrTooLarge = errors.New("the tree is too large")

// ErrChanging says that content is not what it was a moment ago.
var ErrChanging = errors.New("it changes while it is read")

// Store takes the objects that a walk finds new, from several goroutines. What r
// gives must be size bytes and have this hash, else it is ErrChanging.
type Store interface {
	Put(kind plumbing.ObjectType, hash plumbing.Hash, size int64, r io.Reader) error
}

// Options say what to walk and how far.
type Options struct {
	Root    string
	Known   []*index.Entry           // what is tracked, in git's order
	Written time.Time                // when the index was written; zero trusts no entry
	Trees   map[string]plumbing.Hash // objects that are there: a folder, with a slash at its end, to its tree
	Exclude []byte                   // the repository's info/exclude
	NoExec  bool                     // the executable bit means nothing here (core.fileMode=false)

	// Sweep takes away what no role needs (package sweep) and walks what is left
	// out of the tree too. No container that could race it may run.
	Sweep bool

	NamesOnly bool  // read no content: entries then have a path and a mode alone
	Store     Store // nil: content is hashed and not kept

	// SizeOf is asked for the size of a tracked object when a file is beyond
	// MaxFile, from several goroutines.
	SizeOf func(plumbing.Hash) (int64, error)

	MaxFile              int64
	MaxDepth, MaxEntries int
}

// Skipped is a path that was left out.
type Skipped struct{ Path, Why string }

// maxSkipped is how many skipped paths are named.
const maxSkipped = 1000

// Result is what git would have in its index after git add -A.
type Result struct {
	Entries []*index.Entry
	Trees   map[string]plumbing.Hash // as in Options, "" for the root; of no use with NamesOnly
	Skipped []Skipped

	// With Sweep alone.
	Cleared []state.Thing
	Marks   []Mark
	Ignored state.Ignored
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
	n, err := w.folder(ctx, fd, folder{rules: ignore.Exclude(o.Exclude), known: o.Known})
	if err != nil {
		return nil, err
	}
	return w.finish(n), nil
}

type walker struct {
	Options
	slots   chan struct{}
	settled time.Time // files changed since may change again within one tick
	met     atomic.Int64

	mu     sync.Mutex
	result Result
	clears tally
	marked tally
}

func (w *walker) skip(path, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.result.Skipped) < maxSkipped {
		w.result.Skipped = append(w.result.Skipped, Skipped{path, why})
	}
}

// count fails when the walk has met too much, or is no longer wanted.
func (w *walker) count(ctx context.Context, names int) error {
	if met := w.met.Add(int64(names)); met > int64(w.MaxEntries) {
		return fmt.Errorf("cannot walk %q: more than %d names: %w", w.Root, w.MaxEntries, ErrTooLarge)
	}
	return ctx.Err()
}
