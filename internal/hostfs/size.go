package hostfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Size is the space that a directory tree uses.
type Size struct {
	Bytes int64 // allocated bytes, without the holes of sparse files
	Names int64 // number of entries of any type

	// Only entries that changed after the time passed to Measure:
	File   Place // the largest file
	Widest Place // the directory with the most entries

	Depth int // depth of the deepest directory, at most MaxDepth
}

// Place is a path below the tree with its size.
type Place struct {
	Path  string // with a trailing slash for a directory
	Bytes int64  // of a file
	Names int64  // entries of a directory
}

// MaxDepth is the maximum depth of measured directories.
const MaxDepth = 256

// Measure adds up everything below dir. A file with several hard links counts once. Entries that
// appear or disappear meanwhile may count or not. Measure calls enough once per directory and stops
// when it returns true or ctx is done.
func Measure(ctx context.Context, dir string, since time.Time, enough func(Size) bool) (Size, error) {
	m := &measuring{
		ctx:    ctx,
		since:  since,
		enough: enough,
		seen:   map[uint64]bool{},
	}
	d, err := OpenDir(unix.AT_FDCWD, dir)
	if err != nil {
		return m.size, err
	}
	m.measureDir(d, "", 0)
	return m.size, ctx.Err()
}

type measuring struct {
	ctx    context.Context
	since  time.Time
	enough func(Size) bool
	size   Size
	seen   map[uint64]bool // inodes with several names
}

// measureDir measures an open directory and closes it. path is its path with a trailing slash. It
// returns true if Measure should stop.
func (m *measuring) measureDir(d *os.File, path string, depth int) (ended bool) {
	defer d.Close()
	m.size.Depth = max(m.size.Depth, depth)
	here := Place{Path: path}
	var below []string
	for more := true; more; {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if m.countEntry(d, name, &here) && depth < MaxDepth {
				below = append(below, name)
			}
		}
		if here.Names > m.size.Widest.Names {
			m.size.Widest = here
		}
		switch {
		case m.ctx.Err() != nil || m.enough(m.size):
			return true
		case err != nil && !errors.Is(err, io.EOF):
			return false // it was removed
		}
		more = err == nil
	}
	for _, name := range below {
		sub, err := OpenDir(fd(d), name) // an error means removed, replaced or not readable
		if err == nil && m.measureDir(sub, path+name+"/", depth+1) {
			return true
		}
	}
	return false
}

// countEntry counts one entry and reports whether it is a directory.
func (m *measuring) countEntry(d *os.File, name string, here *Place) (folder bool) {
	st, err := lstat(fd(d), name)
	if err != nil {
		return false
	}
	folder = kind(st) == unix.S_IFDIR
	m.size.Names++
	changed := !time.Unix(st.Ctim.Unix()).Before(m.since) // programs cannot set the ctime
	if changed {
		here.Names++
	}
	if !folder && st.Nlink > 1 {
		if m.seen[st.Ino] {
			return false
		}
		m.seen[st.Ino] = true
	}
	const block = 512 // the unit of st_blocks on every file system
	bytes := st.Blocks * block
	m.size.Bytes += bytes
	if changed && !folder && bytes > m.size.File.Bytes {
		m.size.File = Place{Path: here.Path + name, Bytes: bytes}
	}
	return folder
}

// Free is the free and the total space of a file system.
type Free struct {
	Bytes, Of   int64
	Inodes, All int64 // both 0 if the file system has no fixed number of inodes
}

// The required free space: these values, or a twentieth of the total if that is less.
const (
	minBytes  = 1 << 30
	minInodes = 50_000
	minShare  = 20
)

// FreeSpace returns the free space of the file system that contains path.
func FreeSpace(path string) (Free, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Free{}, fmt.Errorf("cannot determine the free space at %q: %w", path, err)
	}
	size := int64(fs.Bsize)
	return Free{int64(fs.Bavail) * size, int64(fs.Blocks) * size, int64(fs.Ffree), int64(fs.Files)}, nil
}

// Short describes a lack of free space, "" if there is enough.
func (f Free) Short() string {
	if want := min(minBytes, f.Of/minShare); f.Bytes < want {
		return fmt.Sprintf("only %d MiB left on its disk, need at least %d MiB", f.Bytes>>20, want>>20)
	}
	if want := min(minInodes, f.All/minShare); f.Inodes < want {
		return fmt.Sprintf("only %d inodes left on its disk, need at least %d", f.Inodes, want)
	}
	return ""
}
