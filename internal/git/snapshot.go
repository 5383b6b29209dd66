package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"abl/internal/git/scan"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Snapshot commits what stands in the directory, as git add -A and git commit
// would, an empty commit too. When the tip of the branch carries the message's
// Abl-Call already it does nothing and gives that commit back.
//
// Objects are durable before the index names them, and the index before the
// branch does, so a kill at any moment leaves a state that git itself could
// have left, and the next Snapshot goes on from it.
func (r *Repo) Snapshot(ctx context.Context, m Message) (Snap, error) {
	text, err := m.text()
	if err != nil {
		return Snap{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range []string{"index", "HEAD"} {
		unlock, err := r.git.Lock(ctx, name, r.opts.LockWait)
		if err != nil {
			return Snap{}, err
		}
		defer unlock()
	}
	if err := r.settled(); err != nil {
		return Snap{}, err
	}
	head, ok, err := r.Head()
	if err != nil {
		return Snap{}, err
	}
	if ok && m.Call != "" && head.Call == m.Call {
		return existing(r, head)
	}
	objects, err := newSpool(r.git)
	if err != nil {
		return Snap{}, err
	}
	defer objects.close()
	base, found, err := r.look(ctx, head, m.Keep, objects)
	if err != nil {
		return Snap{}, err
	}
	now, err := objects.trees(found.Entries, base.trees)
	if err != nil {
		return Snap{}, err
	}
	s := Snap{Skipped: found.Skipped, Changed: len(differing(base.entries, found.Entries))}
	s.Commit, err = r.write(ctx, objects, now, head.Hash, text)
	return s, err
}

// look reads the work tree, with keep sweeps it, and refuses secrets among what
// objects, if there are any, have taken of it.
func (r *Repo) look(ctx context.Context, head Commit, keep func(state.Found) error, objects *spool) (base content, found *scan.Result, err error) {
	if base, err = r.base(head); err != nil {
		return base, nil, err
	}
	o := scan.Options{Sweep: keep != nil}
	if objects != nil {
		o.Put = objects.add
	}
	found, err = r.walk(ctx, head, o)
	if err == nil && keep != nil {
		err = r.keep(base.entries, found, keep)
	}
	if err == nil && objects != nil {
		err = objects.refuseSecrets(r.opts.Secrets, base.entries, found.Entries)
	}
	return base, found, err
}

// walk reads the work tree in the way that o says.
func (r *Repo) walk(ctx context.Context, head Commit, o scan.Options) (_ *scan.Result, err error) {
	if o.Known, o.Written, err = r.index(head); err != nil {
		return nil, err
	}
	o.Exclude, _ = os.ReadFile(r.git.Join("info/exclude")) // git, too, takes an unreadable one for empty
	o.Root, o.NoExec = r.dir, r.noExec
	o.SizeOf = func(h plumbing.Hash) (int64, error) { return r.store().EncodedObjectSize(h) }
	o.MaxFile, o.MaxDepth, o.MaxEntries = r.opts.MaxFile, r.opts.MaxDepth, r.opts.MaxEntries
	known, left := split(r.opts.Without, o.Known)
	o.Known = known
	found, err := scan.Walk(ctx, o)
	if err == nil && len(left)+len(r.opts.Without) > 0 {
		found.Entries, _ = split(r.opts.Without, found.Entries, left...)
		found.Entries = append(found.Entries, left...)
		slices.SortFunc(found.Entries, func(a, b *index.Entry) int { return strings.Compare(a.Name, b.Name) })
	}
	return found, err
}

// split parts what stands in the work tree from what a clone keeps as it was committed: what
// is left out of it, and submodules, with all that is below, and what is in their folders' place.
func split(left []string, entries []*index.Entry, more ...*index.Entry) (here, away []*index.Entry) {
	paths := slices.Clone(left)
	for _, e := range slices.Concat(entries, more) {
		if e.Mode == filemode.Submodule {
			paths = append(paths, e.Name)
		}
	}
	for _, e := range entries {
		if is, _ := without(paths, e.Name); is || below(more, e.Name) {
			away = append(away, e)
		} else {
			here = append(here, e)
		}
	}
	return here, away
}

// write makes everything durable, in the order that a kill may interrupt. The index is
// written while the objects are, and gets its name when they are on the disk.
func (r *Repo) write(ctx context.Context, objects *spool, now content, parent, text string) (Commit, error) {
	c := newCommit(text, now.trees[""], parent)
	hash, err := objects.encode(&c, plumbing.ZeroHash)
	if err != nil {
		return Commit{}, err
	}
	var end func(error) error
	synced := make(chan error, 1)
	go func() {
		ix, err := encodeIndex(now.entries)
		if err == nil {
			end, err = r.git.Write("index", ix)
		}
		synced <- err
	}()
	err = objects.finish(r.git)
	if failed := <-synced; failed == nil {
		err = end(err)
	} else {
		err = errors.Join(err, failed)
	}
	if err != nil {
		return Commit{}, err
	}
	c.Hash = hash
	made := readCommit(&c)
	if info, err := os.Lstat(r.git.Join("index")); err == nil {
		r.last.Store(&written{now, made, info})
	}
	return made, r.git.Move(ctx, r.ref(), parent, made.Hash, r.opts.LockWait)
}

// newCommit is a commit of abl's; a parent that is "" is none.
func newCommit(text string, tree plumbing.Hash, parents ...string) object.Commit {
	who := object.Signature{Name: "abl", Email: "abl@localhost", When: time.Now()}
	c := object.Commit{Author: who, Committer: who, Message: text, TreeHash: tree}
	for _, p := range parents {
		if p != "" {
			c.ParentHashes = append(c.ParentHashes, plumbing.NewHash(p))
		}
	}
	return c
}

// existing answers for a snapshot that an earlier run has made.
func existing(r *Repo, head Commit) (Snap, error) {
	var parent Commit
	if head.Parent != "" {
		var err error
		parent, err = r.commit(r.store(), head.Parent)
		if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) { // as where a shallow clone ends
			return Snap{}, err
		}
	}
	before, err1 := r.base(parent)
	after, err2 := r.base(head)
	return Snap{Commit: head, Existing: true, Changed: len(differing(before.entries, after.entries))}, errors.Join(err1, err2)
}

// Message says what a snapshot's commit says. Author and committer are
// abl <abl@localhost>.
type Message struct {
	Subject string
	Call    string // the idempotency key, in the trailer Abl-Call

	// Keep is told what else was found, before anything is committed, and with it
	// the workspace is swept. No container that could change it may run then.
	Keep func(state.Found) error
}

const callTrailer = "\nAbl-Call: "

// text refuses line breaks, which would let one part pass for another.
func (m Message) text() (string, error) {
	if m.Subject == "" || strings.ContainsAny(m.Subject+m.Call, "\n\r\x00") {
		return "", fmt.Errorf("cannot commit %q for the call %q: each must be one line", m.Subject, m.Call)
	}
	if m.Call == "" {
		return m.Subject + "\n", nil
	}
	return m.Subject + "\n" + callTrailer + m.Call + "\n", nil
}

// callOf is the key in a commit's message, "" for none.
func callOf(message string) string {
	i := strings.LastIndex(message, callTrailer)
	if i < 0 {
		return ""
	}
	call, _, _ := strings.Cut(message[i+len(callTrailer):], "\n")
	return strings.TrimSpace(call)
}
