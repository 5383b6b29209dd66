package git

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"strings"

	"abl/internal/git/scan"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Snap is the result of a snapshot.
type Snap struct {
	Commit   Commit
	Existing bool // the branch already had the commit of this call
	Changed  int  // number of paths that differ from the parent
	Skipped  []Skipped
}

// Skipped is a path that a snapshot left out, with the reason.
type Skipped = scan.Skipped

// Snapshot commits the content of the directory like git add -A and git commit --allow-empty. If
// the tip of the branch already has the message's Abl-Call, or with IfChanged the same content,
// Snapshot returns that commit.
//
// It writes objects before the index and the index before the branch, each durably. A kill at any
// moment leaves a state that git itself could have left, and the next Snapshot continues from
// there.
func (r *Repo) Snapshot(ctx context.Context, m Message) (Snap, error) {
	text, err := r.opts.Identity.text(m)
	if err != nil {
		return Snap{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range []string{"index", "HEAD"} {
		unlock, err := r.git.Lock(ctx, name)
		if err != nil {
			return Snap{}, err
		}
		defer unlock()
	}
	if _, err := r.checkedFiles(); err != nil {
		return Snap{}, err
	}
	head, ok, err := r.Head()
	if err != nil {
		return Snap{}, err
	}
	if ok && m.Call != "" && head.Call == m.Call {
		return r.existing(head)
	}
	objects, err := newSpool(&r.repository, r.opts.Identity)
	if err != nil {
		return Snap{}, err
	}
	defer objects.close()
	w, err := r.look(ctx, scan.Options{Sweep: m.Keep != nil}, objects)
	if err == nil && m.Keep != nil {
		err = w.report(m.Keep)
	}
	if err == nil {
		err = w.normalize(ctx)
	}
	if err == nil {
		err = objects.refuseSecrets(r.opts.Secrets, w.base.entries, w.Entries)
	}
	if err != nil {
		return Snap{}, err
	}
	changed := len(differing(w.base.entries, w.Entries))
	if ok && m.IfChanged && changed == 0 {
		return Snap{Commit: head, Skipped: w.Skipped}, nil
	}
	now, c, err := objects.commit(ctx, text, w.Entries, w.base.trees, head.Hash)
	if err == nil {
		err = r.write(ctx, objects, now, c)
	}
	if err != nil {
		return Snap{}, err
	}
	return Snap{Commit: readCommit(c), Skipped: w.Skipped, Changed: changed}, nil
}

// write writes objects, index and branch durably in this order. It encodes the index while it
// writes the objects.
func (r *Repo) write(ctx context.Context, objects *spool, now content, c *object.Commit) error {
	var ix []byte
	encoded := make(chan error, 1)
	go func() {
		var err error
		ix, err = encodeIndex(now.entries)
		encoded <- err
	}()
	err := errors.Join(objects.finish(), <-encoded)
	if err == nil {
		err = r.git.Replace("index", ix)
	}
	if err != nil {
		return err
	}
	made := readCommit(c)
	if info, err := os.Lstat(r.git.Join("index")); err == nil {
		r.last.Store(&written{now, made, info})
	}
	return r.git.Move(ctx, r.ref(), made.Parent, made.Hash)
}

// existing returns the snapshot that an earlier run made.
func (r *Repo) existing(head Commit) (Snap, error) {
	before, err1 := r.content(head.Parent)
	if errors.Is(err1, plumbing.ErrObjectNotFound) { // the end of a shallow clone
		err1 = nil
	}
	after, err2 := r.content(head.Hash)
	return Snap{Commit: head, Existing: true, Changed: len(differing(before.entries, after.entries))},
		errors.Join(err1, err2)
}

// Message describes the commit of a snapshot.
type Message struct {
	Subject string
	Call    string // idempotency key, for the trailer Abl-Call

	IfChanged bool // no commit without changes

	// Keep, if set, makes Snapshot sweep the workspace. It receives the findings before anything
	// is committed. No container that could change the workspace may run.
	Keep func(state.Found) error
}

const callTrailer = "\nAbl-Call: "

// text returns the message. It rejects line breaks, with which one part could forge another.
func (m Message) text() (string, error) {
	if m.Subject == "" || strings.ContainsAny(m.Subject+m.Call, "\n\r\x00") {
		return "", fmt.Errorf("cannot commit %q for the call %q: each must be one line", m.Subject, m.Call)
	}
	if m.Call == "" {
		return m.Subject + "\n", nil
	}
	return m.Subject + "\n" + callTrailer + m.Call + "\n", nil
}

// callOf returns the Abl-Call of a commit message, "" if it has none.
func callOf(message string) string {
	i := strings.LastIndex(message, callTrailer)
	if i < 0 {
		return ""
	}
	call, _, _ := strings.Cut(message[i+len(callTrailer):], "\n")
	return strings.TrimSpace(call)
}

// Sweep does everything that Snapshot does except for the commit. It is for a call whose work is
// not committed.
func (r *Repo) Sweep(ctx context.Context, keep func(state.Found) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	w, err := r.look(ctx, scan.Options{Sweep: true}, nil)
	if err != nil {
		return err
	}
	return w.report(keep)
}

// maxDiffers is the maximum number of listed paths that differ.
const maxDiffers = 100

// Differs lists up to 100 paths that differ from a commit, "" for HEAD: changed, deleted, and new
// unless ignored. It writes nothing.
func (r *Repo) Differs(ctx context.Context, commit string) ([]string, error) {
	w, err := r.look(ctx, scan.Options{}, nil)
	if err == nil && commit != "" {
		w.base, err = r.content(commit)
	}
	if err != nil {
		return nil, err
	}
	paths := differing(w.base.entries, w.Entries)
	return paths[:min(maxDiffers, len(paths))], nil
}

// Tree returns the mode and the hash of each path as a commit would contain it, and stores the
// content for PutBack. Ignored directories have a trailing slash and no value.
func (r *Repo) Tree(ctx context.Context) (map[string]string, error) {
	objects, err := newSpool(&r.repository, r.opts.Identity)
	if err != nil {
		return nil, err
	}
	defer objects.close()
	w, err := r.look(ctx, scan.Options{}, objects)
	if err == nil {
		err = objects.finish()
	}
	if err != nil {
		return nil, err
	}
	return treeOf(w.Entries, w.Out...), nil
}

// WorkKey returns a key for the content of the directory without ignored files. Two directories
// have the same key if their commits would have the same tree.
func (r *Repo) WorkKey(ctx context.Context) (string, error) {
	w, err := r.look(ctx, scan.Options{}, nil)
	if err != nil {
		return "", err
	}
	key := sha256.New()
	for _, e := range w.Entries {
		fmt.Fprintf(key, "%o %s\x00%s", e.Mode, e.Name, e.Hash[:])
	}
	return fmt.Sprintf("%x", key.Sum(nil)), nil
}

func treeOf(entries []*index.Entry, out ...string) map[string]string {
	all := make(map[string]string, len(entries))
	for _, e := range entries {
		all[e.Name] = e.Mode.String() + " " + e.Hash.String()
	}
	for _, folder := range out {
		all[folder+"/"] = ""
	}
	return all
}

// Files returns up to most paths of the directory that a commit would contain, sorted.
func (r *Repo) Files(ctx context.Context, most int) (paths []string, err error) {
	w, err := r.look(ctx, scan.Options{Names: true}, nil)
	if err != nil {
		return nil, err
	}
	return names(w.Entries, r.opts.Without, most), nil
}
