package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"abl/internal/git/scan"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Snap is the outcome of a snapshot.
type Snap struct {
	Commit   Commit
	Existing bool // the branch carried this call's commit already; nothing was done
	Changed  int  // paths that differ from the parent
	Skipped  []Skipped
}

// Skipped is one path that a snapshot left out, and why.
type Skipped = scan.Skipped

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
		return r.existing(head)
	}
	objects, err := newSpool(r.git)
	if err != nil {
		return Snap{}, err
	}
	defer objects.close()
	base, found, err := r.look(ctx, scan.Options{Sweep: m.Keep != nil, Put: objects.add})
	if err == nil && m.Keep != nil {
		err = r.keep(base.entries, found, m.Keep)
	}
	if err == nil {
		err = objects.refuseSecrets(r.opts.Secrets, base.entries, found.Entries)
	}
	if err != nil {
		return Snap{}, err
	}
	now, c, err := objects.commit(text, found.Entries, base.trees, head.Hash)
	if err == nil {
		err = r.write(ctx, objects, now, c)
	}
	if err != nil {
		return Snap{}, err
	}
	return Snap{Commit: readCommit(c), Skipped: found.Skipped, Changed: len(differing(base.entries, found.Entries))}, nil
}

// look reads what is committed, and what stands in the directory, in the way that o says.
func (r *Repo) look(ctx context.Context, o scan.Options) (base content, found *scan.Result, err error) {
	head, err := r.tip()
	if err == nil {
		base, err = r.content(head)
	}
	if err == nil {
		o.Known, o.Written, err = r.index(base)
	}
	if err != nil {
		return base, nil, err
	}
	o.Exclude, _ = os.ReadFile(r.git.Join("info/exclude")) // git, too, takes an unreadable one for empty
	o.Root, o.NoExec = r.dir, r.noExec
	o.SizeOf = func(h plumbing.Hash) (int64, error) { return r.git.Store().EncodedObjectSize(h) }
	o.MaxFile, o.MaxDepth, o.MaxEntries = r.opts.MaxFile, r.opts.MaxDepth, r.opts.MaxEntries

	// What a clone is without, and its submodules, with all that is below, stay as they were
	// committed, whatever stands there or in the place of a folder of theirs.
	paths := slices.Clone(r.opts.Without)
	for _, e := range o.Known {
		if e.Mode == filemode.Submodule {
			paths = append(paths, e.Name)
		}
	}
	away := func(e *index.Entry) bool { return without(paths, e.Name) }
	kept := slices.DeleteFunc(slices.Clone(o.Known), func(e *index.Entry) bool { return !away(e) })
	o.Known = slices.DeleteFunc(slices.Clone(o.Known), away)
	if found, err = scan.Walk(ctx, o); err != nil {
		return base, nil, err
	}
	found.Entries = slices.DeleteFunc(found.Entries, func(e *index.Entry) bool { return away(e) || below(kept, e.Name) })
	found.Entries = append(found.Entries, kept...)
	slices.SortFunc(found.Entries, inOrder)
	return base, found, nil
}

// write makes everything durable, in the order that a kill may interrupt. The index is made
// while the objects are written, and gets its name when they are on the disk.
func (r *Repo) write(ctx context.Context, objects *spool, now content, c *object.Commit) error {
	var ix []byte
	encoded := make(chan error, 1)
	go func() {
		var err error
		ix, err = encodeIndex(now.entries)
		encoded <- err
	}()
	err := errors.Join(objects.finish(r.git), <-encoded)
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
	return r.git.Move(ctx, r.ref(), made.Parent, made.Hash, r.opts.LockWait)
}

// existing answers for a snapshot that an earlier run has made.
func (r *Repo) existing(head Commit) (Snap, error) {
	before, err1 := r.content(head.Parent)
	if errors.Is(err1, plumbing.ErrObjectNotFound) { // as where a shallow clone ends
		err1 = nil
	}
	after, err2 := r.content(head.Hash)
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
