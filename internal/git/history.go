package git

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"abl/internal/git/gitdir"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// repository is the common part of a workspace's and a user's repository.
type repository struct {
	dir string     // the work tree
	git gitdir.Dir // the directory with objects and refs
}

// Ref returns the commit of a ref, "" if it does not exist.
func (r *repository) Ref(name string) (string, error) { return r.git.Ref(name) }

// Contains reports whether ancestor is commit or one of its ancestors. It stops at the end of a
// shallow history.
func (r *repository) Contains(commit, ancestor string) (bool, error) {
	s, to, seen := r.git.Store(), plumbing.NewHash(ancestor), map[plumbing.Hash]bool{}
	ends, err := s.Shallow()
	for todo := []plumbing.Hash{plumbing.NewHash(commit)}; err == nil && len(todo) > 0; {
		hash := todo[0]
		todo = todo[1:]
		if seen[hash] {
			continue
		}
		c, cerr := object.GetCommit(s, hash)
		if cerr != nil {
			return false, fmt.Errorf("cannot read commit %s: %w", hash, cerr)
		}
		seen[hash] = true
		if hash == to {
			return true, nil
		}
		if !slices.Contains(ends, hash) {
			todo = append(todo, c.ParentHashes...)
		}
	}
	return false, err
}

// commit reads a commit. A missing repository has its own error.
func (r *repository) commit(s storer.EncodedObjectStorer, hash string) (*object.Commit, error) {
	c, err := object.GetCommit(s, plumbing.NewHash(hash))
	if _, gone := os.Lstat(r.git.Path); err != nil && errors.Is(gone, fs.ErrNotExist) {
		return nil, away(r.git.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read commit %s of %q: %w", hash, r.dir, err)
	}
	return c, nil
}

// Commit is the part of a commit that abl uses.
type Commit struct {
	Hash, Tree string // 40 hexadecimal digits
	Parent     string // the first parent, "" for none
	Call       string // see Message
	When       time.Time
}

func readCommit(c *object.Commit) Commit {
	read := Commit{
		Hash: c.Hash.String(),
		Tree: c.TreeHash.String(),
		Call: callOf(c.Message),
		When: c.Committer.When,
	}
	if len(c.ParentHashes) > 0 {
		read.Parent = c.ParentHashes[0].String()
	}
	return read
}

// tip returns the commit of the branch, "" if it has none. It fails if the branch has no commit
// although the repository has a history.
func (r *Repo) tip() (string, error) {
	if err := r.there(); err != nil {
		return "", err
	}
	hash, err := r.git.Ref(r.ref())
	if err != nil || hash != "" {
		return hash, err
	}
	has, err := born(r.git)
	if err == nil && has {
		err = gitdir.Foreign("branch %q of %q has no commit, but the repository has a history: switch to the branch "+
			"that abl should continue, or find the lost one with git fsck --lost-found", r.branch, r.dir)
	}
	return "", err
}

// Head returns the commit at the tip of the branch. It returns false if there is no commit yet.
func (r *Repo) Head() (Commit, bool, error) {
	hash, err := r.tip()
	if err != nil || hash == "" {
		return Commit{}, false, err
	}
	if last := r.last.Load(); last != nil && last.commit.Hash == hash {
		return last.commit, true, nil
	}
	c, err := r.commit(r.git.Store(), hash)
	if err != nil {
		return Commit{}, false, err
	}
	return readCommit(c), true, nil
}

// TreeKey returns a key for the content of a commit without the named top-level entries. Commits
// that differ only in those entries have the same key.
func (r *repository) TreeKey(commit string, without ...string) (string, error) {
	c, err := r.commit(r.git.Store(), commit)
	if err != nil {
		return "", err
	}
	tree, err := c.Tree()
	if err != nil {
		return "", fmt.Errorf("cannot read tree %s of %q: %w", c.TreeHash, r.dir, err)
	}
	key := sha256.New() // of the encoded tree
	for _, e := range tree.Entries {
		if !slices.Contains(without, e.Name) {
			fmt.Fprintf(key, "%o %s\x00%s", e.Mode, e.Name, e.Hash[:])
		}
	}
	return fmt.Sprintf("%x", key.Sum(nil)), nil
}

// Tag durably creates a lightweight tag. An existing tag at the same commit stays. If it is at
// another commit, Tag keeps that under name.1, name.2 and so on.
func (r *Repo) Tag(ctx context.Context, name, commit string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.commit(r.git.Store(), commit); err != nil {
		return fmt.Errorf("cannot create tag %q: %w", name, err)
	}
	value, there, err := r.TagCommit(name)
	if err != nil || value == commit {
		return err
	}
	if there {
		if err := r.keepTag(ctx, name, value); err != nil {
			return err
		}
	}
	return r.git.Move(ctx, "refs/tags/"+name, value, commit)
}

// keepTag copies the tag to the next free number, unless an interrupted run has done so.
func (r *Repo) keepTag(ctx context.Context, name, value string) error {
	for n := 1; ; n++ {
		ref := fmt.Sprintf("refs/tags/%s.%d", name, n)
		kept, err := r.git.Ref(ref)
		if err != nil || kept == value {
			return err
		}
		if kept == "" {
			return r.git.Move(ctx, ref, "", value)
		}
	}
}

// TagCommit returns the commit of a tag. It returns false if there is no such tag.
func (r *Repo) TagCommit(name string) (string, bool, error) {
	if !gitdir.ValidRef(name) {
		return "", false, fmt.Errorf("cannot read tag %q: invalid name", name)
	}
	if err := r.there(); err != nil {
		return "", false, err
	}
	commit, err := r.git.Ref("refs/tags/" + name)
	return commit, commit != "", err
}

// Change is a path that differs between two commits.
type Change struct {
	Path string
	Note string // changed mode, "" if it is the same

	store    *gitdir.Store
	from, to *index.Entry
}

// Texts is the text of a path in two commits.
type Texts struct {
	Old, New *string // nil if there is no file
	Note     string  // reason why there is no text
}

// Changes calls each for every path that differs between two commits, in order. from may be "" for
// an empty commit. It reads no file content.
func Changes(ctx context.Context, r *Repo, from, to string, each func(Change) error) error {
	was, err := r.content(from)
	if err != nil {
		return err
	}
	is, err := r.content(to)
	if err != nil {
		return err
	}
	s := r.git.Store()
	for _, path := range differing(was.entries, is.entries) {
		c := Change{
			Path:  path,
			store: s,
			from:  entryAt(was.entries, path),
			to:    entryAt(is.entries, path),
		}
		if c.from != nil && c.to != nil && c.from.Mode != c.to.Mode {
			c.Note = fmt.Sprintf("mode %o, was %o", c.to.Mode, c.from.Mode)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := each(c); err != nil {
			return err
		}
	}
	return nil
}

// Size returns the number of bytes that Texts reads.
func (c Change) Size() (bytes int64) {
	for _, e := range []*index.Entry{c.from, c.to} {
		if e == nil || e.Mode == filemode.Submodule {
			continue
		}
		if size, err := c.store.EncodedObjectSize(e.Hash); err == nil && size <= maxText {
			bytes += size
		}
	}
	return bytes
}

// Texts reads both texts.
func (c Change) Texts() (t Texts, err error) {
	for side, e := range map[**string]*index.Entry{&t.Old: c.from, &t.New: c.to} {
		if e == nil {
			continue
		}
		text := e.Hash.String() + "\n"
		if e.Mode != filemode.Submodule {
			text, err = textOf(c.store, e.Hash)
		}
		switch {
		case errors.Is(err, plumbing.ErrObjectNotFound):
			return Texts{Note: "omitted from the clone"}, nil
		case errors.Is(err, ErrConflict):
			return Texts{Note: fmt.Sprintf("not text, or larger than %d MiB", maxText>>20)}, nil
		case err != nil:
			return t, err
		}
		*side = &text
	}
	return t, nil
}

// Before returns the parent of the first commit in a run of commits that ends at tip: the commits
// of calls with this prefix, and the user's commits between them. It returns "" if the run begins
// the history. It does not look beyond start, unless start is "".
func Before(ctx context.Context, r *Repo, tip, prefix, start string) (before string, err error) {
	s := r.git.Store()
	before = tip
	for at := tip; at != "" && at != start; {
		full, err := r.commit(s, at)
		if errors.Is(err, plumbing.ErrObjectNotFound) { // the end of a shallow clone
			break
		}
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			return "", err
		}
		c := readCommit(full)
		if !strings.HasPrefix(c.Call, prefix) && c.Call != "" {
			break
		}
		if c.Call != "" {
			before = c.Parent
		}
		at = c.Parent
	}
	return before, nil
}
