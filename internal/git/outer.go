package git

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// Tracks reports whether the git repository around dir, if there is one, has
// files below dir/sub in its index.
func Tracks(dir, sub string) (bool, error) {
	real, err := filepath.EvalSymlinks(dir)
	if err == nil {
		real, err = filepath.Abs(real)
	}
	if err != nil {
		return false, fmt.Errorf("cannot look for a repository: %w", err)
	}
	for at := real; ; at = filepath.Dir(at) {
		git := filepath.Join(at, ".git")
		switch fi, err := os.Lstat(git); {
		case err == nil && !fi.IsDir():
			return false, fmt.Errorf("%q is a worktree or a submodule, whose index stands elsewhere", at)
		case err == nil:
			// Another repository may hold submodules and conflicts, which a workspace may not.
			ix, err := filesystem.NewStorage(osfs.New(git), cache.NewObjectLRUDefault()).Index()
			if err != nil {
				return false, fmt.Errorf("cannot read the index of %q: %w", at, err)
			}
			prefix := strings.TrimPrefix(strings.TrimPrefix(filepath.Join(real, sub), at), "/") + "/"
			return slices.ContainsFunc(ix.Entries, func(e *index.Entry) bool { return strings.HasPrefix(e.Name, prefix) }), nil
		case at == filepath.Dir(at):
			return false, nil
		}
	}
}
