package gitdir

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"regexp"
	"strconv"

	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
)

// MaxPointer is the maximum size in bytes of a pointer of Git LFS.
const MaxPointer = 1024

// MaxLarge is the maximum size in bytes of a file in Git LFS whose content abl copies. A clone
// commits no larger file by default.
const MaxLarge = 50 << 20

var pointer = regexp.MustCompile(`^version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\nsize (\d{1,18})\n$`)

// PointerText returns the pointer of a file in Git LFS. oid is the SHA-256 of the file.
func PointerText(oid string, size int64) []byte {
	return fmt.Appendf(nil, "version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", oid, size)
}

// Pointer returns the SHA-256 and the size that a pointer of Git LFS contains. It returns false if
// text is not a pointer.
func Pointer(text []byte) (oid string, size int64, is bool) {
	parts := pointer.FindSubmatch(text)
	if parts == nil {
		return "", 0, false
	}
	size, err := strconv.ParseInt(string(parts[2]), 10, 64)
	return string(parts[1]), size, err == nil
}

// large returns the path of a file in Git LFS below .git.
func large(oid string) string { return path.Join("lfs/objects", oid[:2], oid[2:4], oid) }

// Blob opens a blob and returns its size.
func (s *Store) Blob(hash plumbing.Hash) (io.ReadCloser, int64, error) {
	o, err := s.EncodedObject(plumbing.BlobObject, hash)
	if err != nil {
		return nil, 0, err
	}
	from, err := o.Reader()
	return from, o.Size(), err
}

// Pointer reads a blob as a pointer of Git LFS.
func (s *Store) Pointer(hash plumbing.Hash) (oid string, size int64, is bool) {
	from, size, err := s.Blob(hash)
	if err != nil {
		return "", 0, false
	}
	defer from.Close()
	if size > MaxPointer {
		return "", 0, false
	}
	text, err := io.ReadAll(from)
	if err != nil {
		return "", 0, false
	}
	return Pointer(text)
}

// File opens the content of a file and returns its size. For a pointer that is the content in
// .git/lfs, or the pointer itself if the content is not there.
func (s *Store) File(hash plumbing.Hash) (io.ReadCloser, int64, error) {
	if oid, size, is := s.Pointer(hash); is {
		if f, err := hostfs.Open(s.dir, large(oid)); err == nil {
			if info, err := f.Stat(); err == nil && info.Size() == size {
				return f, size, nil
			}
			f.Close()
		}
	}
	return s.Blob(hash)
}

// Large durably writes the content of a file in Git LFS, unless it exists. It fails if the SHA-256
// of the content is not oid.
func (d Dir) Large(oid string, content io.Reader) error {
	name := large(oid)
	if _, err := os.Lstat(d.Join(name)); err == nil {
		return nil
	}
	if err := d.Mkdir(path.Dir(name)); err != nil {
		return err
	}
	return d.fill(".", name, 0o444, func(w io.Writer) error {
		sum := sha256.New()
		_, err := io.Copy(io.MultiWriter(w, sum), content)
		if err == nil && fmt.Sprintf("%x", sum.Sum(nil)) != oid {
			err = hostfs.ErrChanged
		}
		return err
	})
}

// TakeLarge copies the content of a file in Git LFS, up to MaxLarge bytes, from another repository.
// It returns hostfs.ErrAbsent if that does not have it.
func (d Dir) TakeLarge(from Dir, oid string) error {
	f, err := hostfs.Open(from.Path, large(oid))
	if err != nil {
		return err
	}
	defer f.Close()
	return d.Large(oid, io.LimitReader(f, MaxLarge))
}

// TakeAllLarge copies the contents of all files in Git LFS from another repository.
func (d Dir) TakeAllLarge(from Dir) error {
	const top = "lfs/objects"
	err := hostfs.Walk(from.Join(top), "", func(e hostfs.Entry) error {
		if oid := e.Name; len(oid) == 2*sha256.Size && large(oid) == path.Join(top, e.Path()) {
			return d.TakeLarge(from, oid)
		}
		return nil
	})
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	return err
}
