package git

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"time"

	"abl/internal/git/gitdir"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/storer"
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
	x := exporter{ctx: ctx, store: s, tar: tar.NewWriter(w), owner: owner, when: c.When, made: map[string]bool{}}
	if err := x.folder(as); err != nil {
		return err
	}
	for _, e := range all.entries {
		if err := x.add(e, path.Join(as, e.Name)); err != nil {
			return fmt.Errorf("cannot export %q of commit %s: %w", e.Name, commit, err)
		}
	}
	return x.tar.Close()
}

// exporter writes one tar.
type exporter struct {
	ctx   context.Context
	store storer.EncodedObjectStorer
	tar   *tar.Writer
	owner Owner
	when  time.Time
	made  map[string]bool // folders
}

func (x *exporter) add(e *index.Entry, name string) error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if err := x.folder(path.Dir(name)); err != nil {
		return err
	}
	o, err := x.store.EncodedObject(plumbing.BlobObject, e.Hash)
	if err != nil {
		return err
	}
	from, err := o.Reader()
	if err != nil {
		return err
	}
	h := x.header(name, tar.TypeReg, int64(e.Mode&0o777))
	h.Size = o.Size()
	if e.Mode == filemode.Symlink {
		target, err := io.ReadAll(io.LimitReader(from, 1<<16))
		if err = errors.Join(err, from.Close()); err != nil {
			return err
		}
		h.Typeflag, h.Size, h.Linkname, h.Mode = tar.TypeSymlink, 0, string(target), 0o777
		return x.tar.WriteHeader(h)
	}
	err = x.tar.WriteHeader(h)
	if err == nil {
		_, err = io.Copy(x.tar, from)
	}
	return errors.Join(err, from.Close())
}

// folder writes an entry for a folder and for those above it, once.
func (x *exporter) folder(name string) error {
	if name == "." || name == "/" || x.made[name] {
		return nil
	}
	if err := x.folder(path.Dir(name)); err != nil {
		return err
	}
	x.made[name] = true
	return x.tar.WriteHeader(x.header(name+"/", tar.TypeDir, 0o755))
}

func (x *exporter) header(name string, kind byte, mode int64) *tar.Header {
	return &tar.Header{Name: name, Typeflag: kind, Mode: mode, Uid: x.owner.UID, Gid: x.owner.GID, ModTime: x.when, Format: tar.FormatPAX}
}
