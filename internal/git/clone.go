package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/git/gitdir"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
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
	to := repository{dir, gitdir.At(filepath.Join(dir, ".git"), top)}
	var exclude strings.Builder
	for _, name := range without {
		fmt.Fprintf(&exclude, "/%s\n", name)
	}
	err = errors.Join(layOut(dir, top), to.git.Replace("info/exclude", []byte(exclude.String())))
	if len(without) > 0 {
		err = errors.Join(err, to.git.Replace(sparseFile, sparseOf(without)), to.git.Replace("config", []byte(newConfig+sparseConfig)))
	}
	if err != nil {
		return err
	}
	if err := o.copyTo(ctx, to.git, commit, without); err != nil {
		return err
	}
	all, err := to.contentOf(commit, without)
	if err == nil {
		err = to.checkOut(nil, all.entries)
	}
	if err == nil {
		err = to.git.Move(ctx, "refs/heads/"+branch, "", commit, 0)
	}
	if err == nil {
		err = setHead(to.git, branch)
	}
	return err
}

const sparseFile = "info/sparse-checkout"

// sparseConfig lets the user's git check out no path that a clone is without: it would write what
// stands in its place, and commit that over the user's file.
const sparseConfig = "\tsparseCheckout = true\n[sparse]\n\texpectFilesOutsideOfPatterns = true\n"

// sparseOf is the content of sparseFile for the paths that a clone is without.
func sparseOf(without []string) []byte {
	lines := "/*\n"
	for _, name := range without {
		lines += "!/" + escape.Replace(name) + "\n"
	}
	return []byte(lines)
}

// escape makes a pattern of a path that matches only the path.
var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, ` `, `\ `)

// Fetch copies a commit with its history into a clone of this repository.
func (o *Origin) Fetch(ctx context.Context, into *Repo, commit string) error {
	return o.copyTo(ctx, into.git, commit, into.opts.Without)
}

// copyTo copies a commit with its history into a clone, but for what that has.
func (o *Origin) copyTo(ctx context.Context, d gitdir.Dir, commit string, without []string) error {
	from := o.git.Store()
	r, err := reached(ctx, from, d, commit, without, gitdir.MaxBlob)
	if err != nil {
		return err
	}
	// Before a commit is there, which is not looked at again.
	if err := errors.Join(r.endThere(d), r.replaceLeft(d)); err != nil {
		return err
	}
	var objects storer.EncodedObjectStorer = from
	if o.borrows() {
		objects = struct{ storer.EncodedObjectStorer }{from} // without deltas: go-git finds none of another's
	}
	return writePack(d, objects, r.objects, deltaWindow)
}

// deltaWindow is git's own: so many objects each is compared with. Deltas that are there
// are taken over.
const deltaWindow = 10

// reach collects what a commit needs and another repository has not.
type reach struct {
	from, to *gitdir.Store
	without  []string
	most     int64 // bytes of a file, 0 for any

	seen    map[string]bool
	objects []plumbing.Hash        // to be copied, each once
	left    map[plumbing.Hash]bool // content that is left out
	ends    []plumbing.Hash        // commits at which the history ends
}

// reached is what is to be copied for a commit and its history.
func reached(ctx context.Context, from *gitdir.Store, to gitdir.Dir, commit string, without []string, most int64) (*reach, error) {
	r := &reach{from: from, to: to.Store(), without: without, most: most, seen: map[string]bool{}, left: map[plumbing.Hash]bool{}}
	ends, err := from.Shallow()
	if err != nil {
		return nil, err
	}
	for todo := []plumbing.Hash{plumbing.NewHash(commit)}; len(todo) > 0; {
		hash := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !r.take(hash) {
			continue
		}
		c, err := object.GetCommit(from, hash)
		if err == nil {
			err = r.tree(c.TreeHash, "")
		}
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return nil, fmt.Errorf("cannot read commit %s and what it needs: %w", hash, err)
		}
		if slices.Contains(ends, hash) {
			r.ends = append(r.ends, hash)
		} else {
			todo = append(todo, c.ParentHashes...)
		}
	}
	return r, nil
}

