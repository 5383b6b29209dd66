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
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/storage/filesystem"
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
	s := r.git.Store()
	c, err := r.commit(s, commit)
	if err != nil {
		return err
	}
	all, err := r.content(commit)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	header := func(name string, kind byte, mode int64) *tar.Header {
		return &tar.Header{Name: path.Join(as, name), Typeflag: kind, Mode: mode, Uid: owner.UID, Gid: owner.GID, ModTime: c.Committer.When, Format: tar.FormatPAX}
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
		if err = cmp.Or(ctx.Err(), exportFile(t, header(e.Name, tar.TypeReg, int64(e.Mode&0o777)), s, e)); err != nil {
			return fmt.Errorf("cannot export %q of commit %s: %w", e.Name, commit, err)
		}
	}
	return t.Close()
}

func exportFile(t *tar.Writer, h *tar.Header, s *filesystem.Storage, e *index.Entry) error {
	if e.Mode == filemode.Symlink {
		target, err := read(s, e.Hash, maxTarget)
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, string(target), 0o777
		return t.WriteHeader(h)
	}
	o, err := s.EncodedObject(plumbing.BlobObject, e.Hash)
	if err != nil {
		return err
	}
	from, err := o.Reader()
	if err != nil {
		return err
	}
	defer from.Close()
	h.Size = o.Size()
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(t, from)
	return err
}
