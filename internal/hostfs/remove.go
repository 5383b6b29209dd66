package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Remove removes what stands under name in dir, whatever it has become and
// however deep it is: a link is unlinked, never followed, and folders nested
// beyond the number of descriptors or closed to their owner are no obstacle.
// What is not there is removed.
func Remove(dir, name string) error {
	if err := removeAny(dir, name); err != nil && !errors.Is(err, ErrAbsent) {
		return fmt.Errorf("cannot remove %q: %w", name, err)
	}
	return nil
}

func removeAny(dir, name string) error {
	if name == "." {
		return errors.New("internal error: it is the directory itself")
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
	top, err := openOwn(parent, base)
	if err != nil {
		return err
	}
	defer top.Close()
	if err := empty(top); err != nil {
		return err
	}
	return unix.Unlinkat(int(parent.Fd()), base, unix.AT_REMOVEDIR)
}

// unlink removes name unless it is a folder.
func unlink(at *os.File, name string) (isDir bool, err error) {
	st, err := lstat(at, name)
	if err != nil {
		return false, err
	}
	if uint32(st.Mode)&unix.S_IFMT == unix.S_IFDIR {
		return true, nil
	}
	return false, unix.Unlinkat(int(at.Fd()), name, 0)
}

// openOwn opens a folder for reading and writing in it, whose owner may have
// closed it to themselves.
func openOwn(at *os.File, name string) (*os.File, error) {
	const all = 0o700
	if err := unix.Fchmodat(int(at.Fd()), name, all, 0); err != nil {
		return nil, err
	}
	return openAt(at, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// empty removes what is in top. Folders in its folders are moved up into top
// before the folder between them goes, so two descriptors are enough.
func empty(top *os.File) error {
	moved := 0
	for {
		names, err := someNames(top)
		if err != nil || len(names) == 0 {
			return err
		}
		for _, name := range names {
			isDir, err := unlink(top, name)
			if err == nil && isDir {
				err = flatten(top, name, &moved)
			}
			if err != nil && !errors.Is(err, ErrAbsent) {
				return err
			}
		}
	}
}

// flatten removes the folder name in top, whose folders it moves up into top.
func flatten(top *os.File, name string, moved *int) error {
	sub, err := openOwn(top, name)
	if err != nil {
		return err
	}
	defer sub.Close()
	for {
		names, err := someNames(sub)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			return unix.Unlinkat(int(top.Fd()), name, unix.AT_REMOVEDIR)
		}
		for _, inner := range names {
			isDir, err := unlink(sub, inner)
			if err == nil && isDir {
				err = moveUp(sub, inner, top, moved)
			}
			if err != nil && !errors.Is(err, ErrAbsent) {
				return err
			}
		}
	}
}

// moveUp gives a folder a name in top that nothing there has.
func moveUp(sub *os.File, name string, top *os.File, moved *int) error {
	if err := unix.Fchmodat(int(sub.Fd()), name, 0o700, 0); err != nil { // its ".." is about to change
		return err
	}
	for {
		*moved++
		free := "abl-moved-" + strconv.Itoa(*moved)
		if _, err := lstat(top, free); errors.Is(err, ErrAbsent) {
			return unix.Renameat(int(sub.Fd()), name, int(top.Fd()), free)
		} else if err != nil {
			return err
		}
	}
}

// someNames lists the first names in a folder that is about to lose them.
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
