// Package gitdir writes into a .git folder so that a crash at any moment
// leaves either the old state or the new one, and so that a person's git
// running at the same time is respected.
//
// Every file is replaced whole: temporary file, fsync, rename, fsync of the
// folder. Locks are git's own lock files. The work tree is no business of its own.
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

// tempPrefix marks abl's temporary files. They stand in the top of .git, since below refs
// every file without .lock at its end is a ref, or among the packs, where git gc sweeps tmp_.
const tempPrefix = "tmp_abl_"

// Dir is a .git folder.
type Dir struct {
	Path     string
	uid, gid int // -1: leave what is written to the running user
}

// At names a .git folder whose owner is to own what is written into it. Only
// root can give files away, and only then need it.
func At(path string, owner fs.FileInfo) Dir {
	d := Dir{Path: path, uid: -1, gid: -1}
	if st, ok := owner.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 && st.Uid != 0 {
		d.uid, d.gid = int(st.Uid), int(st.Gid)
	}
	return d
}

// Join is a path below the folder.
func (d Dir) Join(parts ...string) string {
	return filepath.Join(append([]string{d.Path}, parts...)...)
}

// temp makes a temporary file in a folder of .git.
func (d Dir) temp(folder string) (*os.File, error) {
	f, err := os.CreateTemp(d.Join(folder), tempPrefix+"*")
	if err != nil {
		return nil, err
	}
	return f, d.give(f.Chown)
}

// drop takes away a temporary file that has not got its name.
func drop(f *os.File) {
	f.Close()
	os.Remove(f.Name())
}

// Unnamed makes a file that is gone when it is closed.
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

// Mkdir makes a folder and those above it, durably.
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
		return Foreign("%q is a file or a link, want a folder: replace it by what git makes there", path)
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

// Replace writes a file of .git whole. Its folder must exist.
func (d Dir) Replace(name string, data []byte) error {
	return d.fill(".", name, 0o644, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// fill writes a file by way of one in a folder on the same disk.
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

// finish gives a temporary file its name when it is on the disk, durably.
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

// Sweep removes temporary files that a killed abl left in the top of .git and
// among its packs. A fresh one may belong to an abl that still runs.
func (d Dir) Sweep(now time.Time) {
	for _, folder := range []string{".", packs} {
		left, _ := hostfs.List(d.Path, folder, maxNames) // a folder that cannot be read has nothing to sweep
		for _, f := range left {
			if strings.HasPrefix(f.Name, tempPrefix) && now.Sub(f.Mod) > time.Hour {
				os.Remove(d.Join(folder, f.Name))
			}
		}
	}
}

// ErrForeign marks a repository in a state that a person must decide about.
// The message of an error that Is this says what and what to do.
var ErrForeign = errors.New("the history needs a person's decision")

type foreign string

func (f foreign) Error() string        { return string(f) }
func (f foreign) Is(target error) bool { return target == ErrForeign }

// Foreign is an error that Is ErrForeign.
func Foreign(format string, args ...any) error { return foreign(fmt.Sprintf(format, args...)) }

// mark is the content of a lock that abl holds. Git never reads a lock's
// content, and its own locks hold the new file's bytes.
const mark = "abl holds this lock\n"

const poll = 20 * time.Millisecond

// Lock takes git's lock file for a file of .git, waiting for at most wait
// while another holds it. The lock is held by a flock as well, so that the
// next abl can tell, and clear, a lock whose holder was killed.
func (d Dir) Lock(ctx context.Context, name string, wait time.Duration) (unlock func(), err error) {
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
	for deadline := time.Now().Add(wait); ; {
		// A link appears whole, with its mark and its flock, or not at all.
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

// clearDead removes a lock that an abl made whose process is gone: nobody
// holds its flock any more. It says whether trying again is worth it.
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
	// Whoever holds the flock of the file at this path may remove it; another
	// file may have come there meanwhile.
	mine, err1 := f.Stat()
	there, err2 := os.Lstat(path)
	if err1 == nil && err2 == nil && os.SameFile(mine, there) {
		os.Remove(path)
	}
	return true
}

func heldBy(path string) error {
	age := "a moment"
	if info, err := os.Lstat(path); err == nil {
		age = time.Since(info.ModTime()).Round(time.Second).String()
	}
	return Foreign("cannot take the lock %q: it is %s old; when no git works on %q any more, remove it",
		path, age, strings.TrimSuffix(path, ".lock"))
}
