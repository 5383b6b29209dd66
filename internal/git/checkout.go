package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/git/scan"
	"abl/internal/hostfs"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// checkOut updates the work tree and the index from the entries of one commit to those of another.
func (r *repository) checkOut(from, to []*index.Entry) error {
	if err := r.writeTree(from, to); err != nil {
		return err
	}
	data, err := encodeIndex(to)
	if err != nil {
		return err
	}
	return r.git.Replace("index", data)
}

// writeTree removes and writes the files that differ.
func (r *repository) writeTree(from, to []*index.Entry) error {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	from, to = r.withModules(from), r.withModules(to)
	differ, s := differing(from, to), r.git.Store()
	for _, name := range slices.Backward(differ) { // the content of a directory before the directory
		if err := unlink(root, name); err != nil {
			return fmt.Errorf("cannot remove %q from the work tree: %w", name, err)
		}
	}
	for _, name := range differ {
		if e := entryAt(to, name); e != nil && !e.SkipWorktree {
			if err := writeFile(s, root, e); err != nil {
				return fmt.Errorf("cannot write %q to the work tree: %w", name, err)
			}
		}
	}
	return nil
}

// PutBack restores the content of the directory that Tree returned, and sweeps it. The written
// files belong to uid and gid. It returns the paths that differed, sorted, and what the sweep
// removed.
func (r *Repo) PutBack(ctx context.Context, was map[string]string,
	uid, gid int) (differed []string, cleared []state.Thing, err error) {
	w, err := r.look(ctx, scan.Options{Sweep: true}, nil)
	if err != nil {
		return nil, nil, err
	}
	now, all := treeOf(w.Entries, w.Out...), maps.Clone(was)
	maps.Copy(all, now)
	maps.DeleteFunc(all, func(name, _ string) bool { return was[name] == now[name] })
	differed = slices.Sorted(maps.Keys(all))
	from := slices.DeleteFunc(slices.Clone(w.Entries), func(e *index.Entry) bool { return was[e.Name] == now[e.Name] })
	var to []*index.Entry
	for _, name := range differed {
		mode, hash, there := strings.Cut(was[name], " ")
		if !there {
			continue
		}
		e := &index.Entry{Name: name, Hash: plumbing.NewHash(hash)}
		if e.Mode, err = filemode.New(mode); err != nil {
			return differed, w.Cleared, err
		}
		to = append(to, e)
	}
	return differed, w.Cleared, r.rewrite(from, to, uid, gid)
}

// rewrite replaces files of the work tree. The new files and the directories above them belong to uid
// and gid, as far as abl may change that.
func (r *repository) rewrite(from, to []*index.Entry, uid, gid int) error {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range slices.Concat(from, to) {
		if err := reopen(root, path.Dir(e.Name)); err != nil {
			return err
		}
	}
	for _, e := range to {
		info, err := root.Lstat(e.Name)
		if err != nil || !info.IsDir() {
			continue
		}
		if err := hostfs.Remove(r.dir, e.Name); err != nil { // the directory has ignored files
			return err
		}
	}
	if err := r.writeTree(from, to); err != nil {
		return err
	}
	for _, e := range to {
		for at := e.Name; at != "."; at = path.Dir(at) {
			if err := root.Lchown(at, uid, gid); err != nil && !errors.Is(err, fs.ErrPermission) {
				return err
			}
		}
	}
	return nil
}

// reopen restores the owner's permissions on a directory and its parents.
func reopen(root *os.Root, folder string) error {
	if folder != "." {
		if err := reopen(root, path.Dir(folder)); err != nil {
			return err
		}
	}
	is, err := root.Lstat(folder)
	if err != nil || !is.IsDir() || is.Mode().Perm()&0o700 == 0o700 {
		return nil // a missing directory is created later
	}
	return root.Chmod(folder, is.Mode().Perm()|0o700)
}

// inTheWay returns the first of folder and its parents that is not a directory, "" if all are. It
// does not follow links, which could lead into .git.
func inTheWay(root *os.Root, folder string) string {
	for at := folder; at != "."; at = path.Dir(at) {
		if is, err := root.Lstat(at); err == nil && !is.IsDir() {
			return at
		}
	}
	return ""
}

// unlink removes a file and those of its parent directories that become empty.
func unlink(root *os.Root, name string) error {
	if inTheWay(root, path.Dir(name)) != "" {
		return nil // a link or a file replaced a parent, so the tracked file does not exist
	}
	err := root.Remove(name)
	if is, serr := root.Lstat(name); serr == nil && is.IsDir() {
		return nil // a submodule's directory with files of the user
	}
	for at := path.Dir(name); err == nil && at != "."; at = path.Dir(at) {
		if root.Remove(at) != nil {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// folders creates a directory and its parents.
func folders(root *os.Root, name string) error {
	if at := inTheWay(root, name); at != "" {
		return fmt.Errorf("%q is in the way", at)
	}
	return root.MkdirAll(name, 0o755)
}

// writeFile writes an entry to the work tree: a file, a link, or the folder of a submodule.
func writeFile(s *gitdir.Store, root *os.Root, e *index.Entry) error {
	if why := scan.Refused(e.Name, e.Mode == filemode.Symlink); why != "" {
		return errors.New(why)
	}
	if e.Mode == filemode.Submodule {
		return folders(root, e.Name)
	}
	if err := folders(root, path.Dir(e.Name)); err != nil {
		return err
	}
	if e.Mode == filemode.Symlink {
		target, err := read(s, e.Hash, maxTarget)
		if err != nil {
			return err
		}
		return root.Symlink(string(target), e.Name)
	}
	from, _, err := s.File(e.Hash)
	if err != nil {
		return err
	}
	defer from.Close()
	perm := fs.FileMode(0o644)
	if e.Mode == filemode.Executable {
		perm = 0o755
	}
	f, err := root.OpenFile(e.Name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// overwrite replaces the content of a regular file of the workspace. It follows no links.
func (r *repository) overwrite(name string, data []byte) error {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if at := inTheWay(root, path.Dir(name)); at != "" {
		return fmt.Errorf("%q is in the way", at)
	}
	if is, err := root.Lstat(name); err != nil || !is.Mode().IsRegular() {
		return errors.Join(err, hostfs.ErrNotRegular)
	}
	return root.WriteFile(name, data, 0)
}
