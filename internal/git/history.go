package git

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"abl/internal/git/gitdir"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// store opens the objects. A store keeps the list of packs that it saw first,
// so each operation opens its own.
func (r *Repo) store() *filesystem.Storage {
	return filesystem.NewStorage(r.git.FS(), cache.NewObjectLRUDefault())
}

// tip is the commit that the branch names, "" when it has none. A branch
// without a commit in a repository that has or had others is not a beginning.
func (r *Repo) tip() (string, error) {
	if err := r.there(); err != nil {
		return "", err
	}
	hash, err := r.git.Ref(r.ref())
	if err != nil || hash != "" {
		return hash, err
	}
	born, err := r.git.EverBorn()
	if err != nil {
		return "", fmt.Errorf("cannot look for the history of %q: %w", r.dir, err)
	}
	if born {
		return "", gitdir.Foreign("branch %q of %q has no commit, but the repository has a history: switch to the branch that abl shall continue, or find the lost one with git fsck --lost-found", r.branch, r.dir)
	}
	return "", nil
}

// Head is the commit at the tip of the branch; false when there is none yet.
func (r *Repo) Head() (Commit, bool, error) {
	hash, err := r.tip()
	if err != nil || hash == "" {
		return Commit{}, false, err
	}
	if last := r.last.Load(); last != nil && last.commit.Hash == hash {
		return last.commit, true, nil
	}
	c, err := r.commit(r.store(), hash)
	return c, err == nil, err
}

func (r *Repo) commit(s storer.EncodedObjectStorer, hash string) (Commit, error) {
	c, err := object.GetCommit(s, plumbing.NewHash(hash))
	if err != nil {
		if gone := r.there(); gone != nil {
			return Commit{}, gone
		}
		return Commit{}, fmt.Errorf("cannot read commit %s of %q: %w", hash, r.dir, err)
	}
	return readCommit(c), nil
}

func readCommit(c *object.Commit) Commit {
	read := Commit{Hash: c.Hash.String(), Tree: c.TreeHash.String(), Call: callOf(c.Message), When: c.Committer.When}
	if len(c.ParentHashes) > 0 {
		read.Parent = c.ParentHashes[0].String()
	}
	return read
}

// TreeKey stands for all that a commit holds but the named files and folders at
// its top: two commits have the same key when they differ in those alone.
func (r *Repo) TreeKey(commit string, without ...string) (string, error) {
	s := r.store()
	c, err := r.commit(s, commit)
	if err != nil {
		return "", err
	}
	tree, err := object.GetTree(s, plumbing.NewHash(c.Tree))
	if err != nil {
		return "", fmt.Errorf("cannot read tree %s of %q: %w", c.Tree, r.dir, err)
	}
	tree.Entries = slices.DeleteFunc(tree.Entries, func(e object.TreeEntry) bool { return slices.Contains(without, e.Name) })
	var o plumbing.MemoryObject
	if err := tree.Encode(&o); err != nil {
		return "", err
	}
	encoded, _ := o.Reader() // of what is in memory
	data, err := io.ReadAll(encoded)
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

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
// tag is an annotated one, be it of another tag; "" when there is none.
func (r *Repo) tag(name string) (value, commit string, err error) {
	if !gitdir.ValidRef(name) {
		return "", "", fmt.Errorf("cannot read tag %q: git allows no such name", name)
	}
	value, err = r.git.Ref("refs/tags/" + name)
	if err != nil || value == "" {
		return "", "", err
	}
	s := r.store()
	for commit = value; ; {
		t, err := object.GetTag(s, plumbing.NewHash(commit))
		if errors.Is(err, plumbing.ErrObjectNotFound) {
			return value, commit, nil
		}
		if err != nil {
			return "", "", fmt.Errorf("cannot read tag %s of %q: %w", commit, r.dir, err)
		}
		commit = t.Target.String()
	}
}
