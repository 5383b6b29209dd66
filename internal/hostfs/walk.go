package hostfs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// Entry is an entry of an open directory. It is accessed only through the descriptor of the
// directory, so that a link that replaces a parent has no effect.
type Entry struct {
	Dir  int // descriptor, valid until the visit returns
	Name string
	Stat unix.Stat_t

	below func(name string) string
}

// Kind returns the file type bits of the mode.
func (e Entry) Kind() uint32 { return kind(e.Stat) }

// What returns the file type as text, such as "a FIFO".
func (e Entry) What() string { return kindOf(e.Stat) }

// Look updates the status.
func (e *Entry) Look() (err error) {
	e.Stat, err = lstat(e.Dir, e.Name)
	return err
}

// Open opens the file or directory if it is still the same.
func (e Entry) Open() (*os.File, error) { return openSame(e.Dir, e.Name, e.Stat) }

// DropRights clears the setuid and setgid bits and updates the status.
func (e *Entry) DropRights() error { return e.Clear(special) }

// Clear clears bits of the mode and updates the status. It opens the file, because not every kernel
// has a chmod that does not follow links.
func (e *Entry) Clear(bits uint32) error {
	f, err := e.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Fchmod(fd(f), uint32(e.Stat.Mode)&0o7777&^bits); err != nil {
		return err
	}
	e.Stat, err = fstat(f)
	return err
}

// DropACLs removes the access control lists and capabilities of a file or directory on Linux, where
// the mode does not show them. It reports whether there were any.
func (e *Entry) DropACLs() (had bool, err error) {
	if runtime.GOOS != "linux" {
		return false, nil
	}
	path := e.Name
	if e.Dir != unix.AT_FDCWD {
		path = fmt.Sprintf("/proc/self/fd/%d/%s", e.Dir, e.Name)
	}
	if n, _ := unix.Llistxattr(path, nil); n == 0 {
		return false, nil
	}
	for _, name := range []string{"system.posix_acl_access", "system.posix_acl_default", "security.capability"} {
		if _, none := unix.Lgetxattr(path, name, nil); none == nil {
			had, err = true, errors.Join(err, unix.Lremovexattr(path, name))
		}
	}
	if had {
		err = errors.Join(err, e.Look())
	}
	return had, err
}

// Armed reports whether the setuid or the setgid bit is set.
func (e Entry) Armed() bool { return uint32(e.Stat.Mode)&special != 0 }

// Path returns the path relative to the start of the walk, for messages.
func (e Entry) Path() string { return e.below(e.Name) }

// Walk calls visit for everything below dir, except for the entry skip of dir itself. It visits a
// directory before its content and ignores entries that disappear meanwhile. It does not enter
// other file systems.
func Walk(dir, skip string, visit func(Entry) error) error {
	return WalkAt(unix.AT_FDCWD, dir, skip, visit)
}

// WalkAt is like Walk for the directory name in the open directory at.
func WalkAt(at int, name, skip string, visit func(Entry) error) error {
	dir, err := OpenDir(at, name)
	if err != nil {
		return err
	}
	w := &walker{dir: dir, skip: skip, visit: visit}
	defer func() { w.dir.Close() }()
	for err = w.enter(""); err == nil && len(w.path) > 0; {
		err = w.step()
	}
	return err
}

// level is a directory on the path of a walk.
type level struct {
	name string
	id   unix.Stat_t // status when it was entered
	todo []string    // subdirectories not walked yet
}

// walker keeps one descriptor open, because an agent may nest more directories than there are
// descriptors. It returns to the parent through ".." and checks that it is the same directory.
type walker struct {
	dir   *os.File
	path  []level
	skip  string
	visit func(Entry) error
}

// step enters the next subdirectory, or returns to the parent after the last one.
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
	err := w.move(next)
	if errors.Is(err, ErrAbsent) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%q: %w", w.pathOf(next), err)
	}
	return w.enter(next)
}

// up returns to the parent directory. It fails if a directory was moved meanwhile.
func (w *walker) up() error {
	if err := w.move(".."); err != nil {
		return err
	}
	now, err := fstat(w.dir)
	if err == nil && !same(now, w.path[len(w.path)-1].id) {
		err = errors.New("a directory was moved during the walk")
	}
	return err
}

// move opens a directory relative to the current one and makes it current.
func (w *walker) move(name string) error {
	next, err := OpenDir(fd(w.dir), name)
	if err == nil {
		w.dir.Close()
		w.dir = next
	}
	return err
}

// enter visits the content of the directory that was just opened.
func (w *walker) enter(name string) error {
	id, err := fstat(w.dir)
	if err != nil {
		return err
	}
	w.path = append(w.path, level{name: name, id: id})
	for {
		names, err := w.dir.Readdirnames(1024)
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

// look visits an entry, unless it has disappeared.
func (w *walker) look(name string) error {
	e := Entry{Dir: fd(w.dir), Name: name, below: w.pathOf}
	var err error
	if e.Stat, err = lstat(e.Dir, name); errors.Is(err, ErrAbsent) {
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
