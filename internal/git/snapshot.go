package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"abl/internal/git/scan"

	"github.com/go-git/go-git/v5/plumbing"
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
	unlock, err := r.lock(ctx, "index", "HEAD")
	if err != nil {
		return Snap{}, err
	}
	defer unlock()
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
	return r.snapshot(ctx, head, m, text)
}

// lock takes several of git's locks.
func (r *Repo) lock(ctx context.Context, names ...string) (unlock func(), err error) {
	var held []func()
	unlock = func() {
		for _, u := range held {
			u()
		}
	}
	for _, name := range names {
		u, err := r.git.Lock(ctx, name, r.opts.LockWait)
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, u)
	}
	return unlock, nil
}

func (r *Repo) snapshot(ctx context.Context, head Commit, m Message, text string) (Snap, error) {
	base, err := r.base(head)
	if err != nil {
		return Snap{}, err
	}
	objects, err := newSpool(r.git)
	if err != nil {
		return Snap{}, err
	}
	defer objects.close()
	found, err := r.walk(ctx, head, func(o *scan.Options) { o.Put, o.Sweep = objects.put, m.Keep != nil })
	if err != nil {
		return Snap{}, err
	}
	if m.Keep != nil {
		if err := r.keep(base.entries, found, m.Keep); err != nil {
			return Snap{}, err
		}
	}
	if err := objects.refuseSecrets(r.opts.Secrets, base.entries, found.Entries); err != nil {
		return Snap{}, err
	}
	now, err := objects.trees(found.Entries, base.trees)
	if err != nil {
		return Snap{}, err
	}
	s := Snap{Skipped: found.Skipped}
	differing(base.entries, found.Entries, func(string) { s.Changed++ })
	s.Commit, err = r.write(ctx, objects, now, head.Hash, text)
	return s, err
}

// walk reads the work tree.
func (r *Repo) walk(ctx context.Context, head Commit, change func(*scan.Options)) (*scan.Result, error) {
	known, when, err := r.index(head)
	if err != nil {
		return nil, err
	}
	exclude, _ := os.ReadFile(r.git.Join("info/exclude")) // git, too, takes an unreadable one for empty
	o := scan.Options{
		Root: r.dir, Known: known, Written: when, Exclude: exclude, NoExec: r.noExec,
		SizeOf:  func(h plumbing.Hash) (int64, error) { return r.store().EncodedObjectSize(h) },
		MaxFile: r.opts.MaxFile, MaxDepth: r.opts.MaxDepth, MaxEntries: r.opts.MaxEntries,
	}
	change(&o)
	return scan.Walk(ctx, o)
}

// write makes everything durable, in the order that a kill may interrupt. The
// index is encoded while the disk works.
func (r *Repo) write(ctx context.Context, objects *spool, now content, parent, text string) (Commit, error) {
	who := object.Signature{Name: "abl", Email: "abl@localhost", When: time.Now()}
	c := object.Commit{Author: who, Committer: who, Message: text, TreeHash: now.trees[""]}
	how, old := "commit (initial)", plumbing.ZeroHash.String()
	if parent != "" {
		c.ParentHashes = []plumbing.Hash{plumbing.NewHash(parent)}
		how, old = "commit", parent
	}
	hash, err := objects.encode(&c, plumbing.ZeroHash)
	if err != nil {
		return Commit{}, err
	}
	var ix bytes.Buffer
	encoded := make(chan error, 1)
	go func() {
		encoded <- index.NewEncoder(&ix).Encode(&index.Index{Version: 2, Entries: slices.Clone(now.entries)})
	}()
	if err := errors.Join(objects.finish(r.git), <-encoded); err != nil {
		return Commit{}, err
	}
	if err := r.git.Replace("index", ix.Bytes()); err != nil {
		return Commit{}, err
	}
	c.Hash = hash
	made := readCommit(&c)
	if info, err := os.Lstat(r.git.Join("index")); err == nil {
		r.last.Store(&written{now, made, info})
	}
	if err := r.git.Move(ctx, r.ref(), parent, made.Hash, r.opts.LockWait); err != nil {
		return Commit{}, err
	}
	var by bytes.Buffer
	if err := who.Encode(&by); err != nil {
		return Commit{}, err
	}
	subject, _, _ := strings.Cut(text, "\n")
	// The reflogs come after the ref: a reflog without its ref would look like a lost branch.
	line := fmt.Sprintf("%s %s %s\t%s: %s\n", old, c.Hash, by.String(), how, subject)
	if err := errors.Join(r.git.Record("logs/HEAD", line), r.git.Record("logs/"+r.ref(), line)); err != nil {
		return Commit{}, fmt.Errorf("cannot write the reflog of %q: %w", r.dir, err)
	}
	return made, nil
}

// existing answers for a snapshot that an earlier run has made.
func (r *Repo) existing(head Commit) (Snap, error) {
	var parent Commit
	if head.Parent != "" {
		var err error
		parent, err = r.commit(r.store(), head.Parent)
		if err != nil && !errors.Is(err, plumbing.ErrObjectNotFound) { // as where a shallow clone ends
			return Snap{}, err
		}
	}
	before, err := r.base(parent)
	if err != nil {
		return Snap{}, err
	}
	after, err := r.base(head)
	if err != nil {
		return Snap{}, err
	}
	s := Snap{Commit: head, Existing: true}
	differing(before.entries, after.entries, func(string) { s.Changed++ })
	return s, nil
}
