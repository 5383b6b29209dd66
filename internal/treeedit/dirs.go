package treeedit

import (
	"errors"
	"fmt"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// dirs are open directories of a tree by their paths in it, "." being its root.
// Each was opened from the one above it, by name and following no link, so
// what is put on the way later leads nowhere. Besides the root at most so many
// are kept.
type dirs map[string]*os.File

const mostDirs = 256

func openDirs(root string) (dirs, error) {
	f, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	return dirs{".": f}, nil
}

func (d dirs) close() {
	for _, f := range d {
		f.Close()
	}
}

// get opens a directory, from the nearest one that is open.
func (d dirs) get(dir string) (*os.File, error) {
	if f := d[dir]; f != nil {
		return f, nil
	}
	above, err := d.get(path.Dir(dir))
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat(int(above.Fd()), path.Base(dir), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil, fmt.Errorf("%w: %q on the way is no directory", ErrInTheWay, dir)
	case err != nil:
		return nil, err
	}
	f := os.NewFile(uintptr(fd), dir)
	d.trim(dir)
	d[dir] = f
	return f, nil
}

// take is get for a directory that the caller keeps open, and closes.
func (d dirs) take(dir string) (*os.File, error) {
	f, err := d.get(dir)
	if err == nil {
		delete(d, dir)
	}
	return f, err
}

// trim makes room. The root and what lies on the way to next stay.
func (d dirs) trim(next string) {
	if len(d) < mostDirs {
		return
	}
	way := map[string]bool{".": true}
	for ; next != "."; next = path.Dir(next) {
		way[next] = true
	}
	for name, f := range d {
		if !way[name] {
			f.Close()
			delete(d, name)
		}
	}
}

// make makes a directory; one that has come to be there is as good.
func (d dirs) make(dir string) error {
	above, err := d.get(path.Dir(dir))
	if err != nil {
		return err
	}
	if err := unix.Mkdirat(int(above.Fd()), path.Base(dir), 0o777); err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	_, err = d.get(dir)
	return err
}
