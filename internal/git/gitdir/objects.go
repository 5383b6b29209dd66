package gitdir

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"

	"abl/internal/hostfs"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

const packs = "objects/pack"

// MaxBlob is the maximum size of a file in a repository that abl clones. git also treats larger
// files specially.
const MaxBlob = 512 << 20

// Streamed is the size in bytes above which an object is not read into memory.
const Streamed = 8 << 20

// maxHeld is the maximum size of a delta or its base in memory, for an object of up to Streamed
// bytes. Git creates no delta for an object smaller than 1/32 of its base.
const maxHeld = 32 * Streamed

const maxTree = 64 << 20 // bytes of a tree, commit or tag, which go-git reads into memory

// Store reads the objects of a repository.
type Store struct {
	*filesystem.Storage
	dir   string
	again bool // the list of packs was read again
}

// Store returns a reader for the objects, with those of alternates. A store caches the list of
// packs, so each operation opens a new one. If git packs the repository meanwhile, it reads the list again.
func (d Dir) Store() *Store {
	o := filesystem.Options{AlternatesFS: files{osfs.New("/"), MaxBlob}, LargeObjectThreshold: Streamed}
	from := files{osfs.New(d.Path), math.MaxInt64}
	return &Store{filesystem.NewStorageWithOptions(from, cache.NewObjectLRUDefault(), o), d.Path, false}
}

// EncodedObject returns an object. It fails for a tree, commit or tag that is too large for memory.
func (s *Store) EncodedObject(kind plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	o, err := s.Storage.EncodedObject(kind, hash)
	if errors.Is(err, dotgit.ErrPackfileNotFound) || errors.Is(err, plumbing.ErrObjectNotFound) && !s.again {
		s.again = true
		s.Reindex() // git packed the repository again, as it does in the background after a fetch
		o, err = s.Storage.EncodedObject(kind, hash)
	}
	if err == nil && o.Type() != plumbing.BlobObject && o.Size() > maxTree {
		return nil, fmt.Errorf("object %s %w (%d bytes)", hash, hostfs.ErrTooLarge, o.Size())
	}
	return o, err
}

// Loose writes an object to a loose file, unless it exists.
func (d Dir) Loose(o plumbing.EncodedObject) error {
	hash := o.Hash().String()
	name := path.Join("objects", hash[:2], hash[2:])
	if info, err := os.Lstat(d.Join(name)); err == nil && info.Size() > 0 { // a power failure can leave an empty file
		return hostfs.SyncDir(filepath.Dir(d.Join(name))) // the process that wrote it may not have synced
	}
	from, err := o.Reader()
	if err != nil {
		return err
	}
	defer from.Close()
	if err := errors.Join(d.Mkdir(packs), d.Mkdir(path.Dir(name))); err != nil {
		return err
	}
	return d.fill(packs, name, 0o444, func(f io.Writer) error {
		w := objfile.NewWriter(f)
		err := w.WriteHeader(o.Type(), o.Size())
		if err == nil {
			_, err = io.Copy(w, from)
		}
		return errors.Join(err, w.Close())
	})
}

// Pack writes a pack, whose content encode writes, and its index.
func (d Dir) Pack(encode func(io.Writer) error) error {
	if err := d.Mkdir(packs); err != nil {
		return err
	}
	pack, err := d.temp(packs)
	if err != nil {
		return err
	}
	defer drop(pack)
	w := bufio.NewWriterSize(pack, 256<<10)
	if err := errors.Join(encode(w), w.Flush()); err != nil {
		return err
	}
	index, name, err := indexOf(pack)
	if err != nil {
		return err
	}
	err = d.fill(packs, name+".idx", 0o444, func(f io.Writer) error {
		w := bufio.NewWriter(f)
		_, err := idxfile.NewEncoder(w).Encode(index)
		return errors.Join(err, w.Flush())
	})
	if err != nil {
		return err
	}
	return d.finish(pack, name+".pack", 0o444)
}

// TakePack copies a pack that git wrote and its index.
func (d Dir) TakePack(path string) error {
	if err := d.Mkdir(packs); err != nil {
		return err
	}
	for _, suffix := range []string{".idx", ".pack"} { // git ignores an index without its pack
		name := strings.TrimSuffix(filepath.Base(path), ".pack") + suffix
		from, err := hostfs.Open(filepath.Dir(path), name)
		if err != nil {
			return err
		}
		err = d.fill(packs, packs+"/"+name, 0o444, func(f io.Writer) error { _, err := io.Copy(f, from); return err })
		from.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// indexOf reads a pack and returns its index and its name in git.
func indexOf(pack *os.File) (*idxfile.MemoryIndex, string, error) {
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return nil, "", err
	}
	var all idxfile.Writer
	parser, err := packfile.NewParser(packfile.NewScanner(pack), &all)
	if err != nil {
		return nil, "", err
	}
	sum, err := parser.Parse()
	if err != nil {
		return nil, "", fmt.Errorf("cannot read the new pack: %w", err)
	}
	index, err := all.Index()
	return index, fmt.Sprintf("%s/pack-%s", packs, sum), err
}
