package gitdir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"abl/internal/hostfs"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
)

const (
	maxFile  = 64 << 20 // bytes of packed-refs, shallow and the like
	maxIndex = 4 << 30  // bytes of a pack's index with 150 million objects
	maxNames = 1_000_000
	// A loose object of this size inflates to at most 16 MiB.
	uncheckedFile = 16 << 10
)

// files is the file system through which go-git reads a .git directory that may be hostile. It
// opens only regular files, follows no links, never blocks on a FIFO, and rejects objects that
// inflate to more than they declare.
type files struct {
	billy.Filesystem
	most int64 // maximum declared size of an object
}

// file implements billy.File. name is the name that it was opened with.
type file struct {
	*os.File
	name string
}

func (f file) Name() string { return f.name }
func (file) Lock() error    { return nil }
func (file) Unlock() error  { return nil }

// Chroot returns the same file system for a subdirectory.
func (f files) Chroot(path string) (billy.Filesystem, error) {
	below, err := f.Filesystem.Chroot(path)
	return files{below, f.most}, err
}

// Open opens a regular file for reading.
func (f files) Open(name string) (billy.File, error) { return f.OpenFile(name, os.O_RDONLY, 0) }

// OpenFile is like Open. It fails for any flag except os.O_RDONLY.
func (f files) OpenFile(name string, flag int, _ fs.FileMode) (billy.File, error) {
	if flag != os.O_RDONLY {
		return nil, fs.ErrPermission
	}
	open, err := hostfs.Open(f.Root(), strings.TrimPrefix(name, "/"))
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, fs.ErrNotExist
	}
	if err == nil {
		if err = f.bound(name, open); err != nil {
			open.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("in %q: %w", f.Root(), err)
	}
	plain := file{open, name}
	if strings.HasPrefix(name, packs+"/") && strings.HasSuffix(name, ".pack") {
		return &pack{file: plain, most: f.most}, nil
	}
	return plain, nil
}

// bound rejects a file that is too large for go-git, which reads it into memory.
func (f files) bound(name string, open *os.File) error {
	info, err := open.Stat()
	if err != nil {
		return err
	}
	most, size := int64(maxFile), info.Size()
	switch {
	case strings.HasPrefix(name, packs+"/") && strings.HasSuffix(name, ".idx"):
		most = maxIndex
	case strings.HasPrefix(name, packs+"/"):
		return nil // read in parts
	case strings.HasPrefix(name, "objects/") && !strings.HasPrefix(name, "objects/info/"):
		if size <= uncheckedFile {
			return nil
		}
		err := f.honest(open)
		_, serr := open.Seek(0, io.SeekStart)
		return errors.Join(err, serr)
	}
	if size > most {
		return fmt.Errorf("%q %w (%d bytes)", name, hostfs.ErrTooLarge, size)
	}
	return nil
}

// honest rejects an object that declares too many bytes or does not have the declared size.
func (f files) honest(open *os.File) error {
	r, err := objfile.NewReader(open)
	if err != nil {
		return err
	}
	defer r.Close()
	_, size, err := r.Header()
	if err == nil && size > f.most {
		err = fmt.Errorf("an object %w (%d bytes)", hostfs.ErrTooLarge, size)
	}
	if err != nil {
		return err
	}
	n, err := io.Copy(io.Discard, io.LimitReader(r, size+1))
	if err == nil && n != size {
		err = fmt.Errorf("an object does not have the declared size of %d bytes", size)
	}
	return err
}

// ReadDir lists a directory that is not a link.
func (f files) ReadDir(name string) (all []fs.FileInfo, err error) {
	names, err := hostfs.Names(f.Root(), f.Join(".", strings.TrimPrefix(name, "/")), maxNames)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil, fs.ErrNotExist
	}
	for _, entry := range names {
		if info, lerr := f.Lstat(f.Join(name, entry)); lerr == nil {
			all = append(all, info)
		}
	}
	return all, err
}
