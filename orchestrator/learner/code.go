package learner

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/hostfs"
	"abl/internal/testing/failpoint"
)

// publish makes code/ of a cycle: all its files and folders, without the notes.
// The old code/ stays until the new one is whole. What a person should not run
// into is left out and named.
func (h Home) publish(n int) (left []string, err error) {
	fresh, old := h.path(".abl", "code.new"), h.path(".abl", "code.old")
	if err = errors.Join(remove(fresh), remove(old)); err == nil {
		left, err = copyTree(h.Cycle(n), fresh)
	}
	if err != nil {
		return left, fmt.Errorf("cannot copy %s to %s: %w", h.Rel(h.Cycle(n)), h.Rel(h.Code()), err)
	}
	failpoint.Here("learn.copied")
	if err = os.Rename(h.Code(), old); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	failpoint.Here("learn.replacing")
	if err == nil {
		err = os.Rename(fresh, h.Code())
	}
	if err != nil {
		return left, fmt.Errorf("cannot replace %s: %w", h.Rel(h.Code()), err)
	}
	return left, remove(old)
}

// remove takes a path away with all below it, if it is there.
func remove(path string) error {
	if err := hostfs.Remove(filepath.Dir(path), filepath.Base(path)); !errors.Is(err, hostfs.ErrAbsent) {
		return err
	}
	return nil
}

// copyTree copies files, folders and those links that stay inside. Nothing is
// followed on the way: both trees are reached through open folders alone.
func copyTree(from, to string) (left []string, err error) {
	if err := os.Mkdir(to, 0o755); err != nil {
		return nil, err
	}
	src, err := os.OpenRoot(from)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	dst, err := os.OpenRoot(to)
	if err != nil {
		return nil, err
	}
	defer dst.Close()
	err = fs.WalkDir(src.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if name == "." {
			return err
		}
		why := ""
		switch {
		case err != nil: // a folder; it is there already, and stays empty
			why, err = unread(err), nil
		case slices.Contains(notes(), name):
		case strings.EqualFold(path.Base(name), ".git"):
			why = "git would run what its settings say"
		default:
			why, err = copyOne(src, dst, name)
			if err == nil && why == "" {
				return nil
			}
		}
		if why != "" {
			left = append(left, fmt.Sprintf("%q: %s", name, why))
		}
		if d.IsDir() && err == nil {
			return fs.SkipDir
		}
		return err
	})
	const most = 20
	if n := len(left); n > most {
		left = append(left[:most], fmt.Sprintf("and %d more", n-most))
	}
	return left, err
}

// unread is why something is left out that cannot be read: an agent may make what
// its owner may not look at, and names that are no text.
func unread(err error) string { return "it cannot be read: " + err.Error() }

// copyOne copies one entry, or says why not. What cannot be written is an error.
func copyOne(src, dst *os.Root, name string) (why string, err error) {
	fi, err := src.Lstat(name)
	if err != nil {
		return unread(err), nil
	}
	switch mode := fi.Mode(); {
	case mode.IsDir():
		return "", dst.Mkdir(name, 0o755)
	case mode&fs.ModeSymlink != 0:
		target, err := src.Readlink(name)
		if err != nil {
			return unread(err), nil
		}
		if path.IsAbs(target) || !filepath.IsLocal(path.Join(path.Dir(name), target)) {
			return "a link that leads outside", nil
		}
		return "", dst.Symlink(target, name)
	case !mode.IsRegular():
		return "neither a file nor a folder", nil
	}
	in, err := src.Open(name)
	if err != nil {
		return unread(err), nil
	}
	defer in.Close()
	out, err := dst.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644|fi.Mode()&0o111)
	if err != nil {
		return "", err
	}
	_, err = io.CopyN(out, in, fi.Size())
	return "", errors.Join(err, out.Close())
}
