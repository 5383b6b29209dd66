package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/git/scan"
	"abl/internal/hostfs"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/go-git/go-git/v5/storage/filesystem/dotgit"
)

// Clone makes a repository in dir, an empty folder or the rest of a clone that was killed, of
// a commit and its history, on a branch of its own. Objects are copied. Of what stands at the
// paths in without, or below them, the commits keep the names; the content comes neither
// into the work tree nor among the objects.
func (o *Origin) Clone(ctx context.Context, dir, commit, branch string, without []string) error {
	top, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if err := gitdir.At(dir, top).Mkdir(".git"); err != nil {
		return err
	}
	d := gitdir.At(filepath.Join(dir, ".git"), top)
	var exclude strings.Builder
	for _, name := range without {
		fmt.Fprintf(&exclude, "/%s\n", name)
	}
	if err := errors.Join(layOut(d), d.Replace("info/exclude", []byte(exclude.String()))); err != nil {
		return err
	}
	if err := o.copyTo(ctx, d, commit, without); err != nil {
		return err
	}
	s := filesystem.NewStorage(d.FS(), cache.NewObjectLRUDefault())
	all, err := commitContent(s, without, commit)
	if err == nil {
		err = checkOut(s, d, dir, nil, all.entries)
	}
	if err == nil {
		err = d.Move(ctx, "refs/heads/"+branch, "", commit, 0)
	}
	if err == nil {
		err = d.Replace("HEAD", []byte("ref: refs/heads/"+branch+"\n"))
	}
	return err
}

// copyTo copies a commit with its history into a clone, but for what that has.
func (o *Origin) copyTo(ctx context.Context, d gitdir.Dir, commit string, without []string) error {
	from, to := o.store(), filesystem.NewStorage(d.FS(), cache.NewObjectLRUDefault())
	r := reach{ctx: ctx, from: from, has: func(h plumbing.Hash) bool { return to.HasEncodedObject(h) == nil }, without: without}
	refs, err1 := d.Packed()
	ends, err2 := to.Shallow()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for name := range refs {
		r.partly = r.partly || strings.HasPrefix(name, replaced)
	}
	if err := r.commit(plumbing.NewHash(commit)); err != nil {
		return fmt.Errorf("cannot read the history of %q: %w", o.dir, err)
	}
	if len(r.shallow) > 0 {
		for _, end := range ends {
			r.shallow = append(r.shallow, end.String())
		}
		if err := d.Replace("shallow", []byte(strings.Join(r.shallow, "\n")+"\n")); err != nil {
			return err
		}
	}
	for _, hash := range r.objects {
		delete(refs, replaced+hash.String())
	}
	if r.partly || len(r.left) > 0 { // before a commit is there, which is not looked at again
		if err := replaceLeft(d, refs, r.left); err != nil {
			return err
		}
	}
	return writePack(d, o.plain(from), r.objects, deltaWindow)
}

// reach collects what a commit needs and another repository has not.
type reach struct {
	ctx     context.Context
	from    *filesystem.Storage
	has     func(plumbing.Hash) bool
	without []string
	partly  bool // the other has trees and not all that is in them

	seen    map[string]bool
	objects []plumbing.Hash        // to be copied, each once
	left    map[plumbing.Hash]bool // content that is left out
	shallow []string               // commits at which the history ends
}

func (r *reach) commit(tip plumbing.Hash) error {
	ends, err := r.from.Shallow()
	if err != nil {
		return err
	}
	r.seen, r.left = map[string]bool{}, map[plumbing.Hash]bool{}
	for todo := []plumbing.Hash{tip}; len(todo) > 0; {
		hash := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !r.take(hash) {
			continue
		}
		c, err := object.GetCommit(r.from, hash)
		if err == nil {
			err = r.ctx.Err()
		}
		if err == nil {
			err = r.tree(c.TreeHash, "", 0)
		}
		if err != nil {
			return fmt.Errorf("commit %s: %w", hash, err)
		}
		if slices.Contains(ends, hash) {
			r.shallow = append(r.shallow, hash.String())
			continue
		}
		todo = append(todo, c.ParentHashes...)
	}
	standsElsewhere := func(h plumbing.Hash, _ bool) bool { return r.seen[h.String()] || r.has(h) }
	maps.DeleteFunc(r.left, standsElsewhere)
	return nil
}

