package scan

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// name is one name in a folder. Its key is how git orders it: a folder's ends
// with a slash.
type name struct {
	key  string
	stat unix.Stat_t
}

func (n *name) format() uint32 { return uint32(n.stat.Mode) & unix.S_IFMT }
func (n *name) dir() bool      { return n.format() == unix.S_IFDIR }
func (n *name) link() bool     { return n.format() == unix.S_IFLNK }
func (n *name) regular() bool  { return n.format() == unix.S_IFREG }
func (n *name) special() bool  { return !n.dir() && !n.link() && !n.regular() }
func (n *name) kind() string   { return kinds[n.format()] }
func (n *name) exec() bool     { return n.stat.Mode&0o100 != 0 }
func (n *name) plain() string  { return strings.TrimSuffix(n.key, "/") }

var kinds = map[uint32]string{
	unix.S_IFIFO: "a FIFO", unix.S_IFSOCK: "a socket",
	unix.S_IFCHR: "a character device", unix.S_IFBLK: "a block device",
}

// readNames lists a folder in git's order.
func (w *walker) readNames(ctx context.Context, fd int) ([]name, error) {
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	d := os.NewFile(uintptr(own), "folder")
	defer d.Close()
	var names []name
	for {
		some, err := d.Readdirnames(1024)
		if err := w.count(ctx, len(some)); err != nil {
			return nil, err
		}
		for _, s := range some {
			n := name{key: s}
			if unix.Fstatat(fd, s, &n.stat, unix.AT_SYMLINK_NOFOLLOW) != nil {
				continue // it has just gone
			}
			if n.dir() {
				n.key += "/"
			}
			names = append(names, n)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list a folder: %w", err)
		}
	}
	slices.SortFunc(names, func(a, b name) int { return strings.Compare(a.key, b.key) })
	return names, nil
}

// openRegular opens the regular file that was looked at and nothing else: without
// following a link, and without waiting should it be a FIFO by now.
func openRegular(at int, e *name) (regular, error) {
	fd, err := unix.Openat(at, e.key, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Ino != e.stat.Ino || st.Dev != e.stat.Dev || st.Mode != e.stat.Mode {
		unix.Close(fd)
		return 0, errors.Join(err, ErrChanging)
	}
	return regular(fd), nil
}

// regular is an open regular file. An os.File would ask the poller about each.
type regular int

func (f regular) Close() error { return unix.Close(int(f)) }

func (f regular) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(f), b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 0, err
		case n == 0 && len(b) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func readExactly(f regular, size int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(size) + bytes.MinRead)
	if n, err := b.ReadFrom(io.LimitReader(f, size+1)); err != nil || n != size {
		return nil, errors.Join(err, ErrChanging)
	}
	return b.Bytes(), nil
}

func readLink(fd int, name string) ([]byte, error) {
	b := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(fd, name, b)
	if err != nil {
		return nil, err
	}
	return b[:n], nil
}
