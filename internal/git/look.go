package git

import (
	"context"

	"abl/internal/git/scan"
)

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
	found, err := r.walk(ctx, head, func(*scan.Options) {})
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
	found, err := r.walk(ctx, head, func(o *scan.Options) { o.NamesOnly = true })
	if err != nil {
		return nil, err
	}
	for _, e := range found.Entries[:min(max, len(found.Entries))] {
		paths = append(paths, e.Name)
	}
	return paths, nil
}
