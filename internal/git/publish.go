package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// ErrBehind marks a ref that has moved to what is not known here: somebody else published.
var ErrBehind = errors.New("somebody else has published meanwhile")

// lockWait is how long another git's lock in the person's repository is waited for.
const lockWait = 5 * time.Second

// Receive takes a commit of a clone, or of another repository of abl's, with its history, and
// sets a ref to it, fast-forward only. A branch that some work tree stands on is refused.
func (o *Origin) Receive(ctx context.Context, from *Repo, ref, commit string) error {
	was, err := o.git.Ref(ref)
	if err != nil || was == commit {
		return err
	}
	if at, err := o.checkedOut(ref); err != nil || at != "" {
		return errors.Join(err, gitdir.Foreign("cannot move %s, since the work tree %q stands on it: git switch to another branch there", ref, at))
	}
	if was != "" {
		after, err := from.Contains(commit, was)
		if err != nil {
			return err
		}
		if !after {
			return fmt.Errorf("%w: %s names %s, which %s does not have", ErrBehind, ref, was[:12], commit[:12])
		}
	}
	to := o.store()
	r := reach{ctx: ctx, from: from.store(), has: func(h plumbing.Hash) bool { return to.HasEncodedObject(h) == nil }}
	if err := r.commit(plumbing.NewHash(commit)); err != nil {
		return fmt.Errorf("cannot read the history of %q: %w", from.dir, err)
	}
	if err := writePack(o.git, r.from, r.objects, deltaWindow); err != nil {
		return err
	}
	return o.git.Move(ctx, ref, was, commit, lockWait)
}

// checkedOut is the work tree that stands on a branch, "" for none.
func (o *Origin) checkedOut(ref string) (string, error) {
	others, err := inside(o.git, "worktrees", true)
	if err != nil {
		return "", err
	}
	for _, name := range append(others, "HEAD") {
		data, err := hostfs.Read(o.git.Path, name, maxSteering)
		if filepath.Base(name) == "HEAD" && err == nil && strings.TrimSpace(string(data)) == "ref: "+ref {
			return strings.TrimSuffix(o.git.Join(filepath.Dir(name)), "/.git"), nil
		}
	}
	return "", nil
}

// Keep commits files, by their paths, on a ref that names no branch. Where they are as they
// were nothing is done. The ref must be where it was seen last, at was.
func (o *Origin) Keep(ctx context.Context, ref, was, subject string, files map[string][]byte) (commit string, err error) {
	text, err := Message{Subject: subject}.text()
	if err != nil {
		return "", err
	}
	objects, err := newSpool(o.git)
	if err != nil {
		return "", err
	}
	defer objects.close()
	var entries []*index.Entry
	for path, data := range files {
		hash := plumbing.ComputeHash(plumbing.BlobObject, data)
		if err := objects.add(plumbing.BlobObject, hash, int64(len(data)), strings.NewReader(string(data))); err != nil {
			return "", err
		}
		entries = append(entries, &index.Entry{Name: path, Mode: filemode.Regular, Hash: hash})
	}
	slices.SortFunc(entries, func(a, b *index.Entry) int { return strings.Compare(a.Name, b.Name) })
	now, err := objects.trees(entries, nil)
	if err != nil {
		return "", err
	}
	c := newCommit(text, now.trees[""], was)
	if was != "" {
		before, err := object.GetCommit(o.store(), plumbing.NewHash(was))
		if err != nil {
			return "", fmt.Errorf("cannot read commit %s of %q: %w", was, o.dir, err)
		}
		if before.TreeHash == c.TreeHash {
			return was, nil
		}
	}
	hash, err := objects.encode(&c, plumbing.ZeroHash)
	if err == nil {
		err = objects.finish(o.git)
	}
	if err == nil {
		err = o.git.Move(ctx, ref, was, hash.String(), lockWait)
	}
	return hash.String(), err
}

// maxKept bounds what is read of what was kept, in bytes.
const maxKept = 256 << 20

// Kept are the files that a commit of Keep holds.
func (o *Origin) Kept(commit string) (map[string][]byte, error) {
	s := o.store()
	all, err := commitContent(s, nil, commit)
	if err != nil {
		return nil, err
	}
	files, left := map[string][]byte{}, int64(maxKept)
	for _, e := range all.entries {
		b, err := object.GetBlob(s, e.Hash)
		if err == nil {
			left -= b.Size
		}
		if err == nil && (e.Mode != filemode.Regular || left < 0 || !fs.ValidPath(e.Name)) {
			err = errors.New("it is no plain file of abl's")
		}
		if err == nil {
			files[e.Name], err = begin(b, maxKept)
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q of commit %s: %w", e.Name, commit, err)
		}
	}
	return files, nil
}
