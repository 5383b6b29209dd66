package git

import (
	"context"
	"errors"
	"fmt"

	"abl/internal/git/gitdir"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Tag makes a lightweight tag, crash-safely. A tag of that name at the same
// commit stays; at another commit it is kept under name.1, name.2 and so on.
func (r *Repo) Tag(ctx context.Context, name, commit string) error {
	if !gitdir.ValidRef(name) || !gitdir.ValidHash(commit) {
		return fmt.Errorf("cannot make tag %q at %q: one of them is not valid", name, commit)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.commit(r.store(), commit); err != nil {
		return fmt.Errorf("cannot make tag %q: %w", name, err)
	}
	old, err := r.git.Ref("refs/tags/" + name)
	if err != nil {
		return err
	}
	if old != "" {
		if peeled, err := r.peel(old); err != nil || peeled == commit {
			return err
		}
		if err := r.keepTag(ctx, name, old); err != nil {
			return err
		}
	}
	return r.git.Move(ctx, "refs/tags/"+name, old, commit, r.opts.LockWait)
}

// keepTag gives the tag's present value the next free number, unless an
// interrupted run has done so.
func (r *Repo) keepTag(ctx context.Context, name, value string) error {
	for n := 1; ; n++ {
		ref := fmt.Sprintf("refs/tags/%s.%d", name, n)
		kept, err := r.git.Ref(ref)
		if err != nil || kept == value {
			return err
		}
		if kept == "" {
			return r.git.Move(ctx, ref, "", value, r.opts.LockWait)
		}
	}
}

// TagCommit is the commit that a tag names; false when there is no such tag.
func (r *Repo) TagCommit(name string) (string, bool, error) {
	if !gitdir.ValidRef(name) {
		return "", false, fmt.Errorf("cannot look up tag %q: git allows no such name", name)
	}
	if err := r.there(); err != nil {
		return "", false, err
	}
	value, err := r.git.Ref("refs/tags/" + name)
	if err != nil || value == "" {
		return "", false, err
	}
	commit, err := r.peel(value)
	return commit, err == nil, err
}

// peel follows an annotated tag to what it names.
func (r *Repo) peel(value string) (string, error) {
	t, err := object.GetTag(r.store(), plumbing.NewHash(value))
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound):
		return value, nil // it is no tag but a commit
	case err != nil:
		return "", fmt.Errorf("cannot read tag %s of %q: %w", value, r.dir, err)
	}
	return t.Target.String(), nil
}
