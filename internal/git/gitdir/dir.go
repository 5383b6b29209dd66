// Package gitdir writes into a .git directory so that a crash at any moment leaves either the old
// or the new state, and so that the user's git can run at the same time.
//
// It replaces every file atomically: temporary file, fsync, rename, fsync of the directory. It uses
// git's lock files. It does not access the work tree.
package gitdir

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"abl/internal/hostfs"
)

// tempPrefix is the prefix of abl's temporary files. They are at the top of .git, because git
// treats every file below refs as a ref, or among the packs, where git gc removes files with tmp_.
const tempPrefix = "tmp_abl_"

// Dir is a .git directory.
type Dir struct {
	Path     string
	Wait     time.Duration // how long to wait for a lock of another git
	uid, gid int           // owner of new files, -1 for the current user
}

const lockWait = 5 * time.Second

// At returns the .git directory at path. If abl runs as root, new files get the owner of owner.
func At(path string, owner fs.FileInfo) Dir {
	d := Dir{path, lockWait, -1, -1}
	if st, ok := owner.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 && st.Uid != 0 {
		d.uid, d.gid = int(st.Uid), int(st.Gid)
	}
	return d
}

// Join returns a path below the directory.
func (d Dir) Join(parts ...string) string {
	return filepath.Join(append([]string{d.Path}, parts...)...)
}

// temp creates a temporary file in a subdirectory of .git.
func (d Dir) temp(folder string) (*os.File, error) {
	f, err := os.CreateTemp(d.Join(folder), tempPrefix+"*")
	if err != nil {
		return nil, err
	}
	return f, d.give(f.Chown)
}

// drop removes a temporary file.
func drop(f *os.File) {
	f.Close()
	os.Remove(f.Name())
}

// TempDir creates a temporary directory at the top of .git and returns its path. The directory for
// temporary files of the system may be small.
func (d Dir) TempDir() (string, error) { return os.MkdirTemp(d.Path, tempPrefix+"*") }

// Unnamed creates a file without a name, which disappears when it is closed.
func (d Dir) Unnamed() (*os.File, error) {
	f, err := d.temp(".")
	if err == nil {
		err = os.Remove(f.Name())
	}
	return f, err
}

func (d Dir) give(chown func(uid, gid int) error) error {
	if d.uid < 0 {
		return nil
	}
	return chown(d.uid, d.gid)
}

// Mkdir creates a directory and its parents durably.
func (d Dir) Mkdir(name string) error {
	path := d.Join(name)
	if name == "." {
		return nil
	}
	if err := d.Mkdir(filepath.Dir(name)); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err == nil && !info.IsDir() {
		return Foreign("%q is a file or a link, want a directory: restore the directory that git creates there", path)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := d.give(func(u, g int) error { return os.Lchown(path, u, g) }); err != nil {
		return err
	}
	return hostfs.SyncDir(filepath.Dir(path))
}

// Replace atomically writes a file of .git. Its directory must exist.
func (d Dir) Replace(name string, data []byte) error {
	return d.fill(".", name, 0o644, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// fill writes a file through a temporary file in folder, which is on the same disk.
func (d Dir) fill(folder, name string, perm fs.FileMode, write func(io.Writer) error) error {
	f, err := d.temp(folder)
	if err == nil {
		defer drop(f)
		err = write(f)
	}
	if err == nil {
		err = d.finish(f, name, perm)
	}
	if err != nil {
		return fmt.Errorf("cannot write %q: %w", d.Join(name), err)
	}
	return nil
}

// finish syncs a temporary file and renames it to name durably.
func (d Dir) finish(f *os.File, name string, perm fs.FileMode) error {
	err := errors.Join(f.Chmod(perm), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), d.Join(name))
	}
	if err != nil {
		return err
	}
	return hostfs.SyncDir(filepath.Dir(d.Join(name)))
}

// Sweep removes the temporary files and directories that a killed abl left at the top of .git and
// among the packs more than a day ago. A recent one may belong to a running abl.
func (d Dir) Sweep(now time.Time) {
	for _, folder := range []string{".", packs} {
		left, _ := os.ReadDir(d.Join(folder)) // ignore a directory that cannot be read
		for _, e := range left {
			info, err := e.Info()
			if err == nil && strings.HasPrefix(e.Name(), tempPrefix) && now.Sub(info.ModTime()) > 24*time.Hour {
				os.RemoveAll(d.Join(folder, e.Name()))
			}
		}
	}
}

// ErrForeign marks a state of a repository that only the user can resolve. The message of the error
// says what to do.
var ErrForeign = errors.New("you have to decide about the history")

type foreign string

func (f foreign) Error() string        { return string(f) }
func (f foreign) Is(target error) bool { return target == ErrForeign }

// Foreign returns an error that matches ErrForeign.
func Foreign(format string, args ...any) error { return foreign(fmt.Sprintf(format, args...)) }

// mark is the content of a lock file of abl. git never reads the content of lock files, and its own
// contain the new version of the file.
const mark = "abl holds this lock\n"

const poll = 20 * time.Millisecond

// Lock takes git's lock file for a file of .git. It waits up to d.Wait if another process holds it.
// The lock file also has a flock, so that the next abl can detect and remove the lock file of a
// killed abl.
func (d Dir) Lock(ctx context.Context, name string) (unlock func(), err error) {
	path := d.Join(name) + ".lock"
	ours, err := d.temp(".")
	if err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", d.Join(name), err)
	}
	held := false
	defer func() {
		os.Remove(ours.Name())
		if !held {
			ours.Close()
		}
	}()
	_, err = ours.WriteString(mark)
	if err = errors.Join(err, syscall.Flock(int(ours.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)); err != nil {
		return nil, fmt.Errorf("cannot lock %q: %w", d.Join(name), err)
	}
	for deadline := time.Now().Add(d.Wait); ; {
		// A link is atomic: the lock file appears with its content and its flock.
		err := os.Link(ours.Name(), path)
		switch {
		case err == nil:
			held = true
			return func() { os.Remove(path); ours.Close() }, nil
		case !errors.Is(err, fs.ErrExist):
			return nil, fmt.Errorf("cannot lock %q: %w", d.Join(name), err)
		case clearDead(path):
			continue
		case time.Now().After(deadline):
			return nil, heldBy(path)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(poll):
		}
	}
}

// clearDead removes the lock file of an abl that no longer runs, because nobody holds its flock. It
// reports whether the caller should try again.
func clearDead(path string) bool {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer f.Close()
	head := make([]byte, len(mark))
	if n, _ := f.Read(head); string(head[:n]) != mark {
		return false
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return false
	}
	// The holder of the flock may remove the file, unless another file has replaced it
	// meanwhile.
	mine, err1 := f.Stat()
	there, err2 := os.Lstat(path)
	if err1 == nil && err2 == nil && os.SameFile(mine, there) {
		os.Remove(path)
	}
	return true
}

// heldBy returns the error of a lock that another process holds.
func heldBy(path string) error {
	age := "a moment"
	if info, err := os.Lstat(path); err == nil {
		age = time.Since(info.ModTime()).Round(time.Second).String()
	}
	return Foreign("cannot take the lock %q, which is %s old: if no git process uses %q anymore, remove the lock file",
		path, age, strings.TrimSuffix(path, ".lock"))
}
