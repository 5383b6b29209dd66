// Package hostfs reads, writes, walks, locks and removes files on the host that agents may have
// replaced by links, FIFOs, devices, endless files or deeply nested directories.
//
// It follows no links, never blocks and limits the size of everything it reads. It opens one path
// element at a time with system calls that Linux and macOS share.
package hostfs

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Errors for use with errors.Is. Any other error, such as a missing permission, must not be
// treated as an absent file.
var (
	ErrAbsent     = errors.New("does not exist")
	ErrNotRegular = errors.New("is not a regular file")
	ErrTooLarge   = errors.New("is too large")
	ErrChanged    = errors.New("changed while abl read it")
)

// Read returns the content of the regular file name below dir, at most max bytes. Neither dir nor
// any element of name may be a link. An error contains the name and wraps one of the errors above
// if it applies.
func Read(dir, name string, max int64) (data []byte, err error) {
	defer wrapError(&err, "read", name)
	f, was, err := openFile(dir, name, max)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, max+1))
	if err == nil {
		err = unchanged(f, was)
	}
	if err == nil && int64(len(data)) > max { // files of procfs have no size
		err = tooLarge(max)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// unchanged returns ErrChanged if f differs from was.
func unchanged(f *os.File, was unix.Stat_t) error {
	now, err := fstat(f)
	if err == nil && (!same(now, was) || now.Mode != was.Mode || now.Size != was.Size || now.Mtim != was.Mtim) {
		err = ErrChanged
	}
	return err
}

// wrapError adds the operation and the name to an error.
func wrapError(err *error, do, name string) {
	if *err != nil {
		*err = fmt.Errorf("cannot %s %q: %w", do, name, *err)
	}
}

// Open opens the regular file name below dir for reading, with the checks of Read. It is for files
// that grow while the caller reads. The caller limits the number of bytes.
func Open(dir, name string) (f *os.File, err error) {
	defer wrapError(&err, "open", name)
	f, _, err = openFile(dir, name, math.MaxInt64)
	return f, err
}

// openFile opens a regular file of at most max bytes. It also returns the file's status from just
// before.
func openFile(dir, name string, max int64) (*os.File, unix.Stat_t, error) {
	parent, base, err := openParent(dir, name)
	if err != nil {
		return nil, unix.Stat_t{}, err
	}
	defer parent.Close()
	was, err := lstat(fd(parent), base)
	switch {
	case err != nil:
		return nil, was, err
	case kind(was) != unix.S_IFREG:
		return nil, was, fmt.Errorf("%w but %s", ErrNotRegular, kindOf(was))
	case was.Size > max:
		return nil, was, tooLarge(max)
	}
	f, err := openSame(fd(parent), base, was)
	return f, was, err
}

// openSame opens name if it is still the file with the status was.
func openSame(at int, name string, was unix.Stat_t) (*os.File, error) {
	f, err := openAt(at, name, reading)
	if err != nil {
		return nil, err
	}
	now, err := fstat(f)
	if err == nil && !same(now, was) {
		err = ErrChanged
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// same reports whether two statuses are of the same file.
func same(a, b unix.Stat_t) bool { return a.Dev == b.Dev && a.Ino == b.Ino && kind(a) == kind(b) }

// reading is the flags for opening files. With O_NONBLOCK, a FIFO that replaces the file does not
// block.
const reading = unix.O_RDONLY | unix.O_NONBLOCK

func tooLarge(max int64) error {
	return fmt.Errorf("%w (more than %d bytes)", ErrTooLarge, max)
}

// File is a regular file in a directory.
type File struct {
	Name string
	Size int64 // bytes
	Mod  time.Time
}

// List returns the regular files of the directory name below dir, sorted by name. "." is dir
// itself. It omits links, directories and special files. It returns ErrTooLarge if the directory
// has more than max entries.
func List(dir, name string, max int) (files []File, err error) {
	err = eachIn(dir, name, max, func(name string, st unix.Stat_t) {
		if kind(st) == unix.S_IFREG {
			files = append(files, File{name, st.Size, time.Unix(st.Mtim.Unix())})
		}
	})
	return files, err
}

// Names returns the names of all entries of the directory name below dir, sorted. It fails like
// List.
func Names(dir, name string, max int) (names []string, err error) {
	err = eachIn(dir, name, max, func(name string, _ unix.Stat_t) { names = append(names, name) })
	return names, err
}

func eachIn(dir, name string, max int, each func(name string, st unix.Stat_t)) (err error) {
	defer wrapError(&err, "list", name)
	d, _, err := openParent(dir, path.Join(name, "any"))
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(max + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if len(names) > max {
		return fmt.Errorf("%w (more than %d entries)", ErrTooLarge, max)
	}
	slices.Sort(names)
	for _, name := range names {
		st, err := lstat(fd(d), name)
		if err == nil {
			each(name, st)
		} else if !errors.Is(err, ErrAbsent) { // removed after Readdirnames
			return err
		}
	}
	return nil
}

// Plain returns an error if name in dir, or anything below it, is a link, FIFO, socket or device.
// It ignores a missing name, and paths below name for which except returns true.
func Plain(dir, name string, except func(string) bool) error {
	refuse := func(e Entry) error {
		if k := e.Kind(); k == unix.S_IFREG || k == unix.S_IFDIR || except != nil && except(e.Path()) {
			return nil
		}
		return fmt.Errorf("%q is %s", path.Join(name, e.Path()), e.What())
	}
	st, err := lstat(unix.AT_FDCWD, path.Join(dir, name))
	switch {
	case errors.Is(err, ErrAbsent):
		return nil
	case err == nil && kind(st) == unix.S_IFDIR:
		return Walk(path.Join(dir, name), "", refuse)
	case err == nil && kind(st) != unix.S_IFREG:
		err = fmt.Errorf("%q is %s", name, kindOf(st))
	}
	return err
}

// openParent opens the parent directory of name, one element at a time. It returns it with the last
// element.
func openParent(dir, name string) (*os.File, string, error) {
	if name == "" || path.IsAbs(name) || path.Clean(name) != name || name == ".." || strings.HasPrefix(name, "../") {
		return nil, "", fmt.Errorf("internal error: %q is not a path below a directory", name)
	}
	at, err := OpenDir(unix.AT_FDCWD, dir)
	if err != nil {
		return nil, "", err
	}
	for {
		step, rest, more := strings.Cut(name, "/")
		if !more {
			return at, step, nil
		}
		next, err := OpenDir(fd(at), step)
		at.Close()
		if err != nil {
			return nil, "", fmt.Errorf("%q %w", step, err)
		}
		at, name = next, rest
	}
}

// OpenDir opens the directory name in the open directory at. With unix.AT_FDCWD name is a path.
func OpenDir(at int, name string) (*os.File, error) {
	return openAt(at, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// openAt opens name in the open directory at. It does not follow a link as the last element.
func openAt(at int, name string, flags int) (*os.File, error) {
	n, err := -1, error(unix.EINTR)
	for errors.Is(err, unix.EINTR) {
		n, err = unix.Openat(at, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	}
	switch {
	case errors.Is(err, unix.ENOENT):
		return nil, ErrAbsent
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return nil, notDirectory(at, name)
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.EOPNOTSUPP): // a FIFO or a socket replaced the file
		return nil, ErrChanged
	case err != nil:
		return nil, err
	}
	return os.NewFile(uintptr(n), name), nil
}

func fd(dir *os.File) int { return int(dir.Fd()) }

func fstat(f *os.File) (st unix.Stat_t, err error) {
	err = unix.Fstat(fd(f), &st)
	return st, err
}

func lstat(at int, name string) (st unix.Stat_t, err error) {
	if err = unix.Fstatat(at, name, &st, unix.AT_SYMLINK_NOFOLLOW); errors.Is(err, unix.ENOENT) {
		err = ErrAbsent
	}
	return st, err
}

// notDirectory returns the error for a link or a file instead of a directory.
func notDirectory(at int, name string) error {
	st, err := lstat(at, name)
	if err != nil {
		return err
	}
	return fmt.Errorf("is %s instead of a directory, so the file %w", kindOf(st), ErrNotRegular)
}

// kind returns the file type bits of the mode.
func kind(st unix.Stat_t) uint32 { return uint32(st.Mode) & unix.S_IFMT }

func kindOf(st unix.Stat_t) string {
	known := map[uint32]string{
		unix.S_IFREG: "a file", unix.S_IFDIR: "a directory", unix.S_IFLNK: "a link",
		unix.S_IFIFO: "a FIFO", unix.S_IFSOCK: "a socket",
	}
	return cmp.Or(known[kind(st)], "a device")
}

// Text converts data from an agent to text: it replaces invalid UTF-8 with U+FFFD and removes NUL,
// which ends strings in C programs.
func Text(data []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(data), "\uFFFD"), "\x00", "")
}
