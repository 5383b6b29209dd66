package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Remove removes name in dir with everything below it. It unlinks links. Directories may be nested
// deeper than the limit of file descriptors and may deny access to their owner. A missing name is
// not an error.
func Remove(dir, name string) error {
	if err := removeAny(dir, name); err != nil && !errors.Is(err, ErrAbsent) {
		return fmt.Errorf("cannot remove %q: %w", name, err)
	}
	return nil
}

func removeAny(dir, name string) error {
	if name == "." {
		return errors.New("internal error: . is the directory itself")
	}
	parent, base, err := openParent(dir, name)
	if err != nil {
		return err
	}
	defer parent.Close()
	isDir, err := unlink(parent, base)
	if err != nil || !isDir {
		return err
	}
	// Directories two levels down are moved up into the top directory before their parent is
	// removed, so two descriptors are enough.
	moved := 0
	return empty(parent, base, func(top *os.File, name string) error {
		return empty(top, name, func(sub *os.File, inner string) error { return moveUp(sub, inner, top, &moved) })
	})
}

// unlink removes name unless it is a directory.
func unlink(at *os.File, name string) (isDir bool, err error) {
	st, err := lstat(fd(at), name)
	if err != nil {
		return false, err
	}
	if kind(st) == unix.S_IFDIR {
		return true, nil
	}
	return false, unix.Unlinkat(fd(at), name, 0)
}

// allRights are the permissions that the owner of a directory may have removed.
const allRights = 0o700

// empty removes the directory name with its content. It calls inner for each subdirectory.
func empty(at *os.File, name string, inner func(dir *os.File, name string) error) error {
	if err := unix.Fchmodat(fd(at), name, allRights, 0); err != nil {
		return err
	}
	dir, err := OpenDir(fd(at), name)
	if err != nil {
		return err
	}
	defer dir.Close()
	for {
		names, err := someNames(dir)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return unix.Unlinkat(fd(at), name, unix.AT_REMOVEDIR)
		}
		for _, name := range names {
			isDir, err := unlink(dir, name)
			if err == nil && isDir {
				err = inner(dir, name)
			}
			if err != nil && !errors.Is(err, ErrAbsent) {
				return err
			}
		}
	}
}

// moveUp moves a directory to an unused name in top.
func moveUp(sub *os.File, name string, top *os.File, moved *int) error {
	if err := unix.Fchmodat(fd(sub), name, allRights, 0); err != nil { // the rename changes its ".."
		return err
	}
	for {
		*moved++
		free := "abl-moved-" + strconv.Itoa(*moved)
		if _, err := lstat(fd(top), free); errors.Is(err, ErrAbsent) {
			return unix.Renameat(fd(sub), name, fd(top), free)
		} else if err != nil {
			return err
		}
	}
}

// someNames returns the first names of a directory whose entries are being removed.
func someNames(dir *os.File) ([]string, error) {
	if _, err := dir.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(1000)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return names, err
}
