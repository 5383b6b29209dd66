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

// Size is what a tree takes of its file system.
type Size struct {
	Bytes int64 // as allocated: a file with holes takes what is in it
	Names int64 // files, folders and everything else

	// Of what has changed since the time that Measure was given:
	File   Place // the largest file
	Widest Place // the folder with the most names in it

	Depth int // of the deepest folder, beyond which nothing was measured when it is MaxDepth
}

// Place is a path below the tree, and what was found in it.
type Place struct {
	Path  string // with a slash behind a folder's
	Bytes int64  // of a file
	Names int64  // in a folder
}

// MaxDepth is how many folders within folders are measured.
const MaxDepth = 256

// Measure adds up what stands below dir. What comes and goes meanwhile counts or
// does not; a file with several names counts once. It ends early when enough
// says so, which is asked once a folder.
func Measure(ctx context.Context, dir string, since time.Time, enough func(Size) bool) (Size, error) {
	m := &measuring{ctx: ctx, since: since, enough: enough, seen: map[uint64]bool{}}
	d, err := OpenDir(unix.AT_FDCWD, dir)
	if err != nil {
		return m.size, err
	}
	m.folder(d, "", 0)
	return m.size, ctx.Err()
}

type measuring struct {
	ctx    context.Context
	since  time.Time
	enough func(Size) bool
	size   Size
	seen   map[uint64]bool // inodes with several names
}

// folder measures what is in an open folder, which it closes. What is in its path stands
// before a name. It ends all when enough was seen, or nobody asks any more.
func (m *measuring) folder(d *os.File, path string, depth int) (ended bool) {
	defer d.Close()
	m.size.Depth = max(m.size.Depth, depth)
	here := Place{Path: path}
	var below []string
	for more := true; more; {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if m.name(d, name, &here) && depth < MaxDepth {
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
			return false // it went away
		}
		more = err == nil
	}
	for _, name := range below {
		sub, err := OpenDir(fd(d), name) // else it went away, became something else or is closed to us
		if err == nil && m.folder(sub, path+name+"/", depth+1) {
			return true
		}
	}
	return false
}

// name counts one name, and says whether it is a folder.
func (m *measuring) name(d *os.File, name string, here *Place) (folder bool) {
	st, err := lstat(fd(d), name)
	if err != nil {
		return false
	}
	folder = kind(st) == unix.S_IFDIR
	m.size.Names++
	changed := !time.Unix(st.Ctim.Unix()).Before(m.since) // nobody can set this time
	if changed {
		here.Names++
	}
	if !folder && st.Nlink > 1 {
		if m.seen[st.Ino] {
			return false
		}
		m.seen[st.Ino] = true
	}
	const block = 512 // bytes, whatever the file system's own are
	bytes := st.Blocks * block
	m.size.Bytes += bytes
	if changed && !folder && bytes > m.size.File.Bytes {
		m.size.File = Place{Path: here.Path + name, Bytes: bytes}
	}
	return folder
}

// Free is what is left on a file system for its users.
type Free struct {
	Bytes, Of   int64
	Inodes, All int64 // both 0 where a file system has no fixed number of them
}

// What has to stay: so much, or a twentieth where that is less.
const (
	keepBytes  = 1 << 30
	keepInodes = 50_000
	keepShare  = 20
)

// FreeSpace asks the file system that path is on.
func FreeSpace(path string) (Free, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Free{}, fmt.Errorf("cannot tell how much room is left at %q: %w", path, err)
	}
	size := int64(fs.Bsize)
	return Free{int64(fs.Bavail) * size, int64(fs.Blocks) * size, int64(fs.Ffree), int64(fs.Files)}, nil
}

// Short says in words that less is left than has to stay, "" when it is enough.
func (f Free) Short() string {
	if keep := min(keepBytes, f.Of/keepShare); f.Bytes < keep {
		return fmt.Sprintf("%d MiB are left on its disk, and %d MiB have to stay free", f.Bytes>>20, keep>>20)
	}
	if keep := min(keepInodes, f.All/keepShare); f.Inodes < keep {
		return fmt.Sprintf("its disk has room for %d more files, and for %d it has to stay", f.Inodes, keep)
	}
	return ""
}
