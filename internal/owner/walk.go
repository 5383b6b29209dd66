package owner

import (
	"errors"
	"fmt"

	"abl/internal/treewalk"

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

// walk visits everything below dir but .git in dir itself.
func walk(dir string, visit func(entry) error) error {
	return treewalk.Walk(dir, gitDir, func(e treewalk.Entry) error {
		return visit(entry{dir: e.Dir, name: e.Name, st: e.Stat, path: e.Path})
	})
}

func openDir(at int, name string) (int, error) {
	return unix.Openat(at, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}
