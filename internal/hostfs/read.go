// Package hostfs reads, writes, walks, locks and removes files of the host of
// which agents may have made anything: links, FIFOs, devices, endless files,
// folders without end. It follows no link, waits for nobody and reads past no
// limit. It knows files alone, and nothing of what abl keeps in them.
package hostfs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// The kinds of refusal, for errors.Is. Any other error, a missing permission
// say, is none of them and must not be taken for an absent file.
var (
	ErrAbsent     = errors.New("is not there")
	ErrNotRegular = errors.New("is not a regular file")
	ErrTooLarge   = errors.New("is too large")
	ErrChanged    = errors.New("changed while it was read")
)

// Read returns the content of the regular file name below dir, of at most max
// bytes. Neither dir nor anything on the way to name may be a link. An error
// names the file, and is one of the kinds where it can be.
func Read(dir, name string, max int64) ([]byte, error) {
	data, err := readFile(dir, name, max)
	if err != nil {
		return nil, fmt.Errorf("cannot read %q: %w", name, err)
	}
	return data, nil
}

func readFile(dir, name string, max int64) ([]byte, error) {
	f, before, err := openFile(dir, name, max)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(&unchanged{f, before}, max+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > max {
		return nil, tooLarge(max)
	}
	return data, nil
}

// Open opens the regular file name below dir for reading, as Read does. It is
// for files that grow while they are read, so its caller bounds what it takes.
func Open(dir, name string) (*os.File, error) {
	f, was, err := openFile(dir, name, math.MaxInt64)
	if err == nil {
		var now unix.Stat_t
		if err = unix.Fstat(int(f.Fd()), &now); err == nil && !same(was, now) {
			err = ErrChanged
		}
		if err == nil {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("cannot open %q: %w", name, err)
}

// open opens what is a regular file of at most max bytes, and says what it was
// just before. Whether it still is, the caller compares.
func openFile(dir, name string, max int64) (*os.File, unix.Stat_t, error) {
	var was unix.Stat_t
	parent, base, err := openParent(dir, name)
	if err != nil {
		return nil, was, err
	}
	defer parent.Close()
	if was, err = lstat(parent, base); err != nil {
		return nil, was, err
	}
	if err := regular(was, max); err != nil {
		return nil, was, err
	}
	f, err := openAt(parent, base, reading)
	return f, was, err
}

// reading is how files are opened: a FIFO that takes a file's place just before
// must not make anybody wait.
const reading = unix.O_RDONLY | unix.O_NONBLOCK

// same says whether two looks saw one file of one kind.
func same(a, b unix.Stat_t) bool {
	return a.Dev == b.Dev && a.Ino == b.Ino && a.Mode&unix.S_IFMT == b.Mode&unix.S_IFMT
}

// unchanged reads a file that must be, at its first and at its last byte, the
// one that was looked at.
type unchanged struct {
	file *os.File
	was  unix.Stat_t
}

func (u *unchanged) Read(p []byte) (int, error) {
	if err := u.check(); err != nil {
		return 0, err
	}
	n, err := u.file.Read(p)
	if errors.Is(err, io.EOF) {
		if changed := u.check(); changed != nil {
			return n, changed
		}
	}
	return n, err
}

func (u *unchanged) check() error {
	var now unix.Stat_t
	if err := unix.Fstat(int(u.file.Fd()), &now); err != nil {
		return err
	}
	was := u.was
	if !same(was, now) || now.Mode != was.Mode || now.Size != was.Size || now.Mtim != was.Mtim {
		return ErrChanged
	}
	return nil
}

// openParent opens the directory that holds name, one step at a time, and
// returns it with the last element of name.
func openParent(dir, name string) (*os.File, string, error) {
	if name == "" || path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") {
		return nil, "", fmt.Errorf("internal error: %q is not a path below a directory", name)
	}
	at, err := openAt(nil, dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, "", err
	}
	for {
		step, rest, more := strings.Cut(name, "/")
		if !more {
			return at, step, nil
		}
		next, err := openAt(at, step, unix.O_RDONLY|unix.O_DIRECTORY)
		at.Close()
		if err != nil {
			return nil, "", fmt.Errorf("%q %w", step, err)
		}
		at, name = next, rest
	}
}

// openAt opens name in the directory at, or by its path when at is nil, and
// follows no link in the last place.
func openAt(at *os.File, name string, flags int) (*os.File, error) {
	fd := unix.AT_FDCWD
	if at != nil {
		fd = int(at.Fd())
	}
	n, err := retry(func() (int, error) {
		return unix.Openat(fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, ErrAbsent
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil, notRegular(at, name)
	case errors.Is(err, unix.ENXIO): // a FIFO or a socket took the file's place
		return nil, ErrChanged
	case err != nil:
		return nil, err
	}
	return os.NewFile(uintptr(n), name), nil
}

func lstat(at *os.File, name string) (unix.Stat_t, error) {
	var st unix.Stat_t
	_, err := retry(func() (int, error) {
		return 0, unix.Fstatat(int(at.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW)
	})
	if errors.Is(err, unix.ENOENT) {
		return st, ErrAbsent
	}
	return st, err
}

// retry repeats a system call that a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
