package workspace

import (
	"context"

	"abl/orchestrator/workspace/scan"
)

// maxDiffers is how many differing paths are named.
const maxDiffers = 100

// Differs lists paths, at most 100, whose content no longer equals the tree of
// HEAD: changed, deleted, and new unless ignored. It writes nothing.
func (r *Repo) Differs(ctx context.Context) ([]string, error) { return r.DiffersFrom(ctx, "") }

// DiffersFrom is Differs against the tree of a commit, "" for HEAD.
func (r *Repo) DiffersFrom(ctx context.Context, commit string) ([]string, error) {
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
	o, err := r.walk(head)
	if err != nil {
		return nil, err
	}
	found, err := scan.Walk(ctx, o)
	if err != nil {
		return nil, err
	}
	var paths []string
	differing(base.entries, found.Entries, func(path string) {
		if len(paths) < maxDiffers {
			paths = append(paths, path)
		}
	})
	return paths, nil
}

// Files lists what stands in the directory and is tracked or not ignored,
// sorted, at most max paths, and counts all of it.
func (r *Repo) Files(ctx context.Context, max int) (paths []string, total int, err error) {
	head, _, err := r.Head()
	if err != nil {
		return nil, 0, err
	}
	o, err := r.walk(head)
	if err != nil {
		return nil, 0, err
	}
	o.NamesOnly = true
	found, err := scan.Walk(ctx, o)
	if err != nil {
		return nil, 0, err
	}
	paths = make([]string, 0, min(max, len(found.Entries)))
	for _, e := range found.Entries[:cap(paths)] {
		paths = append(paths, e.Name)
	}
	return paths, len(found.Entries), nil
}
