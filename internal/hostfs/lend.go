package hostfs

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lentID is the user and group of roles in a project of root's. It is that of
// nobody on a usual machine.
const lentID = 10001

// gitDir stays the person's in the top folder of a workspace: git refuses a
// history that is another user's.
const gitDir = ".git"

// Lease says how a workspace was before it was lent. It is saved before Lend, so
// that Return can undo a Lend that a crash cut short.
type Lease struct {
	UID      int    `json:"uid"` // to whom
	GID      int    `json:"gid"`
	OwnerUID int    `json:"owner_uid"` // whose it is
	OwnerGID int    `json:"owner_gid"`
	Mode     uint32 `json:"mode"` // of the top folder
}

// RoleID returns the user and group that roles of the project run as, when abl
// runs as euid, and whether the workspaces must be lent to them. It is never
// root or root's group.
func RoleID(project string, euid int) (uid, gid int, lend bool) {
	var st unix.Stat_t
	if err := unix.Stat(project, &st); err != nil {
		return lentID, lentID, euid == 0 // root's own for all that is known
	}
	return roleID(euid, os.Getegid(), int(st.Uid), int(st.Gid))
}

func roleID(euid, egid, ownerUID, ownerGID int) (uid, gid int, lend bool) {
	switch {
	case euid != 0:
		return euid, notRoot(egid, euid), false
	case ownerUID != 0:
		return ownerUID, notRoot(ownerGID, ownerUID), false
	}
	return lentID, lentID, true
}

func notRoot(gid, instead int) int {
	if gid == 0 {
		return instead
	}
	return gid
}

// Plan looks at the workspace dir and returns the lease under which Lend would
// lend it. It changes nothing.
func Plan(dir string, uid, gid int) (Lease, error) {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return Lease{}, fmt.Errorf("cannot look at workspace %q: %w", dir, err)
	}
	if uint32(st.Mode)&unix.S_IFMT != unix.S_IFDIR {
		return Lease{}, fmt.Errorf("cannot lend workspace %q: it is not a directory", dir)
	}
	return Lease{uid, gid, int(st.Uid), int(st.Gid), uint32(st.Mode) & 0o7777}, nil
}

// Lend gives all that is in dir to the user of the lease. The top folder stays
// the person's, and the group of the lease may write in it; .git stays as it
// is. What lies on another file system is left alone, and so is a file that has
// a name outside dir as well. Doing it twice is doing it once.
func Lend(dir string, l Lease) error {
	names := linked{}
	err := Walk(dir, gitDir, func(e Entry) error {
		if e.Kind() == unix.S_IFREG && e.Stat.Nlink > 1 {
			names.add(e)
			return nil
		}
		return e.lend(l)
	})
	if err == nil && names.anyInside() {
		err = Walk(dir, gitDir, func(e Entry) error {
			if !names.inside(e) {
				return nil
			}
			return e.lend(l)
		})
	}
	if err == nil {
		err = setTop(dir, l.GID, l.Mode|0o770)
	}
	if err != nil {
		return fmt.Errorf("cannot lend workspace %q: %w", dir, err)
	}
	return nil
}

func (e Entry) lend(l Lease) error {
	if int(e.Stat.Uid) == l.UID && int(e.Stat.Gid) == l.GID {
		return nil
	}
	return e.chown(l.UID, l.GID)
}

// names counts the names that files with several have in the workspace, by
// inode: a file may be linked from the person's package store, which no role
// may write.
type linked map[uint64]struct{ seen, all uint64 }

func (n linked) add(e Entry) {
	c := n[e.Stat.Ino]
	c.seen++
	c.all = uint64(e.Stat.Nlink)
	n[e.Stat.Ino] = c
}

func (n linked) inside(e Entry) bool {
	c := n[e.Stat.Ino]
	return e.Kind() == unix.S_IFREG && c.seen > 0 && c.seen == c.all
}

func (n linked) anyInside() bool {
	for _, c := range n {
		if c.seen == c.all {
			return true
		}
	}
	return false
}

// Return gives the user's files in dir back to the person. It clears their
// setuid and setgid bits before, which would be the person's afterwards, and
// says where it found such bits, devices, FIFOs and sockets. Doing it twice is
// doing it once, and a dir that is gone needs nothing.
func Return(dir string, l Lease) (found []string, err error) {
	var f findings
	err = Walk(dir, gitDir, func(e Entry) error {
		if int(e.Stat.Uid) != l.UID && int(e.Stat.Gid) != l.GID {
			return nil
		}
		if err := f.inspect(e); err != nil {
			return err
		}
		return e.chown(l.OwnerUID, l.OwnerGID)
	})
	if err == nil {
		err = setTop(dir, l.OwnerGID, l.Mode)
	}
	if err != nil && !isGone(dir) {
		return f.list(), fmt.Errorf("cannot take back workspace %q: %w", dir, err)
	}
	return f.list(), nil
}

func isGone(dir string) bool {
	_, err := os.Lstat(dir)
	return os.IsNotExist(err)
}

// setTop changes the group and mode of the top folder, not its owner.
func setTop(dir string, gid int, mode uint32) error {
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	const keep = -1
	if err := unix.Fchown(fd, keep, gid); err != nil {
		return err
	}
	return unix.Fchmod(fd, mode)
}
