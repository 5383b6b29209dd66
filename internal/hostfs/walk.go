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
func (e Entry) Kind() uint32 { return kind(e.Stat) }

// What says what it is, for people.
func (e Entry) What() string { return kindOf(e.Stat) }

// Look looks at it again.
func (e *Entry) Look() (err error) {
	e.Stat, err = lstat(e.Dir, e.Name)
	return err
}

// Open opens a file, or a directory, when it still is what it was.
func (e Entry) Open() (*os.File, error) { return openSame(e.Dir, e.Name, e.Stat) }

// DropRights clears the setuid and setgid bits, and looks again.
func (e *Entry) DropRights() error { return e.Clear(special) }

// Clear clears bits of the mode, and looks again. There is no chmod of a name that follows no link
// on every kernel, so it is opened.
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

// DropACLs removes the access control lists of a file or folder, and the capabilities of a file,
// and reports whether there were any. Where Linux keeps them, nobody sees them in the mode.
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

// Armed says that a setuid or setgid bit makes a program run as its owner or group.
func (e Entry) Armed() bool { return uint32(e.Stat.Mode)&special != 0 }

// Path is the entry's path below where the walk began, for people.
func (e Entry) Path() string { return e.below(e.Name) }

// Walk visits everything below dir but the name skip in dir itself, each
// directory before what is in it. What goes away meanwhile is passed over.
func Walk(dir, skip string, visit func(Entry) error) error {
	return walk(unix.AT_FDCWD, dir, skip, visit)
}

// WalkAt is Walk for the directory that an open one has under a name.
func WalkAt(at int, name string, visit func(Entry) error) error { return walk(at, name, "", visit) }

func walk(at int, name, skip string, visit func(Entry) error) error {
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
	dir   *os.File
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
	err := w.move(next)
	if errors.Is(err, ErrAbsent) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%q: %w", w.pathOf(next), err)
	}
	return w.enter(next)
}

func (w *walker) up() error {
	if err := w.move(".."); err != nil {
		return err
	}
	now, err := fstat(w.dir)
	if err == nil && !same(now, w.path[len(w.path)-1].id) {
		err = errors.New("a directory was moved meanwhile")
	}
	return err
}

// move goes on in a directory of this one.
func (w *walker) move(name string) error {
	next, err := OpenDir(fd(w.dir), name)
	if err == nil {
		w.dir.Close()
		w.dir = next
	}
	return err
}

// enter visits what is in the directory that has just been opened.
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
