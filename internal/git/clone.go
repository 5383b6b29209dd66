package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
)

// Clone creates a repository in dir with a copy of a commit and its history on a new branch. dir is
// empty or contains an unfinished clone. Neither the work tree nor the objects get the content of
// the paths in without, but the commits keep their names.
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
		err = errors.Join(err, to.git.Replace(sparseFile, sparseOf(without)),
			to.git.Replace("config", []byte(newConfig+sparseConfig)))
	}
	if err != nil {
		return err
	}
	if err := o.copyTo(ctx, &to, commit, without); err != nil {
		return err
	}
	if err := errors.Join(o.bring(ctx, &to, commit, without, maxNested), o.bringLarge(&to, commit, without)); err != nil {
		return err
	}
	all, err := to.contentOf(commit, without)
	if err != nil {
		return err
	}
	if err := to.checkOut(nil, all.entries); err != nil {
		return err
	}
	if err := to.git.Move(ctx, "refs/heads/"+branch, "", commit); err != nil {
		return err
	}
	return setHead(to.git, branch)
}

const sparseFile = "info/sparse-checkout"

// sparseConfig makes the user's git leave out the paths that the clone does not have. Otherwise git
// would write the placeholder to such a path and commit it over the user's file.
const sparseConfig = "\tsparseCheckout = true\n[sparse]\n\texpectFilesOutsideOfPatterns = true\n"

// sparseOf returns the content of sparseFile for the omitted paths.
func sparseOf(without []string) []byte {
	lines := "/*\n"
	for _, name := range without {
		lines += "!/" + escape.Replace(name) + "\n"
	}
	return []byte(lines)
}

// escape turns a path into a pattern that matches only this path.
var escape = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, ` `, `\ `)

// Fetch copies a commit and its history into a clone of this repository.
func (o *Origin) Fetch(ctx context.Context, into *Repo, commit string) error {
	if err := o.copyTo(ctx, &into.repository, commit, into.opts.Without); err != nil {
		return err
	}
	without := into.opts.Without
	return errors.Join(o.bring(ctx, &into.repository, commit, without, maxNested),
		o.bringLarge(&into.repository, commit, without))
}

// copyTo copies a commit and its history into a clone, except for objects that the clone has or
// omits.
func (o *Origin) copyTo(ctx context.Context, to *repository, commit string, without []string) error {
	s, err := newScratch(ctx, to.git, &o.repository)
	if err != nil {
		return err
	}
	defer s.close()
	all, err := s.reachable(ctx, commit, without)
	if err == nil && len(all.missing) > 0 {
		err = s.partial(ctx, commit, without, &all)
	}
	if err != nil {
		return fmt.Errorf("cannot read commit %s and what it needs: %w", commit, err)
	}
	there := to.git.Store()
	has := func(hash plumbing.Hash) bool { return there.HasEncodedObject(hash) == nil }
	all.objects = slices.DeleteFunc(all.objects, has)
	all.left = slices.DeleteFunc(all.left, has)
	// This comes before the commit: once the clone has the commit, copyTo copies nothing again.
	if err := errors.Join(s.copyShallow(to.git, all), replaceLeft(to.git, all)); err != nil || len(all.objects) == 0 {
		return err
	}
	pack, err := s.pack(ctx, all.objects)
	if err != nil {
		return fmt.Errorf("cannot copy commit %s: %w", commit, err)
	}
	if err := to.git.TakePack(pack); err != nil {
		return err
	}
	there = to.git.Store()
	if i := slices.IndexFunc(all.objects, func(hash plumbing.Hash) bool { return !has(hash) }); i >= 0 {
		return gitdir.Foreign("cannot copy commit %s: the content of object %s does not match its hash; git fsck lists "+
			"damaged objects", commit, all.objects[i])
	}
	return nil
}

// copyShallow makes the history of the clone end where the history of its origin ends.
func (s *scratch) copyShallow(d gitdir.Dir, all reachable) error {
	data, err := hostfs.Read(s.dir, "shallow", maxSteering)
	if err != nil {
		if errors.Is(err, hostfs.ErrAbsent) {
			err = nil
		}
		return err
	}
	ends, err := d.Store().Shallow()
	for line := range strings.Lines(string(data)) {
		hash := plumbing.NewHash(strings.TrimSpace(line))
		if slices.Contains(all.objects, hash) && !slices.Contains(ends, hash) {
			ends = append(ends, hash)
		}
	}
	if err != nil || len(ends) == 0 {
		return err
	}
	var lines strings.Builder
	for _, end := range ends {
		fmt.Fprintln(&lines, end)
	}
	return d.Replace("shallow", []byte(lines.String()))
}

// leftOut is the placeholder that git finds in a clone instead of omitted content, through
// refs/replace. Existing clones contain the same text.
const leftOut = "abl has left this out of the clone\n"

// Whole returns ErrForeign if a commit contains the placeholder instead of a file of the user.
func (r *Repo) Whole(commit string) error {
	all, err := r.content(commit)
	if err != nil {
		return err
	}
	instead := plumbing.ComputeHash(plumbing.BlobObject, []byte(leftOut))
	for _, e := range all.entries {
		if e.Hash == instead && without(r.opts.Without, e.Name) {
			return gitdir.Foreign("commit %.12s of %q has a placeholder of abl instead of %q: git -C %s reset --hard to "+
				"the commit before it, and merge again",
				commit, r.dir, e.Name, r.dir)
		}
	}
	return nil
}

// replaceLeft maps the omitted objects of a clone to the placeholder, and removes the mapping of
// objects that the clone gets.
func replaceLeft(d gitdir.Dir, all reachable) error {
	const replace = "refs/replace/"
	refs, err := d.Packed()
	if err != nil || len(refs)+len(all.left) == 0 {
		return err
	}
	var instead plumbing.MemoryObject
	instead.SetType(plumbing.BlobObject)
	instead.Write([]byte(leftOut))
	if err := d.Loose(&instead); err != nil {
		return err
	}
	for _, hash := range all.left {
		refs[replace+hash.String()] = instead.Hash().String()
	}
	for _, hash := range all.objects {
		delete(refs, replace+hash.String())
	}
	var lines strings.Builder
	for _, name := range slices.Sorted(maps.Keys(refs)) {
		fmt.Fprintf(&lines, "%s %s\n", refs[name], name)
	}
	return d.Replace("packed-refs", []byte(lines.String()))
}
