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

// tempMark is a part of the name of every temporary file.
const tempMark = ".abl-tmp-"

// Write atomically replaces the file at path. The new file has exactly the mode perm. Write
// replaces a link at path. If it returns nil, the content survives a power failure.
func Write(path string, data []byte, perm os.FileMode) error {
	return Fill(path, perm, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

// Put is like Write without a sync: the file is replaced atomically, but may be lost in a power
// failure.
func Put(path string, data []byte, perm os.FileMode) (err error) {
	defer wrapError(&err, "write", path)
	return writeAndRename(path, perm, func(f *os.File) error {
		_, err := f.Write(data)
		return err
	})
}

// Fill is like Write, but fill writes the content.
func Fill(path string, perm os.FileMode, fill func(io.Writer) error) (err error) {
	defer wrapError(&err, "write", path)
	err = writeAndRename(path, perm, func(f *os.File) error {
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

// writeAndRename renames a temporary file to path after fill has written it.
func writeAndRename(path string, perm os.FileMode, fill func(*os.File) error) error {
	base := filepath.Base(path)
	const longest = 100 // leaves room for the mark within the limit for names
	f, err := os.CreateTemp(filepath.Dir(path), "."+base[:min(len(base), longest)]+tempMark+"*")
	if err != nil {
		return err
	}
	if err = f.Chmod(perm); err == nil { // the umask applied to CreateTemp
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

// SyncDir syncs dir, so that created, renamed and removed entries survive a power failure.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// SweepTemps removes the temporary files in dir that a killed Write left. The caller holds the lock
// for writes to dir. A missing dir is not an error.
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
		return fmt.Errorf("cannot remove temporary files: %w", err)
	}
	return nil
}

// SweepTempsBelow is SweepTemps for dir and every directory below it. No role may have write access there.
func SweepTempsBelow(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("cannot remove temporary files: %w", err)
		case e.IsDir():
			return SweepTemps(path)
		}
		return nil
	})
}

// ShortWrite is the error for an incomplete append, for example on a full disk. CutTornTail removes
// the incomplete part.
type ShortWrite struct {
	Written, Of int // bytes
	Err         error
}

// Error returns the number of written bytes and the cause.
func (e *ShortWrite) Error() string {
	return fmt.Sprintf("only %d of %d bytes were written: %v", e.Written, e.Of, e.Err)
}

// Unwrap returns the cause, such as ENOSPC.
func (e *ShortWrite) Unwrap() error { return e.Err }

// Append adds data to the file at path with one write. It creates a missing file with mode perm and
// does not follow links. If it returns nil, the data survives a power failure. It returns a
// *ShortWrite if it wrote only a part.
func Append(path string, data []byte, perm os.FileMode) (err error) {
	defer wrapError(&err, "append to", path)
	_, err = os.Lstat(path)
	created := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, perm)
	if err != nil {
		return err
	}
	// os.File would continue after a short write, and another writer's line could get in
	// between.
	n, err := unix.Write(fd(f), data)
	if n < len(data) && (n > 0 || err == nil) {
		err = &ShortWrite{Written: n, Of: len(data), Err: cmp.Or(err, io.ErrShortWrite)}
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil || !created {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// CutTornTail removes an incomplete last line from the file at path and returns it. It returns nil
// if there is no such line or no file.
func CutTornTail(path string) (cut []byte, err error) {
	defer wrapError(&err, "repair the end of", path)
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
