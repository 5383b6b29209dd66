package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/utils/diff"
)

// ErrConflict marks a merge that a person must decide: both sides changed the same lines.
var ErrConflict = errors.New("both sides changed the same")

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
	if has, herr := r.Contains(tip, there); err == nil && there != "" && !has {
		err = cmp.Or(herr, gitdir.Foreign("%q: branch %s has commits that %s has not: git merge or git branch -m it", r.dir, branch, r.branch))
	}
	if err == nil && there != tip {
		err = r.git.Move(ctx, "refs/heads/"+branch, there, tip, r.opts.LockWait)
	}
	if err == nil {
		err = setHead(r.git, branch)
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
	if done, err := r.Contains(ours.Hash, commit); done || err != nil {
		return ours, err
	}
	forward, err := r.Contains(commit, ours.Hash)
	if err == nil && !forward {
		commit, err = r.merged(ours.Hash, commit, text)
	}
	if err == nil {
		err = r.moveTo(ctx, ours.Hash, commit)
	}
	if err != nil {
		return ours, err
	}
	ours, _, err = r.Head()
	return ours, err
}

// merged makes the merge commit of two.
func (r *Repo) merged(ours, theirs, text string) (string, error) {
	bases, err := mergeBases(r.git.Store(), ours, theirs)
	if err != nil {
		return "", err
	}
	mine, err1 := r.content(ours)
	other, err2 := r.content(theirs)
	objects, err3 := newSpool(r.git)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", err
	}
	defer objects.close()
	var entries []*index.Entry
	for i, base := range bases {
		was := entries
		before, err := r.content(base.String())
		if err == nil {
			entries, err = r.mergeTrees(objects, before.entries, mine.entries, other.entries)
		}
		if differ := differing(was, entries); err == nil && i > 0 && len(differ) > 0 { // git would merge the bases first
			err = fmt.Errorf("%w: %s", ErrConflict, strings.Join(differ, ", "))
		}
		if err != nil {
			return "", err
		}
	}
	_, c, err := objects.commit(text, entries, mine.trees, ours, theirs)
	if err == nil {
		err = objects.finish(r.git)
	}
	if err != nil {
		return "", err
	}
	return c.Hash.String(), nil
}

// mergeBases are the commits that two have in common and none that they have in common follows.
func mergeBases(s *gitdir.Store, ours, theirs string) (bases []plumbing.Hash, err error) {
	a, err1 := ancestors(s, plumbing.NewHash(ours), plumbing.ZeroHash)
	b, err2 := ancestors(s, plumbing.NewHash(theirs), plumbing.ZeroHash)
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	maps.DeleteFunc(a, func(h plumbing.Hash, _ []plumbing.Hash) bool { _, common := b[h]; return !common })
	last := maps.Clone(a)
	for _, parents := range a {
		for _, p := range parents {
			delete(last, p)
		}
	}
	if len(last) == 0 {
		return nil, fmt.Errorf("%w: %s and %s have no commit in common", ErrConflict, ours, theirs)
	}
	return slices.Collect(maps.Keys(last)), nil
}

// mergeTrees merges sorted entries by path, and text that both changed by lines.
func (r *Repo) mergeTrees(objects *spool, base, ours, theirs []*index.Entry) ([]*index.Entry, error) {
	all := map[string]*index.Entry{}
	for _, e := range ours {
		all[e.Name] = e
	}
	var conflicts []string
	for _, path := range differing(base, theirs) {
		was, a, b := entryAt(base, path), all[path], entryAt(theirs, path)
		if same(a, b) {
			continue
		}
		if !same(a, was) {
			merged, err := mergeText(r.git.Store(), objects, was, a, b)
			if errors.Is(err, ErrConflict) {
				conflicts = append(conflicts, path)
			} else if err != nil {
				return nil, err
			}
			b = merged
		}
		if all[path] = b; b == nil {
			delete(all, path)
		}
	}
	entries := slices.SortedFunc(maps.Values(all), inOrder)
	for _, e := range entries {
		if below(entries, e.Name) {
			conflicts = append(conflicts, e.Name)
		}
	}
	if len(conflicts) > 0 {
		slices.Sort(conflicts)
		return nil, fmt.Errorf("%w: %s", ErrConflict, strings.Join(conflicts, ", "))
	}
	return entries, nil
}

