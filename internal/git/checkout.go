package git

import (
	"cmp"
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

// checkOut takes a work tree and its index from what was committed to what is.
func (r *repository) checkOut(was, is []*index.Entry) error {
	if err := r.writeTree(was, is); err != nil {
		return err
	}
	ix, err := encodeIndex(is)
	if err != nil {
		return err
	}
	return r.git.Replace("index", ix)
}

// writeTree writes and removes the files that differ.
func (r *repository) writeTree(was, is []*index.Entry) error {
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return err
	}
	defer root.Close()
	was, is = r.withModules(was), r.withModules(is)
	differ, s := differing(was, is), r.git.Store()
	for _, name := range slices.Backward(differ) { // what is in a folder goes before it
		if err := unlink(root, name); err != nil {
			return fmt.Errorf("cannot take %q out of the work tree: %w", name, err)
		}
	}
	for _, name := range differ {
		if e := entryAt(is, name); e != nil && !e.SkipWorktree {
			if err := writeFile(s, root, e); err != nil {
				return fmt.Errorf("cannot write %q into the work tree: %w", name, err)
			}
		}
	}
	return nil
}

// PutBack makes the directory again what Tree returned, sweeps it, and returns the paths that
// differed, sorted, and what the sweep took away. What it writes is made over to a user.
func (r *Repo) PutBack(ctx context.Context, was map[string]string, uid, gid int) (differed []string, cleared []state.Thing, err error) {
	_, found, err := r.look(ctx, scan.Options{Sweep: true})
	if err != nil {
		return nil, nil, err
	}
	now, all := treeOf(found.Entries, found.Out...), maps.Clone(was)
	maps.Copy(all, now)
	maps.DeleteFunc(all, func(name, _ string) bool { return was[name] == now[name] })
	differed = slices.Sorted(maps.Keys(all))
	from := slices.DeleteFunc(slices.Clone(found.Entries), func(e *index.Entry) bool { return was[e.Name] == now[e.Name] })
	var to []*index.Entry
	for _, name := range differed {
		mode, hash, there := strings.Cut(was[name], " ")
		if !there {
			continue
		}
		e := &index.Entry{Name: name, Hash: plumbing.NewHash(hash)}
		if e.Mode, err = filemode.New(mode); err != nil {
			return differed, found.Cleared, err
		}
		to = append(to, e)
	}
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return differed, found.Cleared, err
	}
	defer root.Close()
	for _, e := range slices.Concat(from, to) {
		err = cmp.Or(err, reopen(root, path.Dir(e.Name)))
	}
	for _, e := range to {
		if is, serr := root.Lstat(e.Name); err == nil && serr == nil && is.IsDir() { // what git ignores may be in it
			err = hostfs.Remove(r.dir, e.Name)
		}
	}
	if err == nil {
		err = r.writeTree(from, to)
	}
	for _, e := range to {
		for at := e.Name; at != "." && err == nil; at = path.Dir(at) {
			err = root.Lchown(at, uid, gid)
		}
	}
	return differed, found.Cleared, err
}

// reopen gives a folder, and those above it, back the rights by which it can be written in.
func reopen(root *os.Root, folder string) error {
	if folder != "." {
		if err := reopen(root, path.Dir(folder)); err != nil {
			return err
		}
	}
	is, err := root.Lstat(folder)
	if err != nil || !is.IsDir() || is.Mode().Perm()&0o700 == 0o700 {
		return nil // or it is made anew
	}
	return root.Chmod(folder, is.Mode().Perm()|0o700)
}

// inTheWay is what stands in the place of a folder or of one above it, "" for nothing. A link
// is not followed: it could lead into .git.
func inTheWay(root *os.Root, folder string) string {
	for at := folder; at != "."; at = path.Dir(at) {
		if is, err := root.Lstat(at); err == nil && !is.IsDir() {
			return at
		}
	}
	return ""
}

// unlink removes a file and the folders above it that are empty then.
func unlink(root *os.Root, name string) error {
	if inTheWay(root, path.Dir(name)) != "" {
		return nil // what is behind it is not what is tracked
	}
	err := root.Remove(name)
	if is, serr := root.Lstat(name); serr == nil && is.IsDir() {
		return nil // a submodule's folder, in which somebody has put files
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

// folders makes a folder and those above it.
func folders(root *os.Root, name string) error {
	if at := inTheWay(root, name); at != "" {
		return fmt.Errorf("%q is in the way", at)
	}
	return root.MkdirAll(name, 0o755)
}

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
	from, _, err := openBlob(s, e.Hash)
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

// overwrite replaces the content of a regular file of the workspace, through no link.
func (r *Repo) overwrite(name string, data []byte) error {
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
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
