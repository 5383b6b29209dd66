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
	"slices"
	"strings"
	"time"

	"abl/internal/git/ignore"
	"abl/internal/hostfs"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"golang.org/x/sys/unix"
)

// ErrTooLarge marks a tree beyond the limits of a walk.
var ErrTooLarge = errors.New("the tree is too large")

// Options say what to walk and how far.
type Options struct {
	Root    string
	Known   []*index.Entry // what is tracked, in git's order
	Written time.Time      // when the index was written; zero trusts no entry
	Exclude []byte         // the repository's info/exclude
	NoExec  bool           // the executable bit means nothing here (core.fileMode=false)

	// Sweep takes away what no role needs and walks what is left out of the tree
	// too. No container that could race it may run.
	Sweep bool

	NamesOnly bool // read no content: entries then have a path and a mode alone

	// Put takes the content of a file that is new, of size bytes and with this hash,
	// else it is hostfs.ErrChanged. Without Put content is hashed and not kept.
	Put func(hash plumbing.Hash, size int64, r io.Reader) error

	// SizeOf is asked for the size of a tracked object when a file is beyond MaxFile.
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
	Skipped []Skipped

	// With Sweep alone.
	Cleared []state.Thing
	Marks   []Mark
	Ignored state.Ignored
}

// Walk reads the tree below o.Root.
func Walk(ctx context.Context, o Options) (*Result, error) {
	top, err := hostfs.OpenDir(unix.AT_FDCWD, o.Root)
	if err != nil {
		return nil, fmt.Errorf("cannot open %q: %w", o.Root, err)
	}
	// File systems stamp times by a clock that ticks slower than this one.
	w := &walker{Options: o, ctx: ctx, settled: time.Now().Add(-20 * time.Millisecond), told: map[string]int{}}
	if err := w.folder(top, folder{rules: ignore.Exclude(o.Exclude)}); err != nil {
		return nil, err
	}
	r := &w.result
	slices.SortFunc(r.Entries, func(a, b *index.Entry) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Skipped, func(a, b Skipped) int { return strings.Compare(a.Path, b.Path) })
	r.Cleared = state.InOrder(r.Cleared)
	r.Ignored.Finish()
	return r, nil
}

type walker struct {
	Options
	ctx     context.Context
	settled time.Time // files changed since may change again within one tick
	met     int
	told    map[string]int // how many things of a kind were found
	result  Result
}

func (w *walker) skip(path, why string) {
	if len(w.result.Skipped) < maxSkipped {
		w.result.Skipped = append(w.result.Skipped, Skipped{path, why})
	}
}

// count fails when the walk has met too much, or is no longer wanted.
func (w *walker) count(names int) error {
	if w.met += names; w.met > w.MaxEntries {
		return fmt.Errorf("cannot walk %q: more than %d names: %w", w.Root, w.MaxEntries, ErrTooLarge)
	}
	return w.ctx.Err()
}

// tracked is the index's entry of a file, or the first one below a folder, nil for none.
func (w *walker) tracked(path string, folder bool) *index.Entry {
	if folder {
		path += "/"
	}
	i, same := slices.BinarySearchFunc(w.Known, path, func(e *index.Entry, path string) int { return strings.Compare(e.Name, path) })
	if same || folder && i < len(w.Known) && strings.HasPrefix(w.Known[i].Name, path) {
		return w.Known[i]
	}
	return nil
}
