package owner

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// entry is what stands under a name in an open directory. It is reached through
// the directory's descriptor alone, so a link that is put on the way meanwhile
// leads nowhere.
type entry struct {
	dir  int
	name string
	st   unix.Stat_t
	path func() string // below the workspace, for people
}

func (e entry) mode() uint32 { return uint32(e.st.Mode) }
func (e entry) kind() uint32 { return e.mode() & unix.S_IFMT }

// chown changes the owner of the entry itself, of a link too.
func (e entry) chown(uid, gid int) error {
	err := unix.Fchownat(e.dir, e.name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%q: %w", e.path(), err)
	}
	return nil
}

// disarm clears the setuid and setgid bits of a file or directory. There is no
// chmod of a name that does not follow links on every kernel, so the entry is
// opened and compared.
func (e entry) disarm() error {
	fd, err := unix.Openat(e.dir, e.name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%q: %w", e.path(), err)
	}
	defer unix.Close(fd)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return fmt.Errorf("%q: %w", e.path(), err)
	}
	if now.Dev != e.st.Dev || now.Ino != e.st.Ino {
		return fmt.Errorf("%q changed meanwhile", e.path())
	}
	return unix.Fchmod(fd, uint32(now.Mode)&0o7777&^special)
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
	visit func(entry) error
}

// walk visits everything below dir but .git in dir itself, each directory
// before what is in it, and enters no link and no other file system.
func walk(dir string, visit func(entry) error) error {
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return err
	}
	w := &walker{fd: fd, visit: visit}
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
	names, err := readNames(w.fd)
	if err != nil {
		return err
	}
	for _, name := range names {
		if len(w.path) == 1 && name == gitDir {
			continue
		}
		if err := w.look(name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) look(name string) error {
	e := entry{dir: w.fd, name: name, path: func() string { return w.pathOf(name) }}
	err := unix.Fstatat(w.fd, name, &e.st, unix.AT_SYMLINK_NOFOLLOW)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%q: %w", e.path(), err)
	}
	here := &w.path[len(w.path)-1]
	if e.st.Dev != here.id.Dev {
		return nil
	}
	if e.kind() == unix.S_IFDIR {
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

// readNames lists a directory through a descriptor of its own.
func readNames(fd int) ([]string, error) {
	own, err := openDir(fd, ".")
	if err != nil {
		return nil, err
	}
	d := os.NewFile(uintptr(own), "directory")
	defer d.Close()
	return d.Readdirnames(-1)
}
