package hostfs

import (
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Size is what a tree takes of its file system.
type Size struct {
	Bytes int64 // as allocated: a file with holes takes what is in it
	Names int64 // files, folders and everything else

	// Of what has changed since the time that Measure was given:
	File   Place // the largest file
	Folder Place // the folder whose own files are the largest
	Widest Place // the folder with the most names in it

	Depth int // of the deepest folder, beyond which nothing was measured when it is MaxDepth
}

// Place is a path below the tree, and what was found in it.
type Place struct {
	Path  string
	Bytes int64
	Names int64
}

// MaxDepth is how many folders within folders are measured.
const MaxDepth = 256

// errEnough ends a walk that enough says has seen enough.
var errEnough = errors.New("enough")

// Measure adds up what stands below dir. What comes and goes meanwhile counts or
// does not; a file with several names counts once. It ends early when enough
// says so, which is asked once a folder.
func Measure(ctx context.Context, dir string, since time.Time, enough func(Size) bool) (Size, error) {
	m := &measuring{ctx: ctx, since: since, enough: enough, seen: map[uint64]bool{}}
	fd, err := openDir(unix.AT_FDCWD, dir)
	if err != nil {
		return m.size, err
	}
	if err = m.folder(fd, 0); errors.Is(err, errEnough) {
		err = nil
	}
	return m.size, err
}

type measuring struct {
	ctx    context.Context
	since  time.Time
	enough func(Size) bool
	size   Size
	seen   map[uint64]bool // inodes with several names
	path   []string
}

// folder measures what is in an open folder, which it closes.
func (m *measuring) folder(fd, depth int) error {
	d := os.NewFile(uintptr(fd), "folder")
	defer d.Close()
	m.size.Depth = max(m.size.Depth, depth)
	here := Place{}
	var below []string
	for {
		names, err := d.Readdirnames(1024)
		for _, name := range names {
			if m.name(fd, name, &here) && depth < MaxDepth {
				below = append(below, name)
			}
		}
		if m.ctx.Err() != nil {
			return m.ctx.Err()
		}
		if m.enough(m.size) {
			m.note(here)
			return errEnough
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil // it went away
		}
		if len(names) == 0 || err != nil {
			break
		}
	}
	m.note(here)
	for _, name := range below {
		sub, err := openDir(fd, name)
		if err != nil {
			continue // it went away, became something else or is closed to us
		}
		m.path = append(m.path, name)
		err = m.folder(sub, depth+1)
		m.path = m.path[:len(m.path)-1]
		if err != nil {
			return err
		}
	}
	return nil
}

// name counts one name, and says whether it is a folder.
func (m *measuring) name(fd int, name string, here *Place) (folder bool) {
	var st unix.Stat_t
	if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return false
	}
	kind := uint32(st.Mode) & unix.S_IFMT
	m.size.Names++
	changed := !time.Unix(st.Ctim.Unix()).Before(m.since) // nobody can set this time
	if changed {
		here.Names++
	}
	if kind != unix.S_IFDIR && st.Nlink > 1 {
		if m.seen[st.Ino] {
			return false
		}
		m.seen[st.Ino] = true
	}
	const block = 512 // bytes, whatever the file system's own are
	bytes := st.Blocks * block
	m.size.Bytes += bytes
	if kind == unix.S_IFDIR {
		return true
	}
	if !changed {
		return false
	}
	here.Bytes += bytes
	if bytes > m.size.File.Bytes {
		m.size.File = Place{Path: m.pathOf(name), Bytes: bytes, Names: 1}
	}
	return false
}

// note takes a folder's own sums for the largest when they are.
func (m *measuring) note(here Place) {
	if here.Bytes > m.size.Folder.Bytes || here.Names > m.size.Widest.Names {
		here.Path = m.pathOf("")
	}
	if here.Bytes > m.size.Folder.Bytes {
		m.size.Folder = here
	}
	if here.Names > m.size.Widest.Names {
		m.size.Widest = here
	}
}

func (m *measuring) pathOf(name string) string {
	var b strings.Builder
	for _, step := range m.path {
		b.WriteString(step + "/")
	}
	return b.String() + name
}