// take notes an object that is to be copied, once.
func (r *reach) take(hash plumbing.Hash) bool {
	if r.seen[hash.String()] || r.has(hash) {
		return false
	}
	r.seen[hash.String()], r.objects = true, append(r.objects, hash)
	return true
}

func (r *reach) tree(hash plumbing.Hash, at string, depth int) error {
	key := "whole " + hash.String() // what is left out depends on where a tree stands
	if left, above := without(r.without, at); left {
		key = "left " + hash.String()
	} else if above {
		key = at + "/" + hash.String()
	}
	if r.seen[key] || r.has(hash) && !r.partly {
		return nil
	}
	r.seen[key] = true
	r.take(hash)
	t, err := object.GetTree(r.from, hash)
	if err == nil && depth > maxTreeDepth {
		err = errors.New("its folders never end")
	}
	if err != nil {
		return fmt.Errorf("tree %s: %w", hash, err)
	}
	for _, e := range t.Entries {
		name := path.Join(at, e.Name)
		if left, _ := without(r.without, name); e.Mode == filemode.Dir {
			err = r.tree(e.Hash, name, depth+1)
		} else if left {
			r.left[e.Hash] = true
		} else if e.Mode != filemode.Submodule {
			r.take(e.Hash)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// without says whether a path is one of those, or below one, and whether one is below it.
func without(paths []string, at string) (left, above bool) {
	for _, p := range paths {
		left = left || at == p || strings.HasPrefix(at, p+"/")
		above = above || at == "" || strings.HasPrefix(p, at+"/")
	}
	return left, above
}

// deltaWindow is git's own: so many objects each is compared with. Deltas that are there
// are taken over.
const deltaWindow = 10

// writePack writes objects as one pack, if there are any.
func writePack(d gitdir.Dir, from storer.EncodedObjectStorer, objects []plumbing.Hash, window uint) error {
	if len(objects) == 0 {
		return nil
	}
	fs := d.FS()
	defer fs.Discard()
	pack, err := dotgit.New(fs).NewObjectPack()
	if err != nil {
		return fmt.Errorf("cannot begin a pack: %w", err)
	}
	w := bufio.NewWriterSize(pack, 256<<10)
	_, err = packfile.NewEncoder(w, from, false).Encode(objects, window)
	if err = errors.Join(err, w.Flush(), pack.Close()); err != nil {
		return fmt.Errorf("cannot write a pack: %w", err)
	}
	return nil
}

// leftOut is what git in a clone finds in the place of what was left out, by refs/replace.
const leftOut = "abl has left this out of the clone\n"

const replaced = "refs/replace/"

func replaceLeft(d gitdir.Dir, refs map[string]string, left map[plumbing.Hash]bool) error {
	var o plumbing.MemoryObject
	o.SetType(plumbing.BlobObject)
	o.Write([]byte(leftOut))
	instead, err := filesystem.NewObjectStorage(dotgit.New(d.FS()), nil).SetEncodedObject(&o)
	if err != nil {
		return fmt.Errorf("cannot write object %s: %w", o.Hash(), err)
	}
	for hash := range left {
		refs[replaced+hash.String()] = instead.String()
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		fmt.Fprintf(&lines, "%s %s\n", refs[name], name)
	}
	return d.Replace("packed-refs", []byte(lines.String()))
}

// checkOut takes a work tree and its index from what was committed to what is.
func checkOut(s *filesystem.Storage, d gitdir.Dir, dir string, was, is []*index.Entry) error {
	if err := writeTree(s, dir, was, is); err != nil {
		return err
	}
	ix, err := encodeIndex(is)
	if err != nil {
		return err
	}
	return d.Replace("index", ix)
}

// writeTree writes and removes the files that differ.
func writeTree(s *filesystem.Storage, dir string, was, is []*index.Entry) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	differ := differing(was, is)
	for _, name := range slices.Backward(differ) { // what is in a folder goes before it
		if err := unlink(root, name); err != nil {
			return fmt.Errorf("cannot take %q out of the work tree: %w", name, err)
		}
	}
	for _, e := range is {
		if _, is := slices.BinarySearch(differ, e.Name); is && !e.SkipWorktree {
			if err := writeFile(s, root, e); err != nil {
				return fmt.Errorf("cannot write %q into the work tree: %w", e.Name, err)
			}
		}
	}
	return nil
}

// PutBack makes the directory again what Tree said of it, sweeps it, and returns the paths
// that differed, sorted, and what the sweep took away. What was neither committed then nor
// new since stays as it is now. What it writes is made over to a user.
func (r *Repo) PutBack(ctx context.Context, was map[string]string, uid, gid int) (differed []string, cleared []state.Thing, err error) {
	base, found, now, err := trees(ctx, r, scan.Options{Sweep: true})
	if err != nil {
		return nil, nil, err
	}
	committed, all := contents(base.entries), maps.Clone(was)
	maps.Copy(all, now)
	maps.DeleteFunc(all, func(name, _ string) bool { return was[name] == now[name] })
	differed = slices.Sorted(maps.Keys(all))
	stays := func(e *index.Entry) bool {
		return was[e.Name] == now[e.Name] || was[e.Name] != "" && was[e.Name] != committed[e.Name]
	}
	from := slices.DeleteFunc(slices.Clone(found.Entries), stays)
	to := slices.DeleteFunc(slices.Clone(base.entries), func(e *index.Entry) bool { return stays(e) || was[e.Name] == "" })
	root, err := os.OpenRoot(r.dir)
	if err != nil {
		return differed, found.Cleared, err
	}
	defer root.Close()
	for _, e := range slices.Concat(from, to) {
		err = cmp.Or(err, opened(root, path.Dir(e.Name)))
	}
	for _, e := range to {
		if is, serr := root.Lstat(e.Name); err == nil && serr == nil && is.IsDir() { // what git ignores may be in it
			err = hostfs.Remove(r.dir, e.Name)
		}
	}
	if err == nil {
		err = writeTree(r.store(), r.dir, from, to)
	}
	for _, e := range to {
		for at := e.Name; at != "." && err == nil; at = path.Dir(at) {
			err = root.Lchown(at, uid, gid)
		}
	}
	return differed, found.Cleared, err
}

// opened gives a folder, and those above it, back the rights by which it can be written in.
func opened(root *os.Root, folder string) error {
	for i, b := range []byte("./" + folder + "/") {
		if b != '/' {
			continue
		}
		at := ("./" + folder)[:i]
		is, err := root.Lstat(at)
		if err != nil || !is.IsDir() {
			return nil // it is made anew
		}
		if is.Mode().Perm()&0o700 != 0o700 {
			if err := root.Chmod(at, is.Mode().Perm()|0o700); err != nil {
				return err
			}
		}
	}
	return nil
}

// unlink removes a file and the folders above it that are empty then.
func unlink(root *os.Root, name string) error {
	for at := path.Dir(name); at != "."; at = path.Dir(at) {
		if is, err := root.Lstat(at); err == nil && !is.IsDir() {
			return nil // what is behind a link is not what is tracked
		}
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

// folders makes a folder and those above it. A link in their place is not followed: it could
// lead into .git.
func folders(root *os.Root, name string) error {
	if name == "." {
		return nil
	}
	if err := folders(root, path.Dir(name)); err != nil {
		return err
	}
	is, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return root.Mkdir(name, 0o755)
	}
	if err == nil && !is.IsDir() {
		err = fmt.Errorf("%q is in the way", name)
	}
	return err
}

func writeFile(s *filesystem.Storage, root *os.Root, e *index.Entry) error {
	if why := scan.Refused(e.Name, e.Mode == filemode.Symlink); why != "" {
		return errors.New(why)
	}
	if e.Mode == filemode.Submodule {
		return folders(root, e.Name)
	}
	if err := folders(root, path.Dir(e.Name)); err != nil {
		return err
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
	if e.Mode == filemode.Symlink {
		target, err := io.ReadAll(io.LimitReader(from, 1<<16))
		if err != nil {
			return err
		}
		return root.Symlink(string(target), e.Name)
	}
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
