package scan

import (
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

func (n *name) dir() bool     { return n.stat.Mode&unix.S_IFMT == unix.S_IFDIR }
func (n *name) link() bool    { return n.stat.Mode&unix.S_IFMT == unix.S_IFLNK }
func (n *name) regular() bool { return n.stat.Mode&unix.S_IFMT == unix.S_IFREG }
func (n *name) plain() string { return strings.TrimSuffix(n.key, "/") }
func (n *name) exec() bool    { return n.stat.Mode&0o100 != 0 }
func (n *name) special() bool { return !n.dir() && !n.link() && !n.regular() }
func (n *name) kind() string  { return kinds[uint32(n.stat.Mode)&unix.S_IFMT] }

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
		names = appendStats(names, fd, some)
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

func appendStats(names []name, fd int, some []string) []name {
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
	return names
}
