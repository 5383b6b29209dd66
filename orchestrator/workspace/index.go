package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"abl/orchestrator/workspace/gitdir"
	"abl/orchestrator/workspace/gitindex"

	"github.com/go-git/go-git/v5/plumbing/storer"
)

func (r *Repo) shallow() bool {
	_, err := os.Lstat(r.git.Join("shallow"))
	return err == nil
}

// index reads what is tracked and when that was written. Without an index
// file what HEAD holds is tracked, and nothing is taken for unchanged.
func (r *Repo) index(head Commit) (*gitindex.Index, time.Time, error) {
	f, err := os.Open(r.git.Join("index"))
	if errors.Is(err, fs.ErrNotExist) {
		ix := &gitindex.Index{}
		ix.Entries, err = r.entries(head.Tree)
		return ix, time.Time{}, err
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("cannot read git's index: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, time.Time{}, err
	}
	data := make([]byte, info.Size())
	if _, err := f.ReadAt(data, 0); err != nil {
		return nil, time.Time{}, fmt.Errorf("cannot read git's index: %w", err)
	}
	ix, err := gitindex.Decode(data)
	if errors.Is(err, gitindex.ErrUnsupported) {
		return nil, time.Time{}, gitdir.Foreign("%q: %v; commit, stash or convert it so that git status shows an ordinary state", r.dir, err)
	}
	if err != nil {
		return nil, time.Time{}, gitdir.Foreign("%q: %v; what was staged is lost with it: move %q away and run git reset", r.dir, err, r.git.Join("index"))
	}
	return ix, info.ModTime(), nil
}

// entries lists the files of a tree as index entries that know no stat data.
func (r *Repo) entries(tree string) ([]gitindex.Entry, error) {
	if tree == "" {
		return nil, nil
	}
	return r.appendEntries(nil, r.store(), tree, "", 0)
}

// maxTreeDepth is beyond any path that a file system takes.
const maxTreeDepth = 4096

func (r *Repo) appendEntries(list []gitindex.Entry, s storer.EncodedObjectStorer, tree, prefix string, depth int) ([]gitindex.Entry, error) {
	items, err := r.tree(s, tree)
	if err != nil || depth > maxTreeDepth {
		return nil, errors.Join(err)
	}
	for _, it := range items {
		path := prefix + it.Name
		switch it.Mode {
		case gitindex.ModeTree:
			list, err = r.appendEntries(list, s, it.Hash.String(), path+"/", depth+1)
			if err != nil {
				return nil, err
			}
		case gitindex.ModeGitlink:
			return nil, gitdir.Foreign("%q: %q is a submodule, which abl does not support: remove it or choose another directory", r.dir, path)
		default:
			list = append(list, gitindex.Entry{Path: path, Mode: plainMode(it.Mode), Hash: it.Hash})
		}
	}
	return list, nil
}

// plainMode folds the modes that old tools wrote into those of today.
func plainMode(mode uint32) uint32 {
	switch {
	case mode == gitindex.ModeLink:
		return mode
	case mode&0o100 != 0:
		return gitindex.ModeExec
	}
	return gitindex.ModeFile
}

// base lists what HEAD holds: the index's entries when the index is HEAD's.
func (r *Repo) base(head Commit, ix *gitindex.Index) ([]gitindex.Entry, error) {
	if ix.Tree.Valid() && ix.Tree.Hash.String() == head.Tree && ix.Tree.Entries == len(ix.Entries) {
		return ix.Entries, nil
	}
	return r.entries(head.Tree)
}

// differing calls f for each path that two sorted lists do not hold alike.
func differing(a, b []gitindex.Entry, f func(path string)) {
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Path < b[0].Path:
			f(a[0].Path)
			a = a[1:]
		case len(a) == 0 || b[0].Path < a[0].Path:
			f(b[0].Path)
			b = b[1:]
		default:
			if a[0].Hash != b[0].Hash || a[0].Mode != b[0].Mode {
				f(a[0].Path)
			}
			a, b = a[1:], b[1:]
		}
	}
}
