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
	base, found, err := r.look(ctx, scan.Options{Sweep: true})
	if err != nil {
		return err
	}
	return r.keep(base.entries, found, keep)
}

const maxMarks = 64 << 20 // bytes

// keep hands on what a walk found. What was new is remembered only when that is kept,
// a line for each: without the lines of the sweep before all are new.
func (r *Repo) keep(base []*index.Entry, w *scan.Result, keep func(state.Found) error) error {
	before, _ := hostfs.Read(filepath.Dir(r.opts.Cache), filepath.Base(r.opts.Cache), maxMarks)
	was, now := slices.Collect(strings.Lines(string(before))), []string{}
	control := r.control(base, w.Entries)
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
func (r *Repo) control(base, entries []*index.Entry) (all []state.Thing) {
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
	base, found, err := r.look(ctx, scan.Options{})
	if err == nil && commit != "" {
		base, err = r.content(commit)
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
	_, found, err := r.look(ctx, scan.Options{})
	if err != nil {
		return nil, err
	}
	return treeOf(found), nil
}

func treeOf(found *scan.Result) map[string]string {
	all := contents(found.Entries)
	for _, folder := range found.Out {
		all[folder+"/"] = ""
	}
	return all
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
	_, found, err := r.look(ctx, scan.Options{NamesOnly: true})
	if err != nil {
		return nil, err
	}
	for _, e := range found.Entries[:min(max, len(found.Entries))] {
		paths = append(paths, e.Name)
	}
	return paths, nil
}
