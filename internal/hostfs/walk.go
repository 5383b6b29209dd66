package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Entry is what stands under a name in an open directory. It is reached through
// the directory's descriptor alone, so a link that is put on the way meanwhile
// leads nowhere.
type Entry struct {
	Dir  int // descriptor, until the visit returns
	Name string
	Stat unix.Stat_t

	below func(name string) string
}

// Kind is the part of the mode that says what it is.
func (e Entry) Kind() uint32 { return uint32(e.Stat.Mode) & unix.S_IFMT }

// Path is the entry's path below where the walk began, for people.
func (e Entry) Path() string { return e.below(e.Name) }

// Walk visits everything below dir but the name skip in dir itself, each
// directory before what is in it. What goes away meanwhile is passed over.
func Walk(dir, skip string, visit func(Entry) error) error {
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return err
	}
	return walk(fd, skip, visit)
}

// WalkAt is Walk for the directory that an open one has under a name.
func WalkAt(at int, name string, visit func(Entry) error) error {
	fd, err := openDir(at, name)
	if err != nil {
		return err
	}
	return walk(fd, "", visit)
}

func walk(fd int, skip string, visit func(Entry) error) error {
	w := &walker{fd: fd, skip: skip, visit: visit}
	defer func() { unix.Close(w.fd) }()
	if err := w.enter(""); err != nil {
		return err
	}
	for len(w.path) > 0 {
		if err := w.step(); err != nil {
			return err
		}
	}
	return nil
}

// level is a directory on the way down.
type level struct {
	name string
	id   unix.Stat_t // which directory it is
	todo []string    // directories in it that are still to be walked
}

// walker holds one descriptor however deep the tree is: an agent may nest more
// levels than there are descriptors. It comes back up by "..", and makes sure
// that this is where it came from.
type walker struct {
	fd    int
	path  []level
	skip  string
	visit func(Entry) error
}

// step goes down into the next directory, or up when there is none left.
func (w *walker) step() error {
	top := &w.path[len(w.path)-1]
	if len(top.todo) == 0 {
		w.path = w.path[:len(w.path)-1]
		if len(w.path) == 0 {
			return nil
		}
		return w.up()
	}
	next := top.todo[len(top.todo)-1]
	top.todo = top.todo[:len(top.todo)-1]
	fd, err := openDir(w.fd, next)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%q: %w", w.pathOf(next), err)
	}
	w.move(fd)
	return w.enter(next)
}

func (w *walker) up() error {
	fd, err := openDir(w.fd, "..")
	if err != nil {
		return err
	}
	w.move(fd)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return err
	}
	if was := w.path[len(w.path)-1].id; now.Dev != was.Dev || now.Ino != was.Ino {
		return errors.New("a directory was moved meanwhile")
	}
	return nil
}

func (w *walker) move(fd int) {
	unix.Close(w.fd) // nothing was written through it
	w.fd = fd
}

// enter visits what is in the directory that has just been opened.
func (w *walker) enter(name string) error {
	lv := level{name: name}
	if err := unix.Fstat(w.fd, &lv.id); err != nil {
		return err
	}
	w.path = append(w.path, lv)
	own, err := openDir(w.fd, ".") // to be listed through a descriptor of its own
	if err != nil {
		return err
	}
	d := os.NewFile(uintptr(own), "directory")
	defer d.Close()
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if len(w.path) == 1 && name == w.skip {
				continue
			}
			if err := w.look(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (w *walker) look(name string) error {
	e := Entry{Dir: w.fd, Name: name, below: w.pathOf}
	err := unix.Fstatat(w.fd, name, &e.Stat, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%q: %w", e.Path(), err)
	}
	here := &w.path[len(w.path)-1]
	if e.Stat.Dev != here.id.Dev {
		return nil
	}
	if e.Kind() == unix.S_IFDIR {
		here.todo = append(here.todo, name)
	}
	return w.visit(e)
}

func (w *walker) pathOf(name string) string {
	var at strings.Builder
	for _, lv := range w.path[1:] {
		at.WriteString(lv.name + "/")
	}
	return at.String() + name
}

func openDir(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}
