package git

import (
	"archive/tar"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"time"

	"abl/internal/git/gitdir"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/diff"
	texts "github.com/go-git/go-git/v5/utils/diff"
)

// Owner is whom the files of an export belong to.
type Owner struct{ UID, GID int }

// Export writes what a commit holds as a tar of one folder of the name as:
// files, folders and links, and nothing of the work tree as it is now. Every
// file has the commit's time, so that two exports of a commit are the same.
func (r *Repo) Export(ctx context.Context, w io.Writer, commit, as string, owner Owner) error {
	if !gitdir.ValidHash(commit) {
		return fmt.Errorf("cannot export %q: it is no commit's name", commit)
	}
	s := r.store()
	c, err := r.commit(s, commit)
	if err != nil {
		return err
	}
	all, err := r.base(c)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	header := func(name string, kind byte, mode int64) *tar.Header {
		return &tar.Header{Name: path.Join(as, name), Typeflag: kind, Mode: mode, Uid: owner.UID, Gid: owner.GID, ModTime: c.When, Format: tar.FormatPAX}
	}
	for _, folder := range slices.Sorted(maps.Keys(all.trees)) {
		h := header(folder, tar.TypeDir, 0o755)
		h.Name += "/"
		if err := t.WriteHeader(h); err != nil {
			return err
		}
	}
	for _, e := range all.entries {
		o, err := s.EncodedObject(plumbing.BlobObject, e.Hash)
		if err = cmp.Or(ctx.Err(), err); err == nil {
			err = exportFile(t, header(e.Name, tar.TypeReg, int64(e.Mode&0o777)), e.Mode, o)
		}
		if err != nil {
			return fmt.Errorf("cannot export %q of commit %s: %w", e.Name, commit, err)
		}
	}
	return t.Close()
}

func exportFile(t *tar.Writer, h *tar.Header, mode filemode.FileMode, o plumbing.EncodedObject) error {
	from, err := o.Reader()
	if err != nil {
		return err
	}
	defer from.Close()
	if mode != filemode.Symlink {
		h.Size = o.Size()
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		_, err = io.Copy(t, from)
		return err
	}
	target, err := io.ReadAll(io.LimitReader(from, 1<<16))
	if err != nil {
		return err
	}
	h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, string(target), 0o777
	return t.WriteHeader(h)
}

// Diff writes what changes of a file, in the unified form. A text that is nil is a file
// that is not there.
func Diff(w io.Writer, name string, from, to *string, colours bool) error {
	e := diff.NewUnifiedEncoder(w, diff.DefaultContextLines)
	if colours {
		e.SetColor(diff.NewColorConfig())
	}
	return e.Encode(change{name, from, to})
}

// change is one file as go-git's encoder wants it: a patch, and the one file of it.
type change struct {
	name     string
	from, to *string
}

func (c change) FilePatches() []diff.FilePatch { return []diff.FilePatch{c} }
func (c change) Message() string               { return "" }
func (c change) IsBinary() bool                { return false }

func (c change) Files() (from, to diff.File) {
	if c.from != nil {
		from = side{c.name, *c.from}
	}
	if c.to != nil {
		to = side{c.name, *c.to}
	}
	return from, to
}

// Chunks takes what is not compared in time as removed and added.
func (c change) Chunks() (all []diff.Chunk) {
	const longest = 2 * time.Second
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	for _, d := range texts.DoWithTimeout(text(c.from), text(c.to), longest) {
		one := chunk{text: d.Text}
		switch {
		case d.Type > 0:
			one.op = diff.Add
		case d.Type < 0:
			one.op = diff.Delete
		}
		all = append(all, one)
	}
	return all
}

// side is a file before or after.
type side struct{ name, text string }

func (s side) Hash() plumbing.Hash     { return plumbing.ComputeHash(plumbing.BlobObject, []byte(s.text)) }
func (s side) Mode() filemode.FileMode { return filemode.Regular }
func (s side) Path() string            { return s.name }

// chunk is a piece of both texts, or of one.
type chunk struct {
	text string
	op   diff.Operation
}

func (c chunk) Content() string      { return c.text }
func (c chunk) Type() diff.Operation { return c.op }
