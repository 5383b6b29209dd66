package orchestrator

import (
	"context"
	"os"
	"path/filepath"

	"abl/roles/prompt"
)

// Files lists what a role's workspace holds, for the project map.
type Files func(ctx context.Context) ([]prompt.File, error)

// FilesOf is the list of a workspace whose paths list names, no more than most of them.
func FilesOf(dir string, list func(ctx context.Context, most int) ([]string, error)) Files {
	return func(ctx context.Context) ([]prompt.File, error) {
		paths, err := list(ctx, 50_000)
		if err != nil {
			return nil, err
		}
		all := make([]prompt.File, 0, len(paths))
		for _, p := range paths {
			f := prompt.File{Path: p}
			if fi, err := os.Lstat(filepath.Join(dir, p)); err == nil {
				f.Size = fi.Size()
			}
			all = append(all, f)
		}
		return all, nil
	}
}
