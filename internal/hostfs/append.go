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

	"golang.org/x/sys/unix"
)

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
func Append(path string, data []byte, perm os.FileMode) error {
	if err := appendTo(path, data, perm); err != nil {
		return fmt.Errorf("cannot append to %q: %w", path, err)
	}
	return nil
}

func appendTo(path string, data []byte, perm os.FileMode) error {
	_, err := os.Lstat(path)
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
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		cut, err = cutTail(f)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot repair the end of %q: %w", path, err)
	}
	return cut, nil
}

func cutTail(f *os.File) ([]byte, error) {
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
