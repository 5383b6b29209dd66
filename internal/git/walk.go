package git

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/internal/git/scan"
	"abl/internal/hostfs"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// walk is the result of a walk over a workspace, beside the last commit.
type walk struct {
	*scan.Result
	*Repo
	base    content // of the last commit
	objects *spool  // for new objects, nil to store none
}

// look reads the last commit and walks the directory with the options o. objects, if not nil,
// receives the new objects.
func (r *Repo) look(ctx context.Context, o scan.Options, objects *spool) (*walk, error) {
	if objects != nil {
		o.Put = objects.add
	}
	base, err := r.complete(&o)
	w := &walk{Repo: r, base: base, objects: objects}
	if err != nil {
		return nil, err
	}
	// Omitted paths and submodules stay as committed, with everything below them, whatever the
	// directory contains instead.
	paths := slices.Clone(r.opts.Without)
	for _, e := range o.Known {
		if e.Mode == filemode.Submodule {
			paths = append(paths, e.Name)
		}
	}
	away := func(e *index.Entry) bool { return without(paths, e.Name) }
	kept := slices.DeleteFunc(slices.Clone(o.Known), func(e *index.Entry) bool { return !away(e) })
	modules := r.moduleFiles(kept)
	o.Known = append(slices.DeleteFunc(slices.Clone(o.Known), away), modules...)
	slices.SortFunc(o.Known, inOrder)
	if w.Result, err = scan.Walk(ctx, o); err != nil {
		return nil, err
	}
	if !o.Names {
		read := *w.Result
		r.read.Store(&read)
	}
	all := w.Entries
	w.Entries = slices.DeleteFunc(slices.Clone(w.Entries), func(e *index.Entry) bool {
		out := away(e) || below(kept, e.Name)
		if out && !same(e, entryAt(modules, e.Name)) && len(w.Ignores) < maxDiffers {
			w.Ignores = append(w.Ignores, Skipped{Path: e.Name, Why: w.whyAway(e.Name)})
		}
		return out
	})
	if !o.Names {
		w.Ignores = append(w.Ignores, removed(modules, all)...)
	}
	w.Entries = append(w.Entries, kept...)
	slices.SortFunc(w.Entries, inOrder)
	if !o.Names {
		err = w.point(ctx)
	}
	return w, err
}

// complete sets the options that follow from the last commit, the index and the repository's
// settings. It returns the content of the last commit.
func (r *Repo) complete(o *scan.Options) (base content, err error) {
	head, err := r.tip()
	if err == nil {
		base, err = r.content(head)
	}
	if err == nil {
		o.Known, o.Written, err = r.index(base)
	}
	if o.Read = r.read.Load(); o.Reread {
		o.Written, o.Read = time.Time{}, nil
	}
	if err != nil {
		return base, err
	}
	o.Exclude, _ = hostfs.Read(r.git.Path, "info/exclude", maxSteering) // git ignores an unreadable file, too
	o.Root, o.NoExec = r.dir, r.noExec
	o.SizeOf = func(h plumbing.Hash) (int64, error) {
		f, size, err := r.git.Store().File(h)
		if err == nil {
			f.Close()
		}
		return size, err
	}
	o.MaxFile = cmp.Or(r.opts.MaxFile, 50<<20)
	return base, nil
}

// moduleFiles returns the files of the submodules among sorted entries.
func (r *repository) moduleFiles(entries []*index.Entry) []*index.Entry {
	isModule := func(e *index.Entry) bool { return e.Mode == filemode.Submodule }
	only := slices.DeleteFunc(slices.Clone(entries), func(e *index.Entry) bool {
		names, err := hostfs.Names(r.dir, e.Name, maxInside)
		return !isModule(e) || err == nil && len(names) == 0 // older versions of abl left it empty
	})
	return slices.DeleteFunc(slices.Clone(r.withModules(only)), isModule)
}

// removed lists the missing files of submodules, up to maxDiffers.
func removed(modules, found []*index.Entry) (all []Skipped) {
	for _, e := range modules {
		if entryAt(found, e.Name) == nil && len(all) < maxDiffers {
			all = append(all, Skipped{Path: e.Name, Why: "removed inside a submodule: commits of this repository cannot " +
				"contain that"})
		}
	}
	return all
}

// whyAway returns the reason why no commit can contain a path in a submodule or an omitted one.
func (w *walk) whyAway(path string) string {
	if without(w.opts.Without, path) {
		return "excluded from the clone (adopt.exclude)"
	}
	return "inside a submodule: commits of this repository cannot contain it"
}

// absent lists paths of the directory that its commit does not contain, with the reasons.
func (w *walk) absent() (all []state.Thing) {
	for _, s := range slices.Concat(w.Skipped, w.Ignores) {
		all = append(all, state.Thing{Path: s.Path, What: s.Why})
	}
	for _, t := range w.Cleared {
		if strings.HasSuffix(t.What, "removed") {
			all = append(all, t)
		}
	}
	return state.InOrder(all)
}

const maxMarks = 64 << 20 // bytes

// report passes the findings of a walk to keep. Marks that the cache lists are not new. report
// updates the cache, one line per mark, after the findings were saved.
func (w *walk) report(keep func(state.Found) error) error {
	before, _ := hostfs.Read(filepath.Dir(w.opts.Cache), filepath.Base(w.opts.Cache), maxMarks)
	was, now := slices.Collect(strings.Lines(string(before))), []string{}
	control := w.control()
	for _, m := range w.Marks {
		line := fmt.Sprintf("%s %q\n", m.State, m.Path)
		now = append(now, line)
		if _, known := slices.BinarySearch(was, line); !known {
			control = append(control, m.Thing)
		}
	}
	if err := keep(state.Found{
		Cleared: w.Cleared,
		Control: state.InOrder(control),
		Ignored: w.Ignored,
		Absent:  w.absent(),
	}); err != nil {
		return err
	}
	slices.Sort(now)
	if w.opts.Cache == "" || slices.Equal(was, now) {
		return nil
	}
	if err := hostfs.Write(w.opts.Cache, []byte(strings.Join(now, "")), 0o600); err != nil {
		return fmt.Errorf("cannot save the findings of %q: %w", w.dir, err)
	}
	return nil
}

// control lists new and changed files that steer the user's tools.
func (w *walk) control() (all []state.Thing) {
	for _, path := range differing(w.base.entries, w.Entries) {
		e, what := entryAt(w.Entries, path), scan.SteersPath(path)
		if what == "" && w.hooks != "" && strings.HasPrefix(path, w.hooks) {
			what = scan.Hook
		}
		if e != nil && what != "" {
			runs := scan.Runs(what) || e.Mode == filemode.Executable
			all = append(all, state.Thing{Path: path, What: what, Runs: runs})
		}
	}
	return all
}
