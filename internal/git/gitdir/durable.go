package gitdir

import (
	"cmp"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
)

// FS is the folder as go-git writes into it: nothing has its name before it is
// whole and on the disk, and everything belongs to the folder's owner.
func (d Dir) FS() FS {
	return FS{osfs.New(d.Path, osfs.WithBoundOS()), d, &unfinished{}}
}

// FS is a file system for go-git.
type FS struct {
	billy.Filesystem
	dir  Dir
	made *unfinished
}

// unfinished are the files that go-git makes objects and packs of, and reads them
// through: on its error paths it leaves them as they are.
type unfinished struct {
	open  []io.Closer
	paths []string
}

// Discard closes and removes what has not got its name.
func (d FS) Discard() {
	for _, f := range d.made.open {
		f.Close()
	}
	for _, path := range d.made.paths {
		os.Remove(path)
	}
}

// file is a file in the making.
type file struct {
	*os.File
	name   string // below the folder
	become string // the name that it has when it is closed, "" for none
	in     FS
	failed error // the first error of writing it
}

func (f *file) Name() string  { return f.name }
func (f *file) Lock() error   { return nil } // nobody else knows its name
func (f *file) Unlock() error { return nil }

func (f *file) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	f.failed = cmp.Or(f.failed, err)
	return n, err
}

func (f *file) WriteString(s string) (int, error) { return f.Write([]byte(s)) }

func (f *file) ReadFrom(r io.Reader) (int64, error) {
	n, err := f.File.ReadFrom(r)
	f.failed = cmp.Or(f.failed, err)
	return n, err
}

// Close does not give a file its name whose writing failed: go-git closes on
// its error paths too.
func (f *file) Close() error {
	err := cmp.Or(f.failed, f.File.Close())
	if err != nil {
		os.Remove(f.File.Name())
		return err
	}
	if f.become == "" {
		return nil
	}
	return f.in.Rename(f.name, f.become)
}

// TempFile makes the files of which go-git makes objects and packs.
func (d FS) TempFile(folder, prefix string) (billy.File, error) {
	if err := d.dir.Mkdir(folder); err != nil {
		return nil, err
	}
	return d.begin(folder, prefix+tempObject, "")
}

// Create makes a file that has its name when it is closed.
func (d FS) Create(name string) (billy.File, error) { return d.begin(".", tempPrefix, name) }

func (d FS) begin(folder, prefix, become string) (billy.File, error) {
	f, err := d.dir.Temp(folder, prefix)
	if err != nil {
		return nil, err
	}
	d.made.open, d.made.paths = append(d.made.open, f), append(d.made.paths, f.Name())
	return &file{File: f, name: path.Join(folder, filepath.Base(f.Name())), become: become, in: d}, nil
}

// Open notes who reads an unfinished pack.
func (d FS) Open(name string) (billy.File, error) {
	f, err := d.Filesystem.Open(name)
	if err == nil && strings.Contains(name, tempObject) {
		d.made.open = append(d.made.open, f)
	}
	return f, err
}

func (d FS) OpenFile(name string, flag int, perm fs.FileMode) (billy.File, error) {
	if flag&os.O_CREATE == 0 {
		return d.Filesystem.OpenFile(name, flag, perm)
	}
	return d.Create(name)
}

func (d FS) MkdirAll(name string, _ fs.FileMode) error { return d.dir.Mkdir(name) }

// Lstat passes over an empty object, which git leaves when the power goes, so
// that a whole one takes its place; and over one that cannot be made to stay:
// who wrote it may not have waited for the disk, and a ref is to name it.
func (d FS) Lstat(name string) (fs.FileInfo, error) {
	info, err := d.Filesystem.Lstat(name)
	if err == nil && isObject(name) && info.Mode().IsRegular() && (info.Size() == 0 || hostfs.SyncDir(d.dir.Join(path.Dir(name))) != nil) {
		return nil, fs.ErrNotExist
	}
	return info, err
}

func (d FS) Rename(from, to string) error {
	if err := d.dir.Mkdir(path.Dir(to)); err != nil {
		return err
	}
	f, err := os.Open(d.dir.Join(from))
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if isObject(to) {
		mode = 0o444
	}
	if err := errors.Join(f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return rename(d.dir.Join(from), d.dir.Join(to))
}

func isObject(name string) bool { return strings.HasPrefix(name, "objects/") }
