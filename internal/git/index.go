package git

import (
	"bytes"
	"cmp"
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
	trees   map[string]plumbing.Hash // a folder, with a slash at its end, to its tree
}

// written is what the last snapshot wrote, so that it need not be read again:
// go-git takes as long for a large index as git for the whole commit.
type written struct {
	content
	commit Commit
	index  fs.FileInfo
}

// content lists what a commit holds, nothing for "".
func (r *Repo) content(commit string) (content, error) {
	if last := r.last.Load(); last != nil && last.commit.Hash == commit {
		return last.content, nil
	}
	return r.contentOf(commit, r.opts.Without)
}

// contentOf lists what a commit holds, and marks what is left out of a clone.
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
	maxTreePath = 8192      // beyond any path that a file system takes
	maxContent  = 2_000_000 // files and folders: a few trees can name more than there is room for
)

func (c *content) add(s storer.EncodedObjectStorer, hash plumbing.Hash, folder string) error {
	tree, err := object.GetTree(s, hash)
	c.trees[folder] = hash
	if err == nil && (len(c.trees)+len(c.entries) > maxContent || len(folder) > maxTreePath) {
		err = ErrTooLarge
	}
	if err != nil {
		return fmt.Errorf("tree %s: %w", hash, err)
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

// index reads what is tracked and when that was written. Without an index
// file what is committed is tracked, and nothing is taken for unchanged.
func (r *Repo) index(committed content) ([]*index.Entry, time.Time, error) {
	path := r.git.Join("index")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return committed.entries, time.Time{}, nil
	}
	if last := r.last.Load(); err == nil && last != nil && unchanged(last.index, info) {
		return last.entries, info.ModTime(), nil
	}
	const most = 1 << 30 // bytes: of ten million files
	data, err2 := hostfs.Read(r.git.Path, "index", most)
	if err = cmp.Or(err, err2); err != nil {
		return nil, time.Time{}, fmt.Errorf("cannot read git's index: %w", err)
	}
	entries, err := decodeIndex(data, r.opts.Clone)
	if err != nil {
		return nil, time.Time{}, gitdir.Foreign("cannot go by %q: %v: commit, stash or convert that; a damaged index is moved away, and git reset makes it anew", path, err)
	}
	return entries, info.ModTime(), nil
}

func unchanged(was, is fs.FileInfo) bool {
	return os.SameFile(was, is) && was.ModTime().Equal(is.ModTime()) && was.Size() == is.Size()
}

func decodeIndex(data []byte, clone bool) ([]*index.Entry, error) {
	if body := data[:max(0, len(data)-sha1.Size)]; bytes.HasSuffix(data, make([]byte, sha1.Size)) {
		sum := sha1.Sum(body) // git writes none with index.skipHash, and go-git wants one
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
			return nil, fmt.Errorf("%q is not merged yet", e.Name)
		case e.SkipWorktree && !clone:
			return nil, fmt.Errorf("%q is left out of the work tree: a sparse checkout is not supported", e.Name)
		case e.Mode == filemode.Submodule && !clone:
			return nil, fmt.Errorf("%q is a submodule, which is not supported", e.Name)
		case !slices.Contains(modes, e.Mode):
			return nil, fmt.Errorf("%q has mode %o, which is not supported", e.Name, e.Mode)
		case i > 0 && ix.Entries[i-1].Name >= e.Name:
			return nil, fmt.Errorf("entry %q is out of order", e.Name)
		}
	}
	return ix.Entries, nil
}

// encodeIndex is the index file of sorted entries.
func encodeIndex(entries []*index.Entry) ([]byte, error) {
	ix := index.Index{Version: 2, Entries: slices.Clone(entries)}
	if slices.ContainsFunc(entries, func(e *index.Entry) bool { return e.SkipWorktree }) {
		ix.Version = 3 // the first that can say so
	}
	var out bytes.Buffer
	err := index.NewEncoder(&out).Encode(&ix)
	return out.Bytes(), err
}

func inOrder(a, b *index.Entry) int { return strings.Compare(a.Name, b.Name) }

func byName(e *index.Entry, name string) int { return strings.Compare(e.Name, name) }

// entryAt is the one of sorted entries that has a path, nil for none.
func entryAt(entries []*index.Entry, path string) *index.Entry {
	if i, is := slices.BinarySearchFunc(entries, path, byName); is {
		return entries[i]
	}
	return nil
}

// below says whether sorted entries have one below a path.
func below(entries []*index.Entry, path string) bool {
	i, _ := slices.BinarySearchFunc(entries, path+"/", byName)
	return i < len(entries) && strings.HasPrefix(entries[i].Name, path+"/")
}

// same says whether both are there and alike, or neither is there.
func same(a, b *index.Entry) bool {
	return a == b || a != nil && b != nil && a.Hash == b.Hash && a.Mode == b.Mode
}

// differing are the paths that two sorted lists do not hold alike.
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

// without says whether a path is one of those that are left out, or below one.
func without(left []string, at string) bool {
	return slices.ContainsFunc(left, func(p string) bool { return at == p || strings.HasPrefix(at, p+"/") })
}