// mergeText merges the lines of a file that both sides changed.
func mergeText(s *gitdir.Store, objects *spool, was, a, b *index.Entry) (*index.Entry, error) {
	if was == nil || a == nil || b == nil || a.Mode != b.Mode || a.Mode&filemode.Regular != filemode.Regular || a.SkipWorktree {
		return nil, ErrConflict
	}
	base, err1 := textOf(s, was.Hash)
	ours, err2 := textOf(s, a.Hash)
	theirs, err3 := textOf(s, b.Hash)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	text, ok := mergeLines(base, ours, theirs)
	if !ok {
		return nil, ErrConflict
	}
	merged := *a
	var err error
	merged.Hash, err = objects.blob([]byte(text))
	return &merged, err
}

const (
	maxText   = 4 << 20 // bytes of what is merged by lines
	maxTarget = 1 << 16 // bytes of what a link names
)

// textOf reads a blob of text; another is a conflict.
func textOf(s *gitdir.Store, hash plumbing.Hash) (string, error) {
	if size, err := s.EncodedObjectSize(hash); err == nil && size > maxText {
		return "", ErrConflict
	}
	data, err := read(s, hash, maxText+1)
	if err == nil && (len(data) > maxText || bytes.IndexByte(data, 0) >= 0) {
		err = ErrConflict
	}
	return string(data), err
}

// underWay is a file of .git that says between which commits the work tree is.
const underWay = "ABL_CHECKOUT"

// moveTo takes branch, index and work tree to a commit. A kill on the way is made good when
// the repository is opened.
func (r *Repo) moveTo(ctx context.Context, was, is string) error {
	if err := r.git.Replace(underWay, []byte(was+" "+is+"\n")); err != nil {
		return err
	}
	if err := r.git.Move(ctx, r.ref(), was, is, r.opts.LockWait); err != nil {
		return errors.Join(err, os.Remove(r.git.Join(underWay)))
	}
	return r.endCheckout(is)
}

// endCheckout ends a checkout that was begun, if there is one and the branch has moved.
func (r *Repo) endCheckout(tip string) error {
	data, err := hostfs.Read(r.git.Path, underWay, maxSteering)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	was, is, ok := strings.Cut(strings.TrimSpace(string(data)), " ")
	if err != nil || !ok {
		return gitdir.Foreign("%q cannot be read: see what the work tree lacks by git status, and remove it", r.git.Join(underWay))
	}
	if tip == is {
		before, err1 := r.content(was)
		after, err2 := r.content(is)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if err := r.checkOut(before.entries, after.entries); err != nil {
			return err
		}
	}
	return os.Remove(r.git.Join(underWay))
}

// change puts a text in the place of the lines from..to of another.
type change struct {
	from, to int
	text     string
}

// apart are so many lines that stay between changes of two sides: git wants one, but where lines
// repeat a change can as well stand a little further up or down.
const apart = 3

// mergeLines merges two changes of a text by lines: what both changed alike counts once; false
// where their changes are near each other.
func mergeLines(base, ours, theirs string) (string, bool) {
	lines, at := strings.SplitAfter(base, "\n"), 0
	a, b := changes(base, ours), changes(base, theirs)
	var out strings.Builder
	for len(a) > 0 || len(b) > 0 {
		var e change
		switch {
		case len(a) > 0 && len(b) > 0 && a[0] == b[0]:
			e, a, b = a[0], a[1:], b[1:]
		case len(b) == 0 || len(a) > 0 && a[0].to+apart <= b[0].from:
			e, a = a[0], a[1:]
		case len(a) == 0 || b[0].to+apart <= a[0].from:
			e, b = b[0], b[1:]
		default:
			return "", false
		}
		out.WriteString(strings.Join(lines[at:e.from], "") + e.text)
		at = e.to
	}
	return out.String() + strings.Join(lines[at:], ""), true
}

// changes are what makes one text of another, in order; no two touch.
func changes(from, to string) (all []change) {
	const equal, deleted = 0, -1 // what go-git's diff calls them
	at, open := 0, false
	for _, d := range diff.DoWithTimeout(from, to, 10*time.Second) { // else coarser
		lines := len(slices.Collect(strings.Lines(d.Text)))
		if d.Type == equal {
			at, open = at+lines, false
			continue
		}
		if !open {
			all, open = append(all, change{from: at, to: at}), true
		}
		if e := &all[len(all)-1]; d.Type == deleted {
			at += lines
			e.to = at
		} else {
			e.text += d.Text
		}
	}
	return all
}
