package gitdir

import (
	"errors"
	"path"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"
)

// maxBorrowed is the maximum number of chained alternates, as in git.
const maxBorrowed = 5

// Plain returns ErrForeign if the objects directory, or that of an alternate, contains other
// entries than directories and regular files: git would block on a FIFO and follow a link.
func (d Dir) Plain() error { return plain(d.Join("objects"), maxBorrowed) }

// PlainRefs is like Plain for the files that git reads when it lists refs, settings and work trees.
func (d Dir) PlainRefs() error {
	names := []string{"HEAD", "config.worktree", "packed-refs", "refs", "objects/info", "objects/pack"}
	trees, _ := hostfs.Names(d.Path, "worktrees", maxNames) // git ignores an unreadable directory, too
	for _, tree := range trees {
		for _, file := range []string{"HEAD", "config.worktree", "gitdir", "commondir", "locked"} {
			names = append(names, path.Join("worktrees", tree, file))
		}
	}
	for _, name := range names {
		if err := regular(d.Path, name); err != nil {
			return err
		}
	}
	return nil
}

// regular returns ErrForeign if a path, or anything below it, is neither a directory nor a regular
// file. A missing path is not an error.
func regular(dir, name string) error {
	if err := hostfs.Plain(dir, name, nil); err != nil {
		return Foreign("in %q: %v: restore what git creates there", dir, err)
	}
	return nil
}

// plain calls regular for a folder of objects and, up to a depth of left, for the folders that it
// borrows from.
func plain(dir string, left int) error {
	if err := regular(filepath.Dir(dir), filepath.Base(dir)); err != nil {
		return err
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
