package hostfs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// tempMark is in the name of every temporary file, and in no other's.
const tempMark = ".abl-tmp-"

// Write replaces the file at path by one with this content and exactly this
// mode. A link at path is replaced, not followed. When Write returns without
// an error, the content survives a power cut.
func Write(path string, data []byte, perm os.FileMode) error {
	return Fill(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Put is Write that does not wait for the disk: the file is there whole or not at all, but
// perhaps not after a power cut.
func Put(path string, data []byte, perm os.FileMode) (err error) {
	defer failed(&err, "write", path)
	return replace(path, perm, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// Fill is Write for content of any length, which fill writes.
func Fill(path string, perm os.FileMode, fill func(io.Writer) error) (err error) {
	defer failed(&err, "write", path)
	err = replace(path, perm, func(f *os.File) error {
		if err := fill(f); err != nil {
			return err
		}
		return f.Sync()
	})
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// replace gives a temporary file its name when fill has written it.
func replace(path string, perm os.FileMode, fill func(*os.File) error) error {
	base := filepath.Base(path)
	const longest = 100 // of a name: with the mark it must not be longer than a directory allows
	f, err := os.CreateTemp(filepath.Dir(path), "."+base[:min(len(base), longest)]+tempMark+"*")
	if err != nil {
		return err
	}
	if err = f.Chmod(perm); err == nil { // what Create gave is subject to the umask
		err = fill(f)
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// SyncDir makes what was created, renamed or removed in dir survive a power
// cut.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SweepTemps removes from dir the temporary files that a killed Write left. The
// caller holds the lock under which dir is written. A missing dir has none.
func SweepTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), ".") && strings.Contains(e.Name(), tempMark) {
			err = errors.Join(err, os.Remove(filepath.Join(dir, e.Name())))
		}
	}
	if err != nil {
		return fmt.Errorf("cannot sweep temporary files: %w", err)
	}
	return nil
}

// SweepTempsBelow is SweepTemps for dir and every directory below it. No role may write there.
func SweepTempsBelow(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("cannot sweep temporary files: %w", err)
		case e.IsDir():
			return SweepTemps(path)
		}
		return nil
	})
}

// ShortWrite says that an append stopped in the middle, on a full disk say.
// What it left is cut off again by CutTornTail.
type ShortWrite struct {
	Written, Of int // bytes
	Err         error
}

// Error tells how far the write came, and why no further.
func (e *ShortWrite) Error() string {
	return fmt.Sprintf("only %d of %d bytes were written: %v", e.Written, e.Of, e.Err)
}

// Unwrap is the cause, ENOSPC for example.
func (e *ShortWrite) Unwrap() error { return e.Err }

// Append adds data to the file at path with one write, and creates the file
// with mode perm where there is none. When it returns without an error, the
// data survives a power cut. A link at path is refused. Its error is or wraps
// a *ShortWrite when a part was written.
func Append(path string, data []byte, perm os.FileMode) (err error) {
	defer failed(&err, "append to", path)
	_, err = os.Lstat(path)
	created := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, perm)
	if err != nil {
		return err
	}
	// os.File would go on after a short write, and another writer's line could
	// come between.
	n, err := unix.Write(fd(f), data)
	if n < len(data) && (n > 0 || err == nil) {
		err = &ShortWrite{Written: n, Of: len(data), Err: cmp.Or(err, io.ErrShortWrite)}
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil || !created {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// CutTornTail cuts off what follows the last line end of the file at path: a
// line whose writing was cut short. It returns what it cut, so that the caller
// can keep it, nil when there was nothing. A missing file has none.
func CutTornTail(path string) (cut []byte, err error) {
	defer failed(&err, "repair the end of", path)
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = errors.New("it is not a regular file")
	}
	if err != nil {
		return nil, err
	}
	all, err := io.ReadAll(f)
	whole := bytes.LastIndexByte(all, '\n') + 1
	if err != nil || whole == len(all) {
		return nil, err
	}
	return all[whole:], errors.Join(f.Truncate(int64(whole)), f.Sync())
}
