package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// ErrBehind marks a ref that has moved to what is not known here: somebody else published.
var ErrBehind = errors.New("somebody else has published meanwhile")

// lockWait is how long another git's lock in the person's repository is waited for.
const lockWait = 5 * time.Second

// Receive takes a commit of a clone, or of another repository of abl's, with its history, and
// sets a ref to it, fast-forward only. A branch that some work tree stands on is refused.
func (o *Origin) Receive(ctx context.Context, from *Repo, ref, commit string) error {
	was, err := o.Ref(ref)
	if err != nil || was == commit {
		return err
	}
	if err := o.free(ref); err != nil {
		return err
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
	s := from.git.Store()
	r, err := reached(ctx, s, o.git, commit, nil)
	if err != nil {
		return fmt.Errorf("cannot read the history of %q: %w", from.dir, err)
	}
	if err := writePack(o.git, s, r.objects, deltaWindow); err != nil {
		return err
	}
	return o.git.Move(ctx, ref, was, commit, lockWait)
}

// free refuses a branch on which a work tree stands.
func (o *Origin) free(ref string) error {
	for _, name := range append(files(o.git, "worktrees/*/HEAD"), "HEAD") {
		data, err := hostfs.Read(o.git.Path, name, maxSteering)
		if err != nil {
			return err
		}
		if strings.TrimSpace(string(data)) == "ref: "+ref {
			tree := strings.TrimSuffix(o.git.Join(path.Dir(name)), "/.git")
			return gitdir.Foreign("cannot move %s, since the work tree %q stands on it: git switch to another branch there", ref, tree)
		}
	}
	return nil
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
	slices.SortFunc(entries, inOrder)
	_, c, err := objects.commit(text, entries, nil, was)
	if err != nil {
		return "", err
	}
	if was != "" {
		before, err := o.commit(o.git.Store(), was)
		if err != nil {
			return "", err
		}
		if before.TreeHash == c.TreeHash {
			return was, nil
		}
	}
	if err := objects.finish(o.git); err != nil {
		return "", err
	}
	return c.Hash.String(), o.git.Move(ctx, ref, was, c.Hash.String(), lockWait)
}

// maxKept bounds what is read of what was kept, in bytes.
const maxKept = 256 << 20

// Kept are the files that a commit of Keep holds.
func (o *Origin) Kept(commit string) (map[string][]byte, error) {
	all, err := o.contentOf(commit, nil)
	if err != nil {
		return nil, err
	}
	s, files, left := o.git.Store(), map[string][]byte{}, int64(maxKept)
	for _, e := range all.entries {
		data, err := read(s, e.Hash, left+1)
		left -= int64(len(data))
		if err == nil && (e.Mode != filemode.Regular || left < 0 || !fs.ValidPath(e.Name)) {
			err = errors.New("it is no plain file of abl's")
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read %q of commit %s: %w", e.Name, commit, err)
		}
		files[e.Name] = data
	}
	return files, nil
}
