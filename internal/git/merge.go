package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

// ErrConflict marks a merge that a person must decide: both sides changed the same lines.
var ErrConflict = errors.New("both sides changed the same")

// Fetch copies a commit with its history into a clone of this repository.
func (o *Origin) Fetch(ctx context.Context, into *Repo, commit string) error {
	return o.copyTo(ctx, into.git, commit, into.opts.Without)
}

// Contains says whether a commit has another among its ancestors, or is it.
func (r *Repo) Contains(commit, ancestor string) (bool, error) {
	return contains(r.store(), commit, ancestor)
}

func contains(s *filesystem.Storage, commit, ancestor string) (bool, error) {
	to := plumbing.NewHash(ancestor)
	all, err := ancestors(s, plumbing.NewHash(commit), to)
	_, has := all[to]
	return has, err
}

// ancestors are a commit and those before it with their parents, up to where a shallow history
// ends, or to one that is looked for.
func ancestors(s *filesystem.Storage, commit, until plumbing.Hash) (map[plumbing.Hash][]plumbing.Hash, error) {
	all := map[plumbing.Hash][]plumbing.Hash{}
	ends, err := s.Shallow()
	for todo := []plumbing.Hash{commit}; err == nil && len(todo) > 0; {
		hash := todo[0]
		todo = todo[1:]
		if _, seen := all[hash]; seen {
			continue
		}
		c, cerr := object.GetCommit(s, hash)
		if cerr != nil {
			return all, fmt.Errorf("cannot read commit %s: %w", hash, cerr)
		}
		if all[hash] = nil; hash == until {
			break
		}
		if !slices.Contains(ends, hash) {
			all[hash], todo = c.ParentHashes, append(todo, c.ParentHashes...)
		}
	}
	return all, err
}

// mergeBases are the commits that two have in common and none that they have in common follows.
func mergeBases(s *filesystem.Storage, ours, theirs string) (bases []string, err error) {
	a, err1 := ancestors(s, plumbing.NewHash(ours), plumbing.ZeroHash)
	b, err2 := ancestors(s, plumbing.NewHash(theirs), plumbing.ZeroHash)
	maps.DeleteFunc(a, func(h plumbing.Hash, _ []plumbing.Hash) bool { _, common := b[h]; return !common })
	followed := map[plumbing.Hash]bool{}
	for _, parents := range a {
		for _, p := range parents {
			followed[p] = true
		}
	}
	for h := range a {
		if !followed[h] {
			bases = append(bases, h.String())
		}
	}
	slices.Sort(bases)
	return bases, errors.Join(err1, err2)
}

// Ref is what a ref names, "" for none.
func (r *Repo) Ref(name string) (string, error) { return r.git.Ref(name) }

// Switch makes a branch at the tip of the one that HEAD names, and lets HEAD name it.
// Nothing else changes.
func (r *Repo) Switch(ctx context.Context, branch string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if branch == r.branch {
		return nil
	}
	tip, err := r.tip()
	if err != nil {
		return err
	}
	there, err := r.git.Ref("refs/heads/" + branch)
	if has, herr := contains(r.store(), tip, there); err == nil && there != "" && !has {
		err = cmp.Or(herr, gitdir.Foreign("%q: branch %s has commits that %s has not: git merge or git branch -m it", r.dir, branch, r.branch))
	}
	if err == nil && there != tip {
		err = r.git.Move(ctx, "refs/heads/"+branch, there, tip, r.opts.LockWait)
	}
	if err == nil {
		err = r.git.Replace("HEAD", []byte("ref: refs/heads/"+branch+"\n"))
	}
	if err == nil {
		r.branch = branch
	}
	return err
}

