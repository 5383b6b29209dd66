package gitdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
)

// maxBorrowed is the maximum number of chained alternates, as in git.
const maxBorrowed = 5

// Plain returns ErrForeign if the objects directory, or that of an alternate, contains other
// entries than directories and regular files: git would block on a FIFO and follow a link.
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

// regular returns the subdirectories of a directory. It fails if an entry is neither a regular file
// nor a directory. A missing directory has no entries.
func regular(dir, name string) (folders []string, err error) {
	all, err := hostfs.Names(dir, name, maxNames)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, nil
	}
	if err != nil {
		return nil, Foreign("in %q: %v: restore what git creates there", dir, err)
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
			return nil, Foreign("%q is neither a regular file nor a directory: restore what git creates there", path)
		}
		folders = append(folders, entry)
	}
	return folders, nil
}
