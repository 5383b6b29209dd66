package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"abl/orchestrator/workspace/gitindex"
	"abl/orchestrator/workspace/gitobj"
	"abl/orchestrator/workspace/scan"
)

// Snapshot commits what stands in the directory, as git add -A and git commit
// would, an empty commit too. When the tip of the branch carries the message's
// Abl-Call already it does nothing and gives that commit back.
//
// Objects are durable before the index names them, and the index before the
// branch does, so a kill at any moment leaves a state that git itself could
// have left, and the next Snapshot goes on from it.
func (r *Repo) Snapshot(ctx context.Context, m Message) (Snap, error) {
	text, err := gitobj.FormatMessage(m.Subject, m.Trailers)
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
	if call := m.call(); ok && call != "" && head.Trailers[CallTrailer] == call {
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
	ix, written, err := r.index(head)
	if err != nil {
		return Snap{}, err
	}
	base, err := r.base(head, ix)
	if err != nil {
		return Snap{}, err
	}
	sink := gitobj.NewSink(r.git)
	defer sink.Close()
	o := r.walk(ix, written)
	search := newSearched(sink, r.opts.Secrets)
	o.Store, o.Sweep = search, m.Keep != nil
	found, err := scan.Walk(ctx, o)
	if err != nil {
		return Snap{}, err
	}
	if m.Keep != nil {
		if err := r.keep(ctx, base, found, m.Keep); err != nil {
			return Snap{}, err
		}
	}
	if err := search.judge(base, found.Entries); err != nil {
		return Snap{}, err
	}
	c := commitOf(found.Tree.Hash.String(), head.Hash, m, text)
	if err := r.write(ctx, sink, found, head.Hash, &c); err != nil {
		return Snap{}, err
	}
	s := Snap{Commit: c.Commit, Skipped: found.Skipped}
	differing(base, found.Entries, func(string) { s.Changed++ })
	return s, nil
}

// walk is how the work tree is read.
func (r *Repo) walk(ix *gitindex.Index, written time.Time) scan.Options {
	exclude, _ := os.ReadFile(r.git.Join("info/exclude")) // git, too, takes an unreadable one for empty
	return scan.Options{
		Root: r.dir, Index: ix, Written: written, Exclude: exclude, NoExec: r.noExec, SizeOf: r.sizeOf,
		MaxFile: r.opts.MaxFile, MaxDepth: r.opts.MaxDepth, MaxEntries: r.opts.MaxEntries,
	}
}

type newCommit struct {
	Commit
	data   []byte
	name   gitobj.Hash
	reflog string
}

func commitOf(tree, parent string, m Message, text string) newCommit {
	data := gitobj.EncodeCommit(tree, parent, m.When, text)
	subject, trailers := gitobj.ParseMessage(text)
	name := gitobj.Name(gitobj.CommitKind, data)
	how, old := "commit", parent
	if parent == "" {
		how, old = "commit (initial)", gitobj.Hash{}.String()
	}
	return newCommit{
		Commit: Commit{Hash: name.String(), Tree: tree, Subject: subject, Trailers: trailers, When: m.When},
		data:   data, name: name,
		reflog: fmt.Sprintf("%s %s %s\t%s: %s\n", old, name, gitobj.Signature(m.When), how, subject),
	}
}

// write makes everything durable, in the order that a kill may interrupt.
func (r *Repo) write(ctx context.Context, sink *gitobj.Sink, found *scan.Result, parent string, c *newCommit) error {
	if err := sink.Finish(); err != nil {
		return err
	}
	if err := gitobj.WriteLoose(r.git, gitobj.CommitKind, c.name, c.data); err != nil {
		return err
	}
	ix := gitindex.Index{Entries: found.Entries, Tree: found.Tree}
	if err := r.git.Replace("index", gitindex.Encode(&ix)); err != nil {
		return err
	}
	if err := r.git.Move(ctx, r.ref(), parent, c.Hash, r.opts.LockWait); err != nil {
		return err
	}
	return r.record(c.reflog)
}

// record writes the reflogs, after the ref: a reflog without its ref would
// look like a lost branch.
func (r *Repo) record(line string) error {
	err := errors.Join(r.git.Record("logs/HEAD", line), r.git.Record("logs/"+r.ref(), line))
	if err != nil {
		return fmt.Errorf("cannot write the reflog of %q: %w", r.dir, err)
	}
	return nil
}

// existing answers for a snapshot that an earlier run has made.
func (r *Repo) existing(head Commit) (Snap, error) {
	parent, err := r.parentOf(head.Hash)
	if err != nil {
		return Snap{}, err
	}
	before, err := r.entries(parent.Tree)
	if err != nil {
		return Snap{}, err
	}
	after, err := r.entries(head.Tree)
	if err != nil {
		return Snap{}, err
	}
	s := Snap{Commit: head, Existing: true}
	differing(before, after, func(string) { s.Changed++ })
	return s, nil
}

func (r *Repo) parentOf(hash string) (Commit, error) {
	log, err := r.Log(2)
	if err != nil || len(log) < 2 || log[0].Hash != hash {
		return Commit{}, err
	}
	return log[1], nil
}
