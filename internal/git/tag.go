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
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.commit(r.store(), commit); err != nil {
		return fmt.Errorf("cannot make tag %q: %w", name, err)
	}
	value, names, err := r.tag(name)
	if err != nil || names == commit {
		return err
	}
	if value != "" {
		if err := r.keepTag(ctx, name, value); err != nil {
			return err
		}
	}
	return r.git.Move(ctx, "refs/tags/"+name, value, commit, r.opts.LockWait)
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
	if err := r.there(); err != nil {
		return "", false, err
	}
	_, commit, err := r.tag(name)
	return commit, commit != "", err
}

// tag is what the ref of a tag holds, and the commit that it names: another when the
// tag is an annotated one, "" when there is none.
func (r *Repo) tag(name string) (value, commit string, err error) {
	if !gitdir.ValidRef(name) {
		return "", "", fmt.Errorf("cannot read tag %q: git allows no such name", name)
	}
	value, err = r.git.Ref("refs/tags/" + name)
	if err != nil || value == "" {
		return "", "", err
	}
	t, err := object.GetTag(r.store(), plumbing.NewHash(value))
	switch {
	case errors.Is(err, plumbing.ErrObjectNotFound):
		return value, value, nil
	case err != nil:
		return "", "", fmt.Errorf("cannot read tag %s of %q: %w", value, r.dir, err)
	}
	return value, t.Target.String(), nil
}
