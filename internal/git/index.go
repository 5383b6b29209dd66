package git

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// content is what a commit holds, its files sorted. As index entries they may know stat data.
type content struct {
	entries []*index.Entry
	trees   map[string]plumbing.Hash // directory with a trailing slash to its tree
}

// written is the result of the last snapshot. It spares reading a large index, for which go-git
// needs as long as git for the whole commit.
type written struct {
	content
	commit Commit
	index  fs.FileInfo
}

// content is the content of a commit. The entries are sorted and may have stat data of the index.
func (r *Repo) content(commit string) (content, error) {
	if last := r.last.Load(); last != nil && last.commit.Hash == commit {
		return last.content, nil
	}
	return r.contentOf(commit, r.opts.Without)
}

// contentOf returns the content of a commit and marks the paths that the clone omits.
func (r *repository) contentOf(commit string, left []string) (content, error) {
	all := content{trees: map[string]plumbing.Hash{}}
	if commit == "" {
		return all, nil
	}
	s := r.git.Store()
	c, err := r.commit(s, commit)
	if err != nil {
		return all, err
	}
	if err := all.add(s, c.TreeHash, ""); err != nil {
		return all, fmt.Errorf("cannot read commit %s of %q: %w", commit, r.dir, err)
	}
	for _, e := range all.entries {
		e.SkipWorktree = without(left, e.Name)
	}
	return all, nil
}

const (
	maxTreePath = 8192      // more than any file system allows
	maxContent  = 2_000_000 // entries: a few nested trees can list more than fits in memory
)

// add adds the entries of a tree and of the trees in it. folder is the tree's path, "" for the root,
// otherwise with a trailing slash.
func (c *content) add(s storer.EncodedObjectStorer, hash plumbing.Hash, folder string) error {
	tree, err := object.GetTree(s, hash)
	if err != nil {
		return fmt.Errorf("tree %s: %w", hash, err)
	}
	c.trees[folder] = hash
	if len(c.trees)+len(c.entries) > maxContent || len(folder) > maxTreePath {
		return fmt.Errorf("tree %s: %w", hash, ErrTooLarge)
	}
	for _, e := range tree.Entries {
		path := folder + e.Name
		switch {
		case strings.Contains(e.Name, "/"):
			return fmt.Errorf("tree %s: %q is not a name", hash, e.Name)
		case e.Mode == filemode.Dir:
			if err := c.add(s, e.Hash, path+"/"); err != nil {
				return err
			}
		default:
			c.entries = append(c.entries, &index.Entry{Name: path, Mode: e.Mode, Hash: e.Hash})
		}
	}
	return nil
}

// index returns the tracked entries and the time of the index. Without an index the entries are
// those of the commit, and none counts as unchanged.
func (r *Repo) index(committed content) ([]*index.Entry, time.Time, error) {
	path := r.git.Join("index")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return committed.entries, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("cannot read git's index: %w", err)
	}
	if last := r.last.Load(); last != nil && unchanged(last.index, info) {
		return last.entries, info.ModTime(), nil
	}
	const maxIndex = 1 << 30 // bytes: of ten million files
	data, err := hostfs.Read(r.git.Path, "index", maxIndex)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("cannot read git's index: %w", err)
	}
	entries, err := decodeIndex(data, r.opts.Clone)
	if err != nil {
		return nil, time.Time{}, gitdir.Foreign("cannot use %q: %v: commit, stash or convert that; if the index is "+
			"damaged, move it away and run git reset", path, err)
	}
	return entries, info.ModTime(), nil
}

func unchanged(was, is fs.FileInfo) bool {
	return os.SameFile(was, is) && was.ModTime().Equal(is.ModTime()) && was.Size() == is.Size()
}

