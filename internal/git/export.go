package git

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"abl/internal/git/gitdir"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// Owner is the user and group that own the exported files.
type Owner struct{ UID, GID int }

// Content returns the mode and the hash of each file of a commit by path, without the paths that
// the clone omits.
func (r *Repo) Content(commit string) (map[string]string, error) {
	all, err := r.content(commit)
	if err != nil {
		return nil, err
	}
	without := func(e *index.Entry) bool { return e.SkipWorktree }
	return treeOf(slices.DeleteFunc(slices.Clone(all.entries), without)), nil
}

// TreeHash returns the hash of a commit's tree.
func (r *repository) TreeHash(commit string) (string, error) {
	c, err := r.commit(r.git.Store(), commit)
	if err != nil {
		return "", err
	}
	return c.TreeHash.String(), nil
}

// export is the content of a commit to write: its directories, parents first, its entries and its
// time.
type export struct {
	store   *gitdir.Store
	folders []string
	entries []*index.Entry
	when    time.Time
}

// exported reads a commit. A submodule without content in the clone is an empty directory.
func (r *Repo) exported(commit string) (x export, err error) {
	if !gitdir.ValidHash(commit) {
		return x, fmt.Errorf("cannot export %q: not a commit hash", commit)
	}
	x.store = r.git.Store()
	c, err := r.commit(x.store, commit)
	if err != nil {
		return x, err
	}
	all, err := r.content(commit)
	if err != nil {
		return x, err
	}
	x.when, x.folders = c.Committer.When, slices.Collect(maps.Keys(all.trees))
	for _, e := range r.withModules(all.entries) {
		switch {
		case e.SkipWorktree:
		case e.Mode == filemode.Submodule:
			x.folders = append(x.folders, e.Name+"/")
		default:
			x.entries = append(x.entries, e)
		}
		for at := path.Dir(e.Name); at != "." && all.trees[at+"/"].IsZero(); at = path.Dir(at) { // in a submodule
			x.folders = append(x.folders, at+"/")
		}
	}
	slices.Sort(x.folders)
	x.folders = slices.Compact(x.folders)
	return x, nil
}

// Export writes a commit as a tar archive with the top directory as. It reads nothing from the work
// tree. Every file has the time of the commit, so that two exports are equal.
func (r *Repo) Export(ctx context.Context, w io.Writer, commit, as string, owner Owner) error {
	x, err := r.exported(commit)
	if err != nil {
		return err
	}
	t := tar.NewWriter(w)
	header := func(name string, kind byte, mode int64) *tar.Header {
		return &tar.Header{
			Name:     path.Join(as, name),
			Typeflag: kind,
			Mode:     mode,
			Format:   tar.FormatPAX,
			Uid:      owner.UID,
			Gid:      owner.GID,
			ModTime:  x.when,
		}
	}
	for _, folder := range x.folders {
		h := header(folder, tar.TypeDir, 0o755)
		h.Name += "/"
		if err := t.WriteHeader(h); err != nil {
			return err
		}
	}
	for _, e := range x.entries {
		err = cmp.Or(ctx.Err(), exportFile(t, header(e.Name, tar.TypeReg, int64(e.Mode&0o777)), x.store, e))
		if err != nil {
			return fmt.Errorf("cannot export %q of commit %s: %w", e.Name, commit, err)
		}
	}
	return t.Close()
}

// ExportTo writes a commit to dir, an empty directory, like Export. dir and everything in it belong
// to owner. earlier is "" or a directory next to dir with an earlier export, named by its tree.
// Files that both commits have become hard links, which are much cheaper than new files on many
// disks. They keep their times.
func (r *Repo) ExportTo(ctx context.Context, dir, commit, earlier string, owner Owner) error {
	x, err := r.exported(commit)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	own := func(name string) error { return root.Lchown(name, owner.UID, owner.GID) }
	if os.Geteuid() == owner.UID && os.Getegid() == owner.GID {
		own = func(string) error { return nil }
	}
	err = own(".")
	for _, folder := range x.folders {
		if name := path.Clean(folder); err == nil && name != "." {
			err = errors.Join(root.MkdirAll(name, 0o755), own(name))
		}
	}
	had := linksOf(x.store, earlier, dir)
	defer had.close()
	for _, e := range x.entries {
		if err == nil && had.link(e) {
			continue
		}
		if err == nil {
			err = cmp.Or(ctx.Err(), writeFile(x.store, root, e), own(e.Name))
		}
		if err == nil && e.Mode != filemode.Symlink {
			err = root.Chtimes(e.Name, x.when, x.when)
		}
		if err != nil {
			return fmt.Errorf("cannot export %q of commit %s: %w", e.Name, commit, err)
		}
	}
	return err
}

// links creates hard links from one export to files of another.
type links struct {
	parent   *os.Root                // of both directories
	from, to string                  // names of both directories
	had      map[string]*index.Entry // entries of from by path
}

// linksOf prepares links from earlier to dir. It prepares none if there is no earlier export or its
// tree cannot be read.
func linksOf(s *gitdir.Store, earlier, dir string) links {
	var all content
	l := links{from: filepath.Base(earlier), to: filepath.Base(dir), had: map[string]*index.Entry{}}
	if earlier == "" || filepath.Dir(earlier) != filepath.Dir(dir) || !gitdir.ValidHash(l.from) {
		return l
	}
	all.trees = map[string]plumbing.Hash{}
	if all.add(s, plumbing.NewHash(l.from), "") != nil {
		return l
	}
	for _, e := range all.entries {
		l.had[e.Name] = e
	}
	l.parent, _ = os.OpenRoot(filepath.Dir(dir))
	return l
}

// link creates the file of an entry as a link and reports whether it did.
func (l links) link(e *index.Entry) bool {
	was := l.had[e.Name]
	return l.parent != nil && was != nil && was.Hash == e.Hash && was.Mode == e.Mode && e.Mode != filemode.Symlink &&
		l.parent.Link(path.Join(l.from, e.Name), path.Join(l.to, e.Name)) == nil
}

func (l links) close() {
	if l.parent != nil {
		l.parent.Close()
	}
}

func exportFile(t *tar.Writer, h *tar.Header, s *gitdir.Store, e *index.Entry) error {
	if e.Mode == filemode.Symlink {
		target, err := read(s, e.Hash, maxTarget)
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname, h.Mode = tar.TypeSymlink, string(target), 0o777
		return t.WriteHeader(h)
	}
	from, size, err := s.File(e.Hash)
	if err != nil {
		return err
	}
	defer from.Close()
	h.Size = size
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(t, from)
	return err
}
