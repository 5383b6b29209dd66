package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"
	"abl/internal/redact"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
)

// Up to this many small objects are written as loose files. Each costs an
// fsync, but a pack for every tiny commit would slow down every later lookup.
const (
	fewObjects = 8
	fewBytes   = 64 << 10
)

// spool collects the new objects of one snapshot in an unnamed file until finish writes them to the
// repository.
type spool struct {
	storer.EncodedObjectStorer // nil: go-git's encoder calls only EncodedObject

	in *repository
	by Identity // of commits

	file *os.File
	at   int64 // offset of the next object
	all  map[plumbing.Hash]spooled

	large map[plumbing.Hash]large // content of files in Git LFS by the hash of the pointer
}

// spooled is one object of a spool.
type spooled struct {
	plumbing.EncodedObject // nil: go-git calls none of its setters

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

func newSpool(in *repository, by Identity) (*spool, error) {
	f, err := in.git.Unnamed()
	if err != nil {
		return nil, fmt.Errorf("cannot create a file for new objects: %w", err)
	}
	return &spool{
		in:    in,
		by:    by,
		file:  f,
		all:   map[plumbing.Hash]spooled{},
		large: map[plumbing.Hash]large{},
	}, nil
}

// add adds an object unless the spool has it.
func (s *spool) add(kind plumbing.ObjectType, hash plumbing.Hash, size int64, r io.Reader) error {
	if _, there := s.all[hash]; there {
		return nil
	}
	hasher := plumbing.NewHasher(kind, size)
	n, err := io.Copy(io.MultiWriter(io.NewOffsetWriter(s.file, s.at), hasher), io.LimitReader(r, size))
	if err == nil && (n != size || hasher.Sum() != hash) {
		err = hostfs.ErrChanged
	}
	if err == nil {
		s.all[hash] = spooled{kind: kind, hash: hash, data: io.NewSectionReader(s.file, s.at, size)}
		s.at += size
	}
	return err
}

// put adds an object unless the spool has it.
func (s *spool) put(o plumbing.EncodedObject) error {
	r, err := o.Reader()
	if err != nil {
		return err
	}
	defer r.Close()
	return s.add(o.Type(), o.Hash(), o.Size(), r)
}

func (s *spool) blob(data []byte) (plumbing.Hash, error) {
	hash := plumbing.ComputeHash(plumbing.BlobObject, data)
	return hash, s.add(plumbing.BlobObject, hash, int64(len(data)), bytes.NewReader(data))
}

// encode adds a tree or a commit unless its hash is there.
func (s *spool) encode(o object.Object, there plumbing.Hash) (plumbing.Hash, error) {
	var in plumbing.MemoryObject
	if err := o.Encode(&in); err != nil || in.Hash() == there {
		return there, err
	}
	return in.Hash(), s.put(&in)
}

// commit adds a commit of sorted entries with its trees, except for the known trees.
func (s *spool) commit(ctx context.Context, text string, entries []*index.Entry, known map[string]plumbing.Hash,
	parents ...string) (content, *object.Commit, error) {
	now := content{entries, map[string]plumbing.Hash{}}
	if err := s.tree(&now, "", entries, known); err != nil {
		return now, nil, err
	}
	c, err := s.commitOf(ctx, now.trees[""], text, parents...)
	return now, c, err
}

// commitOf adds a commit of a tree, signed if the user signs. It ignores empty parents.
func (s *spool) commitOf(ctx context.Context, tree plumbing.Hash, text string,
	parents ...string) (c *object.Commit, err error) {
	who := s.by.Author.signature(time.Now())
	c = &object.Commit{
		Author:    who,
		Committer: who,
		Message:   text,
		TreeHash:  tree,
	}
	for _, p := range parents {
		if p != "" {
			c.ParentHashes = append(c.ParentHashes, plumbing.NewHash(p))
		}
	}
	if s.by.Signing != nil {
		return s.signed(ctx, c)
	}
	c.Hash, err = s.encode(c, plumbing.ZeroHash)
	return c, err
}

func (s *spool) tree(c *content, folder string, entries []*index.Entry, known map[string]plumbing.Hash) error {
	var t object.Tree
	for len(entries) > 0 {
		e := entries[0]
		name, _, below := strings.Cut(e.Name[len(folder):], "/")
		if !below {
			t.Entries, entries = append(t.Entries, object.TreeEntry{Name: name, Mode: e.Mode, Hash: e.Hash}), entries[1:]
			continue
		}
		sub := folder + name + "/"
		n := slices.IndexFunc(entries, func(e *index.Entry) bool { return !strings.HasPrefix(e.Name, sub) })
		if n < 0 {
			n = len(entries)
		}
		if err := s.tree(c, sub, entries[:n], known); err != nil {
			return err
		}
		t.Entries, entries = append(t.Entries, object.TreeEntry{Name: name, Mode: filemode.Dir, Hash: c.trees[sub]}),
			entries[n:]
	}
	hash, err := s.encode(&t, known[folder])
	c.trees[folder] = hash
	return err
}

// EncodedObject returns an object for go-git's encoder.
func (s *spool) EncodedObject(_ plumbing.ObjectType, hash plumbing.Hash) (plumbing.EncodedObject, error) {
	return s.all[hash], nil
}

// finish writes all objects durably to the repository.
func (s *spool) finish() error {
	d := s.in.git
	for _, l := range s.large {
		if err := d.Large(l.oid, io.NewSectionReader(l.data, 0, l.Size())); err != nil {
			return err
		}
	}
	if len(s.all) > fewObjects || s.at > fewBytes {
		names := slices.Collect(maps.Keys(s.all))
		plumbing.HashesSort(names)
		err := d.Pack(func(w io.Writer) error {
			_, err := packfile.NewEncoder(w, s, false).Encode(names, 0)
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot write a pack: %w", err)
		}
		return nil
	}
	for _, o := range s.all {
		if err := d.Loose(o); err != nil {
			return err
		}
	}
	return nil
}

func (s *spool) close() { s.file.Close() }

// read returns up to most bytes from the beginning of a blob.
func read(s *gitdir.Store, hash plumbing.Hash, most int64) ([]byte, error) {
	from, _, err := s.Blob(hash)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	return io.ReadAll(io.LimitReader(from, most))
}

// ErrSecret means that a commit would contain a secret.
var ErrSecret = errors.New("a secret would be committed")

// maxSecretFiles is the maximum number of files with secrets in an error.
const maxSecretFiles = 10

// refuseSecrets returns ErrSecret with the new and changed files whose name or content contains a
// secret. It names the secret, never its value.
func (s *spool) refuseSecrets(secrets map[string]string, base, entries []*index.Entry) error {
	any := redact.New(slices.Collect(maps.Values(secrets))...)
	if !any.Knows() {
		return nil
	}
	in := func(text []byte) string {
		if any.Holds(text) {
			for _, name := range slices.Sorted(maps.Keys(secrets)) {
				if redact.New(secrets[name]).Holds(text) {
					return name
				}
			}
		}
		return ""
	}
	var all []string
	for _, path := range differing(base, entries) {
		e := entryAt(entries, path)
		if e == nil || len(all) == maxSecretFiles {
			continue
		}
		o, is := s.all[e.Hash]
		if l, points := s.large[e.Hash]; points {
			o = l.spooled
		}
		name := in([]byte(path))
		if name != "" {
			path = any.String(path)
		} else if is {
			var err error
			if name, err = search(o.data, in); err != nil {
				return fmt.Errorf("cannot look for secrets in %q: %w", path, err)
			}
		}
		if name != "" {
			all = append(all, fmt.Sprintf("%q has the value of %s", path, name))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%w, plain or encoded: %s", ErrSecret, strings.Join(all, ", "))
}

// search reads data in parts that overlap by more than the length of any secret.
func search(data *io.SectionReader, in func([]byte) string) (name string, err error) {
	const part, overlap = 1 << 20, 64 << 10
	buf := make([]byte, min(part, data.Size()))
	for at := int64(0); name == "" && at < data.Size(); at += part - overlap {
		n, err := data.ReadAt(buf, at)
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		name = in(buf[:n])
	}
	return name, nil
}
