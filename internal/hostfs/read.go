// Package hostfs reads, writes, walks, locks and removes files of the host of
// which agents may have made anything: links, FIFOs, devices, endless files,
// folders without end. It follows no link, waits for nobody and reads past no
// limit. It goes from folder to folder by calls that every Unix has, so Linux and
// macOS share one way. It knows files alone, and nothing of what abl keeps in them.
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
func Read(dir, name string, max int64) (data []byte, err error) {
	defer failed(&err, "read", name)
	f, was, err := openFile(dir, name, max)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err = io.ReadAll(io.LimitReader(f, max+1))
	if err == nil {
		err = unchanged(f, was)
	}
	if err == nil && int64(len(data)) > max { // of a kernel's file, which does not say how long it is
		err = tooLarge(max)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// unchanged wants a file to be still what it was when it was looked at.
func unchanged(f *os.File, was unix.Stat_t) error {
	now, err := fstat(f)
	if err == nil && (!same(now, was) || now.Mode != was.Mode || now.Size != was.Size || now.Mtim != was.Mtim) {
		err = ErrChanged
	}
	return err
}

// failed says what could not be done, where something could not.
func failed(err *error, do, name string) {
	if *err != nil {
		*err = fmt.Errorf("cannot %s %q: %w", do, name, *err)
	}
}

// Open opens the regular file name below dir for reading, as Read does. It is
// for files that grow while they are read, so its caller bounds what it takes.
func Open(dir, name string) (f *os.File, err error) {
	defer failed(&err, "open", name)
	f, _, err = openFile(dir, name, math.MaxInt64)
	return f, err
}

// openFile opens what is a regular file of at most max bytes, and says what it was
// just before. It is that very one, which may have changed meanwhile.
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

// openSame opens what stands under a name when it still is what it was.
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

// same says that two looks were at the same thing.
func same(a, b unix.Stat_t) bool { return a.Dev == b.Dev && a.Ino == b.Ino && kind(a) == kind(b) }

// reading is how files are opened: a FIFO that takes a file's place just before
// must not make anybody wait.
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

// List returns the regular files of the directory name below dir ("." is dir
// itself), sorted by name; links, directories and special files are left out. A
// directory with more than max entries of any kind is ErrTooLarge.
func List(dir, name string, max int) (files []File, err error) {
	err = eachIn(dir, name, max, func(name string, st unix.Stat_t) {
		if kind(st) == unix.S_IFREG {
			files = append(files, File{name, st.Size, time.Unix(st.Mtim.Unix())})
		}
	})
	return files, err
}

// Names returns the names of all that is in the directory name below dir, as List does.
func Names(dir, name string, max int) (names []string, err error) {
	err = eachIn(dir, name, max, func(name string, _ unix.Stat_t) { names = append(names, name) })
	return names, err
}

func eachIn(dir, name string, max int, each func(name string, st unix.Stat_t)) (err error) {
	defer failed(&err, "list", name)
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
		} else if !errors.Is(err, ErrAbsent) { // else it was removed since it was listed
			return err
		}
	}
	return nil
}

// Plain returns an error that names the first link, FIFO, socket or device below name in dir, or
// name itself if it is one. A missing name is plain. Where except is true of a path, which is
// relative to name, anything may stand.
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

// openParent opens the directory that holds name, one step at a time, and
// returns it with the last element of name.
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

// OpenDir opens a directory that an open one has under a name; unix.AT_FDCWD is for a path.
func OpenDir(at int, name string) (*os.File, error) {
	return openAt(at, name, unix.O_RDONLY|unix.O_DIRECTORY)
}

// openAt opens name in the directory at, unix.AT_FDCWD for a path, and follows no
// link in the last place.
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
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.EOPNOTSUPP): // a FIFO or a socket took the file's place
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

// notDirectory words the refusal of a link, or of what stands where a directory should.
func notDirectory(at int, name string) error {
	st, err := lstat(at, name)
	if err != nil {
		return err
	}
	return fmt.Errorf("is not a real directory, so the file %w: it is %s", ErrNotRegular, kindOf(st))
}

// kind is the part of the mode that says what it is.
func kind(st unix.Stat_t) uint32 { return uint32(st.Mode) & unix.S_IFMT }

func kindOf(st unix.Stat_t) string {
	known := map[uint32]string{
		unix.S_IFREG: "a file", unix.S_IFDIR: "a directory", unix.S_IFLNK: "a link",
		unix.S_IFIFO: "a FIFO", unix.S_IFSOCK: "a socket",
	}
	return cmp.Or(known[kind(st)], "a device")
}

// Text makes text of what an agent wrote: invalid UTF-8 becomes U+FFFD, and NUL,
// which cuts strings short elsewhere, is dropped.
func Text(data []byte) string {
	return strings.ReplaceAll(strings.ToValidUTF8(string(data), "\uFFFD"), "\x00", "")
}
