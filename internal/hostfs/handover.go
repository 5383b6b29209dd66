package hostfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// HandOver gives what is root's among the paths, and below those that are
// directories, to the owner of the project: abl that a person ran as root in
// their own project must leave nothing there that needs root again. The paths
// are relative to the project, and a missing one is none. It does nothing
// unless abl is root and the project is not. A file with several names is left
// as it is, since one of them may be elsewhere.
func HandOver(project string, paths ...string) error {
	to, err := heirOf(project)
	if err != nil || to == nil {
		return err
	}
	for _, path := range paths {
		if err := to.whole(project, path); err != nil {
			return fmt.Errorf("cannot hand %q over: %w", path, err)
		}
	}
	return nil
}

// MkdirAll makes the directory at path, which is relative to the project, and
// what is missing above it. Like HandOver it leaves none of them root's.
func MkdirAll(project, path string) error {
	if err := os.MkdirAll(filepath.Join(project, path), 0o755); err != nil {
		return err
	}
	to, err := heirOf(project)
	if err != nil || to == nil {
		return err
	}
	for at := path; at != "."; at = filepath.Dir(at) {
		if _, err := to.one(project, at); err != nil {
			return fmt.Errorf("cannot hand %q over: %w", at, err)
		}
	}
	return nil
}

// heir is who gets what root made.
type heir struct{ uid, gid int }

// heirOf is nil where there is nothing to hand over.
func heirOf(project string) (*heir, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	var top unix.Stat_t
	if err := unix.Stat(project, &top); err != nil {
		return nil, fmt.Errorf("cannot tell whose %q is: %w", project, err)
	}
	if top.Uid == 0 {
		return nil, nil
	}
	return &heir{int(top.Uid), int(top.Gid)}, nil
}

// whole gives a path and all below it.
func (h heir) whole(project, path string) error {
	isDir, err := h.one(project, path)
	if err != nil || !isDir {
		return err
	}
	return Walk(filepath.Join(project, path), gitDir, h.give)
}

// one gives what stands at path, and says whether it is a directory.
func (h heir) one(project, path string) (isDir bool, err error) {
	dir, err := openDir(unix.AT_FDCWD, filepath.Join(project, filepath.Dir(path)))
	if err == nil {
		defer unix.Close(dir)
		e := Entry{Dir: dir, Name: filepath.Base(path), below: func(string) string { return path }}
		if err = unix.Fstatat(dir, e.Name, &e.Stat, unix.AT_SYMLINK_NOFOLLOW); err == nil {
			return e.Kind() == unix.S_IFDIR, h.give(e)
		}
	}
	if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	return false, err
}

func (h heir) give(e Entry) error {
	if e.Stat.Uid != 0 || e.Kind() == unix.S_IFREG && e.Stat.Nlink > 1 {
		return nil
	}
	return e.chown(h.uid, h.gid)
}
