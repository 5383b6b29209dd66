package git

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// Tracks reports whether the git repository around dir, if there is one, has
// files below dir/sub in its index.
func Tracks(dir, sub string) (bool, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false, fmt.Errorf("cannot look for a repository: %w", err)
	}
	if real, err = filepath.Abs(real); err != nil {
		return false, err
	}
	for at := real; ; at = filepath.Dir(at) {
		data, err := os.ReadFile(filepath.Join(at, ".git", "index"))
		if err == nil {
			return holdsBelow(data, at, filepath.Join(real, sub))
		}
		switch fi, there := os.Lstat(filepath.Join(at, ".git")); {
		case there == nil && !fi.IsDir():
			return false, fmt.Errorf("%q is a worktree or a submodule, whose index stands elsewhere", at)
		case there == nil && errors.Is(err, fs.ErrNotExist):
			return false, nil // a repository without a commit
		case there == nil:
			return false, fmt.Errorf("cannot read the index of %q: %w", at, err)
		}
		if at == filepath.Dir(at) {
			return false, nil
		}
	}
}

// holdsBelow reads the index with go-git's decoder: another repository may hold
// submodules and conflicts, which a workspace may not.
func holdsBelow(data []byte, top, dir string) (bool, error) {
	var ix index.Index
	if err := index.NewDecoder(bytes.NewReader(data)).Decode(&ix); err != nil {
		return false, fmt.Errorf("cannot read the index of %q: %w", top, err)
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return false, err
	}
	prefix := filepath.ToSlash(rel) + "/"
	return slices.ContainsFunc(ix.Entries, func(e *index.Entry) bool { return strings.HasPrefix(e.Name, prefix) }), nil
}
