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

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// content is what a tree holds. As index entries its files may know stat data.
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

// index reads what is tracked and when that was written. Without an index
// file what HEAD holds is tracked, and nothing is taken for unchanged.
func (r *Repo) index(head Commit) ([]*index.Entry, time.Time, error) {
	path := r.git.Join("index")
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		base, err := r.base(head)
		return base.entries, time.Time{}, err
	}
	if last := r.last.Load(); err == nil && last != nil && os.SameFile(last.index, info) && last.index.ModTime().Equal(info.ModTime()) && last.index.Size() == info.Size() {
		return last.entries, info.ModTime(), nil
	}
	data, err2 := os.ReadFile(path)
	if err = cmp.Or(err, err2); err != nil {
		return nil, time.Time{}, fmt.Errorf("cannot read git's index: %w", err)
	}
	entries, err := decodeIndex(data, r.opts.Clone)
	if errors.Is(err, errUnsupported) {
		return nil, time.Time{}, gitdir.Foreign("%q: %v; commit, stash or convert it so that git status shows an ordinary state", r.dir, err)
	}
	if err != nil {
		return nil, time.Time{}, gitdir.Foreign("%q: cannot read the index: %v; what was staged is lost with it: move %q away and run git reset", r.dir, err, path)
	}
	return entries, info.ModTime(), nil
}

// errUnsupported marks an index that is sound but says what abl cannot keep.
var errUnsupported = errors.New("not supported")

func decodeIndex(data []byte, clone bool) ([]*index.Entry, error) {
	if body := data[:max(0, len(data)-sha1.Size)]; bytes.HasSuffix(data, make([]byte, sha1.Size)) {
		sum := sha1.Sum(body) // git writes none with index.skipHash, and go-git wants one
		data = slices.Concat(body, sum[:])
	}
	var ix index.Index
	err := index.NewDecoder(bytes.NewReader(data)).Decode(&ix)
	if errors.Is(err, index.ErrUnsupportedVersion) || errors.Is(err, index.ErrUnknownExtension) {
		return nil, fmt.Errorf("the index: %w: %w", err, errUnsupported)
	}
	if err != nil {
		return nil, err
	}
	for i, e := range ix.Entries {
		switch {
		case e.Stage != 0:
			return nil, fmt.Errorf("%q is not merged yet: %w", e.Name, errUnsupported)
		case e.SkipWorktree && !clone:
			return nil, fmt.Errorf("a sparse checkout (%q is left out of the work tree): %w", e.Name, errUnsupported)
		case e.Mode == filemode.Submodule && !clone:
			return nil, fmt.Errorf("%q is a submodule: %w", e.Name, errUnsupported)
		case e.Mode == filemode.Submodule:
		case e.Mode != filemode.Regular && e.Mode != filemode.Executable && e.Mode != filemode.Symlink:
			return nil, fmt.Errorf("%q has mode %o: %w", e.Name, e.Mode, errUnsupported)
		case i > 0 && ix.Entries[i-1].Name >= e.Name:
			return nil, fmt.Errorf("entry %q is out of order", e.Name)
		}
	}
	return ix.Entries, nil
}

// base lists what a commit holds.
func (r *Repo) base(c Commit) (content, error) {
	if last := r.last.Load(); last != nil && last.trees[""].String() == c.Tree {
		return last.content, nil
	}
	if c.Tree == "" {
		return content{trees: map[string]plumbing.Hash{}}, nil
	}
	base, err := contentOf(r.store(), plumbing.NewHash(c.Tree), r.opts.Without)
	if err != nil {
		return base, fmt.Errorf("cannot read commit %s of %q: %w", c.Hash, r.dir, err)
	}
	i := slices.IndexFunc(base.entries, func(e *index.Entry) bool { return e.Mode == filemode.Submodule })
	if i >= 0 && !r.opts.Clone {
		return base, gitdir.Foreign("%q: %q is a submodule, which abl does not support: remove it or choose another directory", r.dir, base.entries[i].Name)
	}
	return base, nil
}

// contentOf lists what a tree holds, marked where it is not in the work tree of a clone.
func contentOf(s storer.EncodedObjectStorer, tree plumbing.Hash, left []string) (content, error) {
	c := content{trees: map[string]plumbing.Hash{}}
	err := c.add(s, tree, "", 0)
	for _, e := range c.entries {
		e.SkipWorktree, _ = without(left, e.Name)
	}
	return c, err
}

const (
	maxTreeDepth = 4096      // beyond any path that a file system takes
	maxContent   = 2_000_000 // files and folders: a few trees can name more than there is room for
)

func (c *content) add(s storer.EncodedObjectStorer, hash plumbing.Hash, prefix string, depth int) error {
	tree, err := object.GetTree(s, hash)
	if err == nil && depth > maxTreeDepth {
		err = errors.New("its folders never end")
	}
	if err != nil {
		return fmt.Errorf("tree %s: %w", hash, err)
	}
	if c.trees[prefix] = hash; len(c.trees)+len(c.entries) > maxContent {
		return fmt.Errorf("tree %s: %w", hash, ErrTooLarge)
	}
	for _, e := range tree.Entries {
		path := prefix + e.Name
		switch {
		case strings.Contains(e.Name, "/"):
			return fmt.Errorf("tree %s: %q is not a name", hash, e.Name)
		case e.Mode == filemode.Dir:
			if err := c.add(s, e.Hash, path+"/", depth+1); err != nil {
				return err
			}
		default:
			c.entries = append(c.entries, &index.Entry{Name: path, Mode: e.Mode, Hash: e.Hash})
		}
	}
	return nil
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

// below says whether sorted entries have one below a path.
func below(entries []*index.Entry, path string) bool {
	i, _ := slices.BinarySearchFunc(entries, path+"/", byName)
	return i < len(entries) && strings.HasPrefix(entries[i].Name, path+"/")
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
			if a[0].Hash != b[0].Hash || a[0].Mode != b[0].Mode {
				paths = append(paths, a[0].Name)
			}
			a, b = a[1:], b[1:]
		}
	}
	return paths
}
