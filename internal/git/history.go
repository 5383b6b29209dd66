package git

import (
	"crypto/sha256"
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
		return "", gitdir.Foreign("branch %q of %q has no commit, but the repository has a history: switch to the branch that abl shall continue, or find the lost one with git reflog", r.branch, r.dir)
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
