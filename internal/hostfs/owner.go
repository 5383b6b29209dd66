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

// unusedID is the user and group id of roles in a project that root owns. Usually no account has it.
const unusedID = 10001

// gitDir keeps its owner: git refuses a repository that another user owns.
const gitDir = ".git"

// Ownership is the owner and mode of a workspace before ChownToRole. The caller saves it, so that ChownBack
// can undo what a crash interrupted.
type Ownership struct {
	UID      int    `json:"uid"` // the role
	GID      int    `json:"gid"`
	OwnerUID int    `json:"owner_uid"` // the owner before
	OwnerGID int    `json:"owner_gid"`
	Mode     uint32 `json:"mode"` // of the top directory
}

// RoleID returns the user and group that roles of the project run as if abl runs as euid, and
// whether the workspaces must change their owner to them. It never returns root or root's group.
func RoleID(project string, euid int) (uid, gid int, chown bool) {
	var st unix.Stat_t
	if err := unix.Stat(project, &st); err != nil {
		return unusedID, unusedID, euid == 0 // assume that root owns it
	}
	return roleID(euid, os.Getegid(), int(st.Uid), int(st.Gid))
}

func roleID(euid, egid, ownerUID, ownerGID int) (uid, gid int, chown bool) {
	switch {
	case euid != 0:
		uid, gid = euid, egid
	case ownerUID != 0:
		uid, gid = ownerUID, ownerGID
	default:
		return unusedID, unusedID, true
	}
	if gid == 0 {
		gid = uid
	}
	return uid, gid, false
}

// OwnershipOf returns the ownership of the workspace dir, for ChownToRole to uid and gid. It changes nothing.
func OwnershipOf(dir string, uid, gid int) (Ownership, error) {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return Ownership{}, fmt.Errorf("cannot stat workspace %q: %w", dir, err)
	}
	if kind(st) != unix.S_IFDIR {
		return Ownership{}, fmt.Errorf("cannot change the owner of workspace %q: it is not a directory", dir)
	}
	return Ownership{uid, gid, int(st.Uid), int(st.Gid), uint32(st.Mode) & 0o7777}, nil
}

// ChownToRole makes the role the owner of everything in dir except .git. The owner of dir
// itself stays, but the group of the role may write there. ChownToRole skips other file systems, and
// files with hard links outside of dir, for example in a package store, which no role may write.
// It is idempotent.
func ChownToRole(dir string, l Ownership) error {
	met := map[uint64]uint64{} // number of visited names of an inode with several
	err := Walk(dir, gitDir, func(e Entry) error {
		if e.shared() {
			met[e.Stat.Ino]++
			if met[e.Stat.Ino] < uint64(e.Stat.Nlink) {
				return nil // its other names follow, or are outside of dir
			}
		}
		return e.chown(l.UID, l.GID)
	})
	if err == nil {
		err = setTop(dir, l.GID, l.Mode|0o770)
	}
	if err != nil {
		return fmt.Errorf("cannot change the owner of workspace %q: %w", dir, err)
	}
	return nil
}

// shared reports whether the entry is a file with several names.
func (e Entry) shared() bool { return e.Kind() == unix.S_IFREG && e.Stat.Nlink > 1 }

// chown changes the owner of the entry. It does not follow links.
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

// maxShown is the maximum number of findings that ChownBack lists.
const maxShown = 50

// ChownBack makes the former owner the owner of the role's files in dir. It first clears their setuid
// and setgid bits, which would otherwise give the owner's rights. It returns where it found such
// bits, devices, FIFOs and sockets. It is idempotent, and does nothing if dir does not exist.
func ChownBack(dir string, l Ownership) (found []string, err error) {
	more := 0
	err = Walk(dir, gitDir, func(e Entry) error {
		if int(e.Stat.Uid) != l.UID {
			return nil
		}
		odd, err := e.clearSpecialBits()
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
		return found, fmt.Errorf("cannot restore the owner of workspace %q: %w", dir, err)
	}
	return found, nil
}

const special = unix.S_ISUID | unix.S_ISGID

// clearSpecialBits clears the setuid and setgid bits of a file or directory. It describes a suspicious entry,
// and returns "" for any other.
func (e Entry) clearSpecialBits() (odd string, err error) {
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

// setTop changes the group and the mode of the top directory, but not its owner.
func setTop(dir string, gid int, mode uint32) error {
	d, err := OpenDir(unix.AT_FDCWD, dir)
	if err != nil {
		return err
	}
	defer d.Close()
	const keep = -1
	return errors.Join(unix.Fchown(fd(d), keep, gid), unix.Fchmod(fd(d), mode))
}

// ChownToUser makes the owner of the project the owner of the given paths, and of everything below
// them, that root owns. After abl has run as root in a user's project, the user can then work
// without root. The paths are relative to the project and may be missing. ChownToUser skips files
// with several hard links, because one may be outside. It does nothing unless abl runs as root and
// another user owns the project.
func ChownToUser(project string, paths ...string) error {
	return chownToUser(project, paths, true)
}

// MkdirAll creates the directory at path, which is relative to the project, with its parents. It
// follows no links below the project. If abl runs as root, the new directories belong to the owner
// of the project, as with ChownToUser.
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
			return fmt.Errorf("cannot create directory %q: %w", path, err)
		}
	}
	return chownToUser(project, all, false)
}

// chownToUser gives paths to the owner of the project if abl runs as root. whole includes everything
// below them.
func chownToUser(project string, paths []string, whole bool) error {
	if os.Geteuid() != 0 {
		return nil
	}
	var top unix.Stat_t
	if err := unix.Stat(project, &top); err != nil {
		return fmt.Errorf("cannot determine the owner of %q: %w", project, err)
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
			return fmt.Errorf("cannot change the owner of %q: %w", path, err)
		}
	}
	return nil
}

// visit calls look for the entry at path and, if whole is set, for everything below it.
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
		err = WalkAt(e.Dir, e.Name, gitDir, look)
	}
	return err
}

// Reopen restores the owner's read and write permissions on dir and the named files in it: a role
// that shares them may have removed all permissions. It skips links and missing files. No process
// that could replace the files may run.
func Reopen(dir string, names ...string) error {
	for _, name := range append([]string{""}, names...) {
		path := filepath.Join(dir, name)
		info, err := os.Lstat(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot stat %q: %w", path, err)
		}
		rights := map[fs.FileMode]fs.FileMode{0: 0o600, fs.ModeDir: 0o700}[info.Mode().Type()]
		if info.Mode()&rights == rights {
			continue
		}
		if err := os.Chmod(path, info.Mode()|rights); err != nil {
			return fmt.Errorf("cannot restore the owner's permissions: %w", err)
		}
	}
	return nil
}
