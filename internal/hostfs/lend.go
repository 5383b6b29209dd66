package hostfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

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
		uid, gid = euid, egid
	case ownerUID != 0:
		uid, gid = ownerUID, ownerGID
	default:
		return lentID, lentID, true
	}
	if gid == 0 {
		gid = uid
	}
	return uid, gid, false
}

// Plan looks at the workspace dir and returns the lease under which Lend would
// lend it. It changes nothing.
func Plan(dir string, uid, gid int) (Lease, error) {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return Lease{}, fmt.Errorf("cannot look at workspace %q: %w", dir, err)
	}
	if kind(st) != unix.S_IFDIR {
		return Lease{}, fmt.Errorf("cannot lend workspace %q: it is not a directory", dir)
	}
	return Lease{uid, gid, int(st.Uid), int(st.Gid), uint32(st.Mode) & 0o7777}, nil
}

// Lend gives all that is in dir to the user of the lease. The top folder stays
// the person's, and the group of the lease may write in it; .git stays as it
// is. What lies on another file system is left alone, and so is a file that has
// a name outside dir as well, in the person's package store say, which no role may
// write. Doing it twice is doing it once.
func Lend(dir string, l Lease) error {
	met := map[uint64]uint64{} // names in dir of a file with several, by its inode
	err := Walk(dir, gitDir, func(e Entry) error {
		if e.shared() {
			met[e.Stat.Ino]++
			if met[e.Stat.Ino] < uint64(e.Stat.Nlink) {
				return nil // more of its names are to come, or are elsewhere
			}
		}
		return e.chown(l.UID, l.GID)
	})
	if err == nil {
		err = setTop(dir, l.GID, l.Mode|0o770)
	}
	if err != nil {
		return fmt.Errorf("cannot lend workspace %q: %w", dir, err)
	}
	return nil
}

// shared is a file with several names.
func (e Entry) shared() bool { return e.Kind() == unix.S_IFREG && e.Stat.Nlink > 1 }

// chown changes the owner of the entry itself, of a link too.
func (e Entry) chown(uid, gid int) error {
	if int(e.Stat.Uid) == uid && int(e.Stat.Gid) == gid {
		return nil
	}
	err := unix.Fchownat(e.Dir, e.Name, uid, gid, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("%q: %w", e.Path(), err)
	}
	return nil
}

// maxShown bounds what is told of a workspace.
const maxShown = 50

// Return gives the user's files in dir back to the person. It clears their
// setuid and setgid bits before, which would be the person's afterwards, and
// says where it found such bits, devices, FIFOs and sockets. Doing it twice is
// doing it once, and a dir that is gone needs nothing.
func Return(dir string, l Lease) (found []string, err error) {
	more := 0
	err = Walk(dir, gitDir, func(e Entry) error {
		if int(e.Stat.Uid) != l.UID {
			return nil
		}
		odd, err := e.disarm()
		switch {
		case err != nil:
			return fmt.Errorf("%q: %w", e.Path(), err)
		case odd != "" && len(found) == maxShown:
			more++
		case odd != "":
			found = append(found, fmt.Sprintf("%q %s", e.Path(), odd))
		}
		return e.chown(l.OwnerUID, l.OwnerGID)
	})
	if more > 0 {
		found = append(found, fmt.Sprintf("and %d more", more))
	}
	if err == nil {
		err = setTop(dir, l.OwnerGID, l.Mode)
	}
	if _, gone := os.Lstat(dir); err != nil && !errors.Is(gone, fs.ErrNotExist) {
		return found, fmt.Errorf("cannot take back workspace %q: %w", dir, err)
	}
	return found, nil
}

const special = unix.S_ISUID | unix.S_ISGID

// disarm clears the setuid and setgid bits of a file or directory, and says what is
// odd about an entry, "" for nothing.
func (e Entry) disarm() (odd string, err error) {
	switch k := e.Kind(); {
	case k == unix.S_IFLNK:
		return "", nil
	case k != unix.S_IFREG && k != unix.S_IFDIR:
		return "is " + e.What(), nil
	case !e.Armed():
		return "", nil
	}
	return "had a setuid or setgid bit, which was cleared", e.DropRights()
}

// setTop changes the group and mode of the top folder, not its owner.
func setTop(dir string, gid int, mode uint32) error {
	d, err := OpenDir(unix.AT_FDCWD, dir)
	if err != nil {
		return err
	}
	defer d.Close()
	const keep = -1
	return errors.Join(unix.Fchown(fd(d), keep, gid), unix.Fchmod(fd(d), mode))
}

// HandOver gives what is root's among the paths, and below those that are
// directories, to the owner of the project: abl that a person ran as root in
// their own project must leave nothing there that needs root again. The paths
// are relative to the project, and a missing one is none. It does nothing
// unless abl is root and the project is not. A file with several names is left
// as it is, since one of them may be elsewhere.
func HandOver(project string, paths ...string) error {
	return handOver(project, paths, true)
}

// MkdirAll makes the directory at path, which is relative to the project, and
// what is missing above it. It follows no link below the project. Like HandOver it leaves none
// of them root's.
func MkdirAll(project, path string) error {
	var all []string
	for ; path != "."; path = filepath.Dir(path) {
		all = append(all, path)
	}
	for _, path := range slices.Backward(all) {
		err := os.Mkdir(filepath.Join(project, path), 0o755)
		if info, lerr := os.Lstat(filepath.Join(project, path)); lerr == nil && !info.IsDir() {
			err = errors.New("a file or a link is in the way: move it away")
		} else if lerr == nil {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("cannot make the directory %q: %w", path, err)
		}
	}
	return handOver(project, all, false)
}

func handOver(project string, paths []string, whole bool) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var top unix.Stat_t
	if err := unix.Stat(project, &top); err != nil {
		return fmt.Errorf("cannot tell whose %q is: %w", project, err)
	}
	if top.Uid == 0 {
		return nil
	}
	give := func(e Entry) error {
		if e.Stat.Uid != 0 || e.shared() {
			return nil
		}
		return e.chown(int(top.Uid), int(top.Gid))
	}
	for _, path := range paths {
		if err := visit(project, path, whole, give); err != nil && !errors.Is(err, ErrAbsent) {
			return fmt.Errorf("cannot hand %q over: %w", path, err)
		}
	}
	return nil
}

// visit visits what stands at path and, for the whole of a directory, what is in it.
func visit(project, path string, whole bool, look func(Entry) error) error {
	dir, err := OpenDir(unix.AT_FDCWD, filepath.Join(project, filepath.Dir(path)))
	if err != nil {
		return err
	}
	defer dir.Close()
	e := Entry{Dir: fd(dir), Name: filepath.Base(path), below: func(string) string { return path }}
	if e.Stat, err = lstat(e.Dir, e.Name); err == nil {
		err = look(e)
	}
	if err == nil && whole && e.Kind() == unix.S_IFDIR {
		err = walk(e.Dir, e.Name, gitDir, look)
	}
	return err
}

// Reopen lets the owner of dir, and of these names in it, read and write them again:
// whoever shares them may have taken every right away. Links are left alone, and
// what is not there is no error. Nothing that could exchange them may run.
func Reopen(dir string, names ...string) error {
	for _, name := range append([]string{""}, names...) {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot look at %q: %w", path, err)
		}
		rights := map[fs.FileMode]fs.FileMode{0: 0o600, fs.ModeDir: 0o700}[info.Mode().Type()]
		if info.Mode()&rights == rights {
			continue
		}
		if err := os.Chmod(path, info.Mode()|rights); err != nil {
			return fmt.Errorf("cannot open to its owner: %w", err)
		}
	}
	return nil
}
