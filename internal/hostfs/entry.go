package hostfs

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// chown changes the owner of the entry itself, of a link too.
func (e Entry) chown(uid, gid int) error {
	err := unix.Fchownat(e.Dir, e.Name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%q: %w", e.Path(), err)
	}
	return nil
}

// disarm clears the setuid and setgid bits of a file or directory. There is no
// chmod of a name that does not follow links on every kernel, so the entry is
// opened and compared.
func (e Entry) disarm() error {
	fd, err := unix.Openat(e.Dir, e.Name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%q: %w", e.Path(), err)
	}
	defer unix.Close(fd)
	var now unix.Stat_t
	if err := unix.Fstat(fd, &now); err != nil {
		return fmt.Errorf("%q: %w", e.Path(), err)
	}
	if now.Dev != e.Stat.Dev || now.Ino != e.Stat.Ino {
		return fmt.Errorf("%q changed meanwhile", e.Path())
	}
	return unix.Fchmod(fd, uint32(now.Mode)&0o7777&^special)
}
