package gitdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
)

// maxBorrowed is how many repositories in a row may borrow objects of the next, as in git.
const maxBorrowed = 5

// Plain fails with ErrForeign if the objects that the repository has or borrows are not regular files
// in folders: git would wait for a FIFO, and read whatever a link leads to.
func (d Dir) Plain() error { return plain(d.Join("objects"), maxBorrowed) }

func plain(dir string, left int) error {
	var folders []string
	for _, folder := range []string{".", "info", "pack"} {
		below, err := regular(dir, folder)
		if err != nil {
			return err
		}
		if folder == "." {
			folders = below
		}
	}
	for _, folder := range folders {
		if len(folder) != 2 {
			continue
		}
		if _, err := regular(dir, folder); err != nil {
			return err
		}
	}
	borrowed, err := hostfs.Read(dir, "info/alternates", maxFile)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	for line := range strings.Lines(string(borrowed)) {
		at := strings.TrimSpace(line)
		if at == "" || at[0] == '#' || left == 0 {
			continue
		}
		if !filepath.IsAbs(at) {
			at = filepath.Join(dir, at)
		}
		if real, rerr := filepath.EvalSymlinks(at); rerr == nil && err == nil {
			err = plain(real, left-1)
		}
	}
	return err
}

// regular fails if a folder has an entry that is neither a regular file nor a folder, and returns the
// folders in it. A folder that does not exist has no entries.
func regular(dir, name string) (folders []string, err error) {
	all, err := hostfs.Names(dir, name, maxNames)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, Foreign("in %q: %v: replace it by what git makes there", dir, err)
	}
	files, err := hostfs.List(dir, name, maxNames)
	if err != nil {
		return nil, fmt.Errorf("in %q: %w", dir, err)
	}
	known := map[string]bool{}
	for _, f := range files {
		known[f.Name] = true
	}
	for _, entry := range all {
		if known[entry] {
			continue
		}
		path := filepath.Join(dir, name, entry)
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			return nil, Foreign("%q is neither a regular file nor a folder: replace it by what git makes there", path)
		}
		folders = append(folders, entry)
	}
	return folders, nil
}
