package git

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"abl/internal/git/scan"
	"abl/internal/hostfs"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// Sweep does what a snapshot does besides committing: for a call whose work is
// not committed.
func (r *Repo) Sweep(ctx context.Context, keep func(state.Found) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	head, _, err := r.Head()
	if err == nil {
		_, _, err = r.look(ctx, head, keep, nil)
	}
	return err
}

// keep hands on what a walk found. What was new is remembered only when that is
// kept.
func (r *Repo) keep(base []*index.Entry, w *scan.Result, keep func(state.Found) error) error {
	was, is := readMarks(r.opts.Cache), map[string]string{}
	control := r.control(base, w.Entries)
	for _, m := range w.Marks {
		name := strconv.Quote(m.Path) // which JSON keeps whatever bytes a path has
		is[name] = m.State
		if before, known := was[name]; !known || before != m.State {
			control = append(control, m.Thing)
		}
	}
	if err := keep(state.Found{Cleared: w.Cleared, Control: state.InOrder(control), Ignored: w.Ignored}); err != nil {
		return err
	}
	if r.opts.Cache == "" || maps.Equal(was, is) {
		return nil
	}
	data, err := json.Marshal(is)
	if err == nil {
		err = hostfs.Write(r.opts.Cache, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot remember what was found in %q: %w", r.dir, err)
	}
	return nil
}

const maxMarks = 64 << 20 // bytes

// readMarks reads those of the sweep before. Without them all are new.
func readMarks(path string) (was map[string]string) {
	data, err := hostfs.Read(filepath.Dir(path), filepath.Base(path), maxMarks)
	if err != nil || json.Unmarshal(data, &was) != nil {
		return nil
	}
	return was
}

// control lists what of the tree steers a person's tools and is new or changed
// since the commit before.
func (r *Repo) control(base, entries []*index.Entry) (all []state.Thing) {
	for _, path := range differing(base, entries) {
		i, there := slices.BinarySearchFunc(entries, path, func(e *index.Entry, path string) int { return strings.Compare(e.Name, path) })
		what := scan.SteersPath(path)
		if what == "" && r.hooks != "" && strings.HasPrefix(path, r.hooks) {
			what = scan.Hook
		}
		if there && what != "" {
			runs := scan.Runs(what) || entries[i].Mode == filemode.Executable
			all = append(all, state.Thing{Path: path, What: what, Runs: runs})
		}
	}
	return all
}

// maxDiffers is how many differing paths are named.
const maxDiffers = 100

// Differs lists paths, at most 100, whose content no longer equals the tree of a
// commit, "" for HEAD: changed, deleted, and new unless ignored. It writes nothing.
func (r *Repo) Differs(ctx context.Context, commit string) ([]string, error) {
	head, _, err := r.Head()
	if err != nil {
		return nil, err
	}
	then := head
	if commit != "" {
		if then, err = r.commit(r.store(), commit); err != nil {
			return nil, err
		}
	}
	base, err := r.base(then)
	if err != nil {
		return nil, err
	}
	found, err := r.walk(ctx, head, scan.Options{})
	if err != nil {
		return nil, err
	}
	paths := differing(base.entries, found.Entries)
	return paths[:min(maxDiffers, len(paths))], nil
}

// Files lists what stands in the directory and is tracked or not ignored,
// sorted, at most max paths.
func (r *Repo) Files(ctx context.Context, max int) (paths []string, err error) {
	head, _, err := r.Head()
	if err != nil {
		return nil, err
	}
	found, err := r.walk(ctx, head, scan.Options{NamesOnly: true})
	if err != nil {
		return nil, err
	}
	for _, e := range found.Entries[:min(max, len(found.Entries))] {
		paths = append(paths, e.Name)
	}
	return paths, nil
}