// decodeIndex returns the entries of an index. It refuses unresolved conflicts and, outside of a clone,
// sparse checkouts and submodules.
func decodeIndex(data []byte, clone bool) ([]*index.Entry, error) {
	if body := data[:max(0, len(data)-sha1.Size)]; bytes.HasSuffix(data, make([]byte, sha1.Size)) {
		sum := sha1.Sum(body) // with index.skipHash git writes zeros, but go-git checks the sum
		data = slices.Concat(body, sum[:])
	}
	var ix index.Index
	if err := index.NewDecoder(bytes.NewReader(data)).Decode(&ix); err != nil {
		return nil, err
	}
	modes := []filemode.FileMode{filemode.Regular, filemode.Executable, filemode.Symlink, filemode.Submodule}
	for i, e := range ix.Entries {
		switch {
		case e.Stage != 0:
			return nil, fmt.Errorf("%q has unresolved conflicts", e.Name)
		case e.SkipWorktree && !clone:
			return nil, fmt.Errorf("%q is not in the work tree: sparse checkouts are not supported", e.Name)
		case e.Mode == filemode.Submodule && !clone:
			return nil, fmt.Errorf("%q is a submodule: submodules are not supported", e.Name)
		case !slices.Contains(modes, e.Mode):
			return nil, fmt.Errorf("%q has mode %o, which is not supported", e.Name, e.Mode)
		case i > 0 && ix.Entries[i-1].Name >= e.Name:
			return nil, fmt.Errorf("entry %q is out of order", e.Name)
		}
	}
	return ix.Entries, nil
}

// encodeIndex returns the index file of sorted entries.
func encodeIndex(entries []*index.Entry) ([]byte, error) {
	ix := index.Index{Version: 2, Entries: slices.Clone(entries)}
	if slices.ContainsFunc(entries, func(e *index.Entry) bool { return e.SkipWorktree }) {
		ix.Version = 3 // the first version with skip-worktree
	}
	var out bytes.Buffer
	err := index.NewEncoder(&out).Encode(&ix)
	return out.Bytes(), err
}

func inOrder(a, b *index.Entry) int { return strings.Compare(a.Name, b.Name) }

func byName(e *index.Entry, name string) int { return strings.Compare(e.Name, name) }

// entryAt returns the entry with a path from sorted entries, nil if there is no such entry.
func entryAt(entries []*index.Entry, path string) *index.Entry {
	if i, is := slices.BinarySearchFunc(entries, path, byName); is {
		return entries[i]
	}
	return nil
}

// isFile reports whether an entry is a regular file.
func isFile(e *index.Entry) bool {
	return e != nil && (e.Mode == filemode.Regular || e.Mode == filemode.Executable)
}

// below reports whether sorted entries have one below a path.
func below(entries []*index.Entry, path string) bool {
	i, _ := slices.BinarySearchFunc(entries, path+"/", byName)
	return i < len(entries) && strings.HasPrefix(entries[i].Name, path+"/")
}

// same reports whether both entries are equal or both are missing.
func same(a, b *index.Entry) bool {
	return a == b || a != nil && b != nil && a.Hash == b.Hash && a.Mode == b.Mode
}

// differing returns the paths that differ between two sorted lists.
func differing(a, b []*index.Entry) (paths []string) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			paths, a = append(paths, a[0].Name), a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			paths, b = append(paths, b[0].Name), b[1:]
		default:
			if !same(a[0], b[0]) {
				paths = append(paths, a[0].Name)
			}
			a, b = a[1:], b[1:]
		}
	}
	return paths
}

// without reports whether a path is in left or below one of its paths.
func without(left []string, at string) bool {
	return slices.ContainsFunc(left, func(p string) bool { return at == p || strings.HasPrefix(at, p+"/") })
}

// names returns up to most paths that are neither in left nor below one of its paths.
func names(entries []*index.Entry, left []string, most int) (paths []string) {
	for _, e := range entries {
		if len(paths) < most && !without(left, e.Name) {
			paths = append(paths, e.Name)
		}
	}
	return paths
}
