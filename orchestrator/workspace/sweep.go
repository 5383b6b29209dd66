package workspace

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"abl/orchestrator/sweep"
	"abl/orchestrator/workspace/digest"
	"abl/orchestrator/workspace/gitindex"
	"abl/orchestrator/workspace/scan"
)

// Sweep does what a snapshot does besides committing: for a call whose work is
// not committed.
func (r *Repo) Sweep(ctx context.Context, keep func(sweep.Found) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, _, err := r.Head()
	if err != nil {
		return err
	}
	ix, written, err := r.index(head)
	if err != nil {
		return err
	}
	base, err := r.base(head, ix)
	if err != nil {
		return err
	}
	o := r.walk(ix, written)
	o.Sweep = true
	found, err := scan.Walk(ctx, o)
	if err != nil {
		return err
	}
	return r.keep(ctx, base, found, keep)
}

// keep hands on what a walk found. The cache forgets what was new only when
// that is kept.
func (r *Repo) keep(ctx context.Context, base []gitindex.Entry, w *scan.Result, keep func(sweep.Found) error) error {
	cache := digest.Open(r.opts.Cache)
	f := sweep.Found{Cleared: w.Cleared, Control: r.control(base, w, cache)}
	var mu sync.Mutex
	found := func(path, what string) {
		mu.Lock()
		defer mu.Unlock()
		f.Cleared = append(f.Cleared, sweep.Thing{Path: path, What: what, Runs: true})
	}
	var err error
	if f.Ignored, err = digest.Take(ctx, r.dir, w.Ignored, cache, found); err != nil {
		return err
	}
	for _, list := range []*[]sweep.Thing{&f.Cleared, &f.Control} {
		*list = sweep.InOrder(*list)
	}
	if err := keep(f); err != nil {
		return err
	}
	if err := cache.Save(); err != nil {
		return fmt.Errorf("cannot remember what is ignored in %q: %w", r.dir, err)
	}
	return nil
}

// control lists what steers a person's tools and is new or changed: of the
// tree since the commit before, of what is in no tree since the sweep before.
func (r *Repo) control(base []gitindex.Entry, w *scan.Result, cache *digest.Cache) []sweep.Thing {
	var all []sweep.Thing
	differing(base, w.Entries, func(path string) {
		i, there := slices.BinarySearchFunc(w.Entries, path, func(e gitindex.Entry, path string) int { return strings.Compare(e.Path, path) })
		what := scan.SteersPath(path)
		if what == "" && r.hooks != "" && strings.HasPrefix(path, r.hooks) {
			what = scan.Hook
		}
		if there && what != "" {
			runs := scan.Runs(what) || w.Entries[i].Mode == gitindex.ModeExec
			all = append(all, sweep.Thing{Path: path, What: what, Runs: runs})
		}
	})
	for _, m := range w.Marks {
		if !cache.Marked(m.Path, m.Key) {
			all = append(all, m.Thing)
		}
	}
	return all
}
