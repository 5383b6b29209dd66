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

	"abl/internal/git/gitdir"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
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
		if e.SkipWorktree || e.Mode == filemode.Submodule { // a clone does not have it
			continue
		}
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
