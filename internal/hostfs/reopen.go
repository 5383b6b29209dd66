package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Reopen lets the owner of dir, and of these names in it, read and write them again:
// whoever shares them may have taken every right away. Links are left alone, and
// what is not there is no error. Nothing that could exchange them may run.
func Reopen(dir string, names ...string) error {
	for _, name := range append([]string{""}, names...) {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot look at %q: %w", path, err)
		}
		rights := fs.FileMode(0o600)
		if info.IsDir() {
			rights = 0o700
		}
		if info.Mode()&rights == rights || !info.IsDir() && !info.Mode().IsRegular() {
			continue
		}
		if err := os.Chmod(path, info.Mode()|rights); err != nil {
			return fmt.Errorf("cannot open to its owner: %w", err)
		}
	}
	return nil
}