func (r *reach) has(hash plumbing.Hash) bool { return r.to.HasEncodedObject(hash) == nil }

// take notes an object that is to be copied, once.
func (r *reach) take(hash plumbing.Hash) bool {
	if r.seen[hash.String()] || r.has(hash) {
		return false
	}
	r.seen[hash.String()], r.objects = true, append(r.objects, hash)
	return true
}

// tree takes a folder with all that is in it. One that is there already may lack what is left
// out at another place.
func (r *reach) tree(hash plumbing.Hash, at string) error {
	left, key := without(r.without, at), hash.String()+" left"
	above := func(p string) bool { return at == "" || strings.HasPrefix(p, at+"/") }
	if !left {
		key = hash.String() + " whole"
		if slices.ContainsFunc(r.without, above) {
			key += " but for what is below " + at
		}
	}
	if r.seen[key] || r.has(hash) && len(r.without) == 0 {
		return nil
	}
	r.seen[key] = true
	r.take(hash)
	t, err := object.GetTree(r.from, hash)
	if err == nil && len(at) > maxTreePath {
		err = ErrTooLarge
	}
	if err != nil {
		return fmt.Errorf("tree %s: %w", hash, err)
	}
	for _, e := range t.Entries {
		name := path.Join(at, e.Name)
		switch {
		case e.Mode == filemode.Dir:
			if err := r.tree(e.Hash, name); err != nil {
				return err
			}
		case without(r.without, name):
			r.left[e.Hash] = true
		case e.Mode != filemode.Submodule:
			if err := r.blob(e.Hash, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// blob takes a file's content unless it is too large, which its header says before anything is
// inflated.
func (r *reach) blob(hash plumbing.Hash, at string) error {
	if !r.take(hash) || r.most == 0 {
		return nil
	}
	o, err := r.from.EncodedObject(plumbing.BlobObject, hash)
	if err == nil && o.Size() > r.most {
		return gitdir.Foreign("%q has %d bytes in some commit, more than %d: take it out of the history, or list it in adopt.exclude", at, o.Size(), r.most)
	}
	if err != nil {
		err = fmt.Errorf("%q: %w", at, err)
	}
	return err
}

// endThere lets the history of a clone end where its origin's does.
func (r *reach) endThere(d gitdir.Dir) error {
	ends, err := r.to.Shallow()
	if err != nil || len(r.ends) == 0 {
		return err
	}
	var lines strings.Builder
	for _, end := range append(ends, r.ends...) {
		fmt.Fprintln(&lines, end)
	}
	return d.Replace("shallow", []byte(lines.String()))
}

// leftOut is what git in a clone finds in the place of what was left out, by refs/replace.
const leftOut = "abl has left this out of the clone\n"

// Whole fails with ErrForeign if a commit holds that text in the place of a file of the user's.
func (r *Repo) Whole(commit string) error {
	all, err := r.content(commit)
	if err != nil {
		return err
	}
	instead := plumbing.ComputeHash(plumbing.BlobObject, []byte(leftOut))
	for _, e := range all.entries {
		if e.Hash == instead && without(r.opts.Without, e.Name) {
			return gitdir.Foreign("commit %.12s of %q has a placeholder of abl in the place of %q: git -C %s reset --hard to the commit before it, and merge again",
				commit, r.dir, e.Name, r.dir)
		}
	}
	return nil
}

// replaceLeft names that for all that a clone lacks, and for nothing that it gets.
func (r *reach) replaceLeft(d gitdir.Dir) error {
	const replace = "refs/replace/"
	refs, err := d.Packed()
	if err != nil || len(refs)+len(r.left) == 0 {
		return err
	}
	var instead plumbing.MemoryObject
	instead.SetType(plumbing.BlobObject)
	instead.Write([]byte(leftOut))
	if err := d.Loose(&instead); err != nil {
		return err
	}
	for hash := range r.left {
		if !r.has(hash) {
			refs[replace+hash.String()] = instead.Hash().String()
		}
	}
	for _, hash := range r.objects {
		delete(refs, replace+hash.String())
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		fmt.Fprintf(&lines, "%s %s\n", refs[name], name)
	}
	return d.Replace("packed-refs", []byte(lines.String()))
}
