package git

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

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

// Export writes a commit as a tar archive with the top directory as. It reads nothing from the work
// tree. Everything in the archive belongs to owner.
func (r *Repo) Export(ctx context.Context, w io.Writer, commit, as string, owner Owner) error {
	dir, err := r.git.TempDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	if err := r.ExportTo(ctx, dir, commit, "", owner); err != nil {
		return err
	}
	return hostfs.Tar(w, as, dir)
}

// ExportTo writes a commit to dir, an empty directory. dir and everything in it belong to owner, and
// files have the time of the commit. earlier is "" or a directory next to dir with an earlier export,
// named by its tree. Files that both commits have become hard links, which are much cheaper than new
// files on many disks. They keep their times.
func (r *Repo) ExportTo(ctx context.Context, dir, commit, earlier string, owner Owner) error {
	if !gitdir.ValidHash(commit) {
		return fmt.Errorf("cannot export %q: not a commit hash", commit)
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
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	own := func(name string) error { return root.Lchown(name, owner.UID, owner.GID) }
	if os.Geteuid() == owner.UID && os.Getegid() == owner.GID {
		own = func(string) error { return nil }
	}
	made := map[string]bool{".": true}
	var mkdir func(name string) error
	mkdir = func(name string) error {
		if made[name] {
			return nil
		}
		made[name] = true
		return cmp.Or(mkdir(path.Dir(name)), root.Mkdir(name, 0o755), own(name))
	}
	had := linksOf(s, earlier, dir)
	defer had.close()
	err = own(".")
	for _, e := range r.withModules(all.entries) {
		if e.SkipWorktree || err != nil {
			continue
		}
		if e.Mode == filemode.Submodule { // its files, if any, are entries, too
			err = mkdir(e.Name)
		} else if err = cmp.Or(ctx.Err(), mkdir(path.Dir(e.Name))); err == nil && !had.link(e) {
			err = cmp.Or(writeFile(s, root, e), own(e.Name))
			if err == nil && e.Mode != filemode.Symlink {
				err = root.Chtimes(e.Name, c.Committer.When, c.Committer.When)
			}
		}
		if err != nil {
			err = fmt.Errorf("cannot export %q of commit %s: %w", e.Name, commit, err)
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
