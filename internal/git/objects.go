package git

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"abl/internal/git/gitdir"
	"abl/internal/git/scan"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// Up to this many small objects are written as loose files: each costs an
// fsync, but a pack for every tiny commit would slow down every later lookup.
const (
	fewObjects = 8
	fewBytes   = 64 << 10
)

// spool holds the new objects of one snapshot in a file without a name, until
// go-git writes all of them at once. Put may be called from several goroutines;
// nothing is in the repository before finish.
type spool struct {
	storer.EncodedObjectStorer // nil: go-git's encoder asks for EncodedObject alone

	file *os.File

	mu   sync.Mutex
	at   int64 // where the next one begins
	seen map[plumbing.Hash]bool
	all  map[plumbing.Hash]spooled
}

// spooled is one object of a spool.
type spooled struct {
	plumbing.EncodedObject // nil: nobody sets or writes anything

	kind plumbing.ObjectType
	hash plumbing.Hash
	data *io.SectionReader
}

func (o spooled) Type() plumbing.ObjectType { return o.kind }
func (o spooled) Hash() plumbing.Hash       { return o.hash }
func (o spooled) Size() int64               { return o.data.Size() }

func (o spooled) Reader() (io.ReadCloser, error) {
	_, err := o.data.Seek(0, io.SeekStart)
	return io.NopCloser(o.data), err
}

func newSpool(d gitdir.Dir) (*spool, error) {
	f, err := d.Unnamed()
	if err != nil {
		return nil, fmt.Errorf("cannot make room for new objects: %w", err)
	}
	return &spool{file: f, seen: map[plumbing.Hash]bool{}, all: map[plumbing.Hash]spooled{}}, nil
}

// Put adds an object, once.
func (s *spool) Put(kind plumbing.ObjectType, hash plumbing.Hash, size int64, r io.Reader) error {
	s.mu.Lock()
	at, seen := s.at, s.seen[hash]
	s.seen[hash] = true
	s.at += size
	s.mu.Unlock()
	if seen {
		return nil
	}
	hasher := plumbing.NewHasher(kind, size)
	n, err := io.Copy(io.MultiWriter(io.NewOffsetWriter(s.file, at), hasher), io.LimitReader(r, size))
	if err == nil && (n != size || hasher.Sum() != hash) {
		err = scan.ErrChanging
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.seen, hash)
		return err
	}
	s.all[hash] = spooled{kind: kind, hash: hash, data: io.NewSectionReader(s.file, at, size)}
	return nil
}

// add adds an object that was made in memory.
func (s *spool) add(o *plumbing.MemoryObject) error {
	r, err := o.Reader()
	if err != nil {
		return err
	}
	return s.Put(o.Type(), o.Hash(), o.Size(), r)
}

// EncodedObject is what go-git's encoder asks for.
func (s *spool) EncodedObject(_ plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	return s.all[hash], nil
}

// finish makes all objects durable in a repository.
func (s *spool) finish(d gitdir.Dir) error {
	git := dotgit.New(d.FS())
	if len(s.all) <= fewObjects && s.at <= fewBytes {
		loose := filesystem.NewObjectStorage(git, nil)
		for hash, o := range s.all {
			if _, err := loose.SetEncodedObject(o); err != nil {
				return fmt.Errorf("cannot write object %s: %w", hash, err)
			}
		}
		return nil
	}
	names := make([]plumbing.Hash, 0, len(s.all))
	for hash := range s.all {
		names = append(names, hash)
	}
	plumbing.HashesSort(names)
	pack, err := git.NewObjectPack()
	if err != nil {
		return fmt.Errorf("cannot begin a pack: %w", err)
	}
	w := bufio.NewWriterSize(pack, 256<<10)
	_, err = packfile.NewEncoder(w, s, false).Encode(names, 0)
	if err = errors.Join(err, w.Flush(), pack.Close()); err != nil {
		return fmt.Errorf("cannot write a pack: %w", err)
	}
	return nil
}

func (s *spool) close() { s.file.Close() }