// Merge takes a commit into the branch and the work tree, by a merge commit unless the branch
// has nothing of its own, and returns the new tip. An ErrConflict names the files.
// The work tree must be as it was committed.
func (r *Repo) Merge(ctx context.Context, commit, subject string) (Commit, error) {
	text, err := Message{Subject: subject}.text()
	if err != nil {
		return Commit{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ours, _, err := r.Head()
	if err != nil {
		return ours, err
	}
	s := r.store()
	if done, err := contains(s, ours.Hash, commit); done || err != nil {
		return ours, err
	}
	if forward, err := contains(s, commit, ours.Hash); err != nil {
		return ours, err
	} else if forward {
		return moveTo(ctx, r, ours, commit)
	}
	objects, err := newSpool(r.git)
	if err != nil {
		return ours, err
	}
	defer objects.close()
	entries, err := merged(s, objects, r.opts.Without, ours.Hash, commit)
	if err != nil {
		return ours, err
	}
	now, err := objects.trees(entries, nil)
	if err != nil {
		return ours, err
	}
	c := newCommit(text, now.trees[""], ours.Hash, commit)
	hash, err := objects.encode(&c, plumbing.ZeroHash)
	if err == nil {
		err = objects.finish(r.git)
	}
	if err != nil {
		return ours, err
	}
	return moveTo(ctx, r, ours, hash.String())
}

// underWay is a file of .git that says between which commits the work tree is.
const underWay = "ABL_CHECKOUT"

// moveTo takes branch, index and work tree to a commit. A kill on the way is made good when
// the repository is opened.
func moveTo(ctx context.Context, r *Repo, ours Commit, commit string) (Commit, error) {
	if err := r.git.Replace(underWay, []byte(ours.Hash+" "+commit+"\n")); err != nil {
		return ours, err
	}
	if err := r.git.Move(ctx, r.ref(), ours.Hash, commit, r.opts.LockWait); err != nil {
		return ours, errors.Join(err, os.Remove(r.git.Join(underWay)))
	}
	return endCheckout(r, commit)
}

// endCheckout ends a checkout that was begun, if there is one, and returns the tip.
func endCheckout(r *Repo, tip string) (c Commit, err error) {
	data, err := hostfs.Read(r.git.Path, underWay, maxSteering)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, hostfs.ErrAbsent) {
		return c, nil
	}
	was, is, ok := strings.Cut(strings.TrimSpace(string(data)), " ")
	if err != nil || !ok {
		return c, gitdir.Foreign("%q cannot be read: see what the work tree lacks by git status, and remove it", r.git.Join(underWay))
	}
	s := r.store()
	if tip == is {
		before, err1 := commitContent(s, r.opts.Without, was)
		after, err2 := commitContent(s, r.opts.Without, is)
		if err := errors.Join(err1, err2); err != nil {
			return c, err
		}
		if err := checkOut(s, r.git, r.dir, before.entries, after.entries); err != nil {
			return c, err
		}
	}
	if c, err = r.commit(s, tip); err != nil {
		return c, err
	}
	return c, os.Remove(r.git.Join(underWay))
}

// commitContent lists what a commit holds.
func commitContent(s *filesystem.Storage, without []string, commit string) (content, error) {
	c, err := object.GetCommit(s, plumbing.NewHash(commit))
	if err != nil {
		return content{}, fmt.Errorf("cannot read commit %s: %w", commit, err)
	}
	return contentOf(s, c.TreeHash, without)
}

// merged is what a merge of two commits holds.
func merged(s *filesystem.Storage, objects *spool, without []string, ours, theirs string) ([]*index.Entry, error) {
	bases, err := mergeBases(s, ours, theirs)
	if err != nil {
		return nil, err
	}
	if len(bases) == 0 {
		return nil, fmt.Errorf("%s and %s: %w: they have no commit in common", ours, theirs, ErrConflict)
	}
	trees := map[string]map[string]*index.Entry{}
	for _, commit := range append(bases, ours, theirs) {
		all, err := commitContent(s, without, commit)
		if err != nil {
			return nil, err
		}
		trees[commit] = map[string]*index.Entry{}
		for _, e := range all.entries {
			trees[commit][e.Name] = e
		}
	}
	var all []*index.Entry
	for i, base := range bases {
		was := all
		if all, err = mergeTrees(s, objects, trees[base], trees[ours], trees[theirs]); err != nil {
			return nil, err
		}
		if differ := differing(was, all); i > 0 && len(differ) > 0 { // git would merge the bases first
			return nil, fmt.Errorf("%w: %s", ErrConflict, strings.Join(differ, ", "))
		}
	}
	return all, nil
}

// mergeTrees merges by path, and text in both by lines.
func mergeTrees(s *filesystem.Storage, objects *spool, base, ours, theirs map[string]*index.Entry) (all []*index.Entry, err error) {
	var conflicts []string
	either := maps.Clone(ours)
	maps.Copy(either, theirs)
	for name := range either {
		was, a, b := base[name], ours[name], theirs[name]
		switch {
		case same(a, b) || same(b, was):
			b = a
		case same(a, was):
		case was == nil || a == nil || b == nil || a.Mode != b.Mode || a.Mode&filemode.Regular != filemode.Regular || a.SkipWorktree:
			conflicts = append(conflicts, name)
		default:
			if b, err = mergeText(s, objects, was, a, b); errors.Is(err, ErrConflict) {
				conflicts = append(conflicts, name)
			} else if err != nil {
				return nil, err
			}
		}
		if b != nil {
			all = append(all, b)
		}
	}
	mine, yours := movedTo(base, ours), movedTo(base, theirs)
	for name, was := range base {
		if ours[name] == nil && theirs[name] == nil && mine[was.Hash] != yours[was.Hash] {
			conflicts = append(conflicts, name)
		}
	}
	slices.SortFunc(all, func(a, b *index.Entry) int { return strings.Compare(a.Name, b.Name) })
	for _, e := range all {
		if below(all, e.Name) {
			conflicts = append(conflicts, e.Name)
		}
	}
	if len(conflicts) > 0 {
		slices.Sort(conflicts)
		return nil, fmt.Errorf("%w: %s", ErrConflict, strings.Join(conflicts, ", "))
	}
	return all, nil
}

// movedTo is where content stands that is new at its path, the first path of several. What is
// empty moves nowhere.
func movedTo(base, tree map[string]*index.Entry) map[plumbing.Hash]string {
	to := map[plumbing.Hash]string{}
	for name, e := range tree {
		if base[name] == nil && (to[e.Hash] == "" || name < to[e.Hash]) {
			to[e.Hash] = name
		}
	}
	delete(to, plumbing.ComputeHash(plumbing.BlobObject, nil))
	return to
}

func same(a, b *index.Entry) bool {
	return a == b || a != nil && b != nil && a.Hash == b.Hash && a.Mode == b.Mode
}

// mergeText merges the lines of a file that both sides changed.
func mergeText(s *filesystem.Storage, objects *spool, was, a, b *index.Entry) (*index.Entry, error) {
	var texts [3][]byte
	for i, e := range []*index.Entry{was, a, b} {
		var err error
		if texts[i], err = textOf(s, e.Hash); err != nil {
			return nil, err
		}
	}
	text, ok := mergeLines(texts[0], texts[1], texts[2])
	if !ok {
		return nil, ErrConflict
	}
	merged := *a
	merged.Hash = plumbing.ComputeHash(plumbing.BlobObject, text)
	return &merged, objects.add(plumbing.BlobObject, merged.Hash, int64(len(text)), bytes.NewReader(text))
}

// maxText is beyond what is merged by lines, in bytes.
const maxText = 4 << 20

// textOf reads a blob of text; another is a conflict.
func textOf(s *filesystem.Storage, hash plumbing.Hash) ([]byte, error) {
	b, err := object.GetBlob(s, hash)
	if err != nil {
		return nil, err
	}
	data, err := begin(b, maxText+1)
	if err == nil && (len(data) > maxText || bytes.IndexByte(data, 0) >= 0) {
		err = ErrConflict
	}
	return data, err
}
