package git

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
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

const maxMarks = 64 << 20 // bytes

// keep hands on what a walk found. What was new is remembered only when that is kept,
// a line for each: without the lines of the sweep before all are new.
func (r *Repo) keep(base []*index.Entry, w *scan.Result, keep func(state.Found) error) error {
	before, _ := hostfs.Read(filepath.Dir(r.opts.Cache), filepath.Base(r.opts.Cache), maxMarks)
	was, now := slices.Collect(strings.Lines(string(before))), []string{}
	control := control(r, base, w.Entries)
	for _, m := range w.Marks {
		line := fmt.Sprintf("%s %q\n", m.State, m.Path)
		now = append(now, line)
		if _, known := slices.BinarySearch(was, line); !known {
			control = append(control, m.Thing)
		}
	}
	if err := keep(state.Found{Cleared: w.Cleared, Control: state.InOrder(control), Ignored: w.Ignored}); err != nil {
		return err
	}
	slices.Sort(now)
	if r.opts.Cache == "" || slices.Equal(was, now) {
		return nil
	}
	if err := hostfs.Write(r.opts.Cache, []byte(strings.Join(now, "")), 0o600); err != nil {
		return fmt.Errorf("cannot remember what was found in %q: %w", r.dir, err)
	}
	return nil
}

// control lists what of the tree steers a person's tools and is new or changed
// since the commit before.
func control(r *Repo, base, entries []*index.Entry) (all []state.Thing) {
	for _, path := range differing(base, entries) {
		e, what := entryAt(entries, path), scan.SteersPath(path)
		if what == "" && r.hooks != "" && strings.HasPrefix(path, r.hooks) {
			what = scan.Hook
		}
		if e != nil && what != "" {
			runs := scan.Runs(what) || e.Mode == filemode.Executable
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
	base, found, _, err := trees(ctx, r, scan.Options{})
	if err == nil && commit != "" {
		var then Commit
		if then, err = r.commit(r.store(), commit); err == nil {
			base, err = r.base(then)
		}
	}
	if err != nil {
		return nil, err
	}
	paths := differing(base.entries, found.Entries)
	return paths[:min(maxDiffers, len(paths))], nil
}

// Tree is what would be committed now: of each path its mode and the hash of its content.
// Folders that git ignores have a slash behind, and nothing.
func (r *Repo) Tree(ctx context.Context) (map[string]string, error) {
	_, _, now, err := trees(ctx, r, scan.Options{})
	return now, err
}

// trees reads what is committed, what stands in the directory, and of that the Tree.
func trees(ctx context.Context, r *Repo, o scan.Options) (base content, found *scan.Result, now map[string]string, err error) {
	head, _, err := r.Head()
	if err == nil {
		base, err = r.base(head)
	}
	if err == nil {
		found, err = r.walk(ctx, head, o)
	}
	if err != nil {
		return base, nil, nil, err
	}
	now = contents(found.Entries)
	for _, folder := range found.Out {
		now[folder+"/"] = ""
	}
	return base, found, now, nil
}

func contents(entries []*index.Entry) map[string]string {
	all := make(map[string]string, len(entries))
	for _, e := range entries {
		all[e.Name] = e.Mode.String() + " " + e.Hash.String()
	}
	return all
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
