package git

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/internal/git/scan"
	"abl/internal/hostfs"
	"abl/internal/state"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
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
	text, err := r.messageText(m)
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
	if _, err := r.settled(); err != nil {
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
	objects.author = r.opts.Identity.Author
	base, found, err := r.look(ctx, scan.Options{Sweep: m.Keep != nil}, objects)
	if err == nil && m.Keep != nil {
		err = r.report(base.entries, found, m.Keep)
	}
	if err == nil {
		err = r.normalize(ctx, objects, base.entries, found)
	}
	if err == nil {
		err = objects.refuseSecrets(r.opts.Secrets, base.entries, found.Entries)
	}
	if err != nil {
		return Snap{}, err
	}
	changed := len(differing(base.entries, found.Entries))
	if ok && m.IfChanged && changed == 0 {
		return Snap{Commit: head, Skipped: found.Skipped}, nil
	}
	now, c, err := objects.commit(text, found.Entries, base.trees, head.Hash)
	if err == nil {
		c, err = r.signed(ctx, objects, c)
	}
	if err == nil {
		err = r.write(ctx, objects, now, c)
	}
	if err != nil {
		return Snap{}, err
	}
	return Snap{Commit: readCommit(c), Skipped: found.Skipped, Changed: changed}, nil
}

// look reads the last commit and walks the directory with the options o. objects, if not nil,
// receives the new objects.
func (r *Repo) look(ctx context.Context, o scan.Options, objects *spool) (base content, found *scan.Result, err error) {
	if objects != nil {
		o.Put = objects.add
	}
	if base, err = r.complete(&o); err != nil {
		return base, nil, err
	}
	// Omitted paths and submodules stay as committed, with everything below them, whatever the
	// directory contains instead.
	paths := slices.Clone(r.opts.Without)
	for _, e := range o.Known {
		if e.Mode == filemode.Submodule {
			paths = append(paths, e.Name)
		}
	}
	away := func(e *index.Entry) bool { return without(paths, e.Name) }
	kept := slices.DeleteFunc(slices.Clone(o.Known), func(e *index.Entry) bool { return !away(e) })
	modules := r.moduleFiles(kept)
	o.Known = append(slices.DeleteFunc(slices.Clone(o.Known), away), modules...)
	slices.SortFunc(o.Known, inOrder)
	if found, err = scan.Walk(ctx, o); err != nil {
		return base, nil, err
	}
	if !o.Names {
		read := *found
		r.read.Store(&read)
	}
	all := found.Entries
	found.Entries = slices.DeleteFunc(slices.Clone(found.Entries), func(e *index.Entry) bool {
		out := away(e) || below(kept, e.Name)
		if out && !same(e, entryAt(modules, e.Name)) && len(found.Ignores) < maxDiffers {
			found.Ignores = append(found.Ignores, Skipped{Path: e.Name, Why: r.whyAway(e.Name)})
		}
		return out
	})
	if !o.Names {
		found.Ignores = append(found.Ignores, removed(modules, all)...)
	}
	found.Entries = append(found.Entries, kept...)
	slices.SortFunc(found.Entries, inOrder)
	if !o.Names {
		err = r.point(ctx, base.entries, found, objects)
	}
	return base, found, err
}

// complete sets the options that follow from the last commit, the index and the repository's
// settings. It returns the content of the last commit.
func (r *Repo) complete(o *scan.Options) (base content, err error) {
	head, err := r.tip()
	if err == nil {
		base, err = r.content(head)
	}
	if err == nil {
		o.Known, o.Written, err = r.index(base)
	}
	if o.Read = r.read.Load(); o.Reread {
		o.Written, o.Read = time.Time{}, nil
	}
	if err != nil {
		return base, err
	}
	o.Exclude, _ = hostfs.Read(r.git.Path, "info/exclude", maxSteering) // git ignores an unreadable file, too
	o.Root, o.NoExec = r.dir, r.noExec
	o.SizeOf = func(h plumbing.Hash) (int64, error) {
		f, size, err := r.git.Store().File(h)
		if err == nil {
			f.Close()
		}
		return size, err
	}
	o.MaxFile = cmp.Or(r.opts.MaxFile, 50<<20)
	return base, nil
}

// moduleFiles returns the files of the submodules among sorted entries.
func (r *Repo) moduleFiles(entries []*index.Entry) []*index.Entry {
	isModule := func(e *index.Entry) bool { return e.Mode == filemode.Submodule }
	only := slices.DeleteFunc(slices.Clone(entries), func(e *index.Entry) bool {
		names, err := hostfs.Names(r.dir, e.Name, maxInside)
		return !isModule(e) || err == nil && len(names) == 0 // older versions of abl left it empty
	})
	return slices.DeleteFunc(slices.Clone(r.withModules(only)), isModule)
}

// removed lists the missing files of submodules, up to maxDiffers.
func removed(modules, found []*index.Entry) (all []Skipped) {
	for _, e := range modules {
		if entryAt(found, e.Name) == nil && len(all) < maxDiffers {
			all = append(all, Skipped{Path: e.Name, Why: "removed inside a submodule: commits of this repository cannot " +
				"hold that"})
		}
	}
	return all
}

// whyAway returns the reason why no commit can contain a path in a submodule or an omitted one.
func (r *Repo) whyAway(path string) string {
	if without(r.opts.Without, path) {
		return "excluded from the clone (adopt.exclude)"
	}
	return "inside a submodule: commits of this repository cannot hold it"
}

// absent lists paths of the directory that its commit does not contain, with the reasons.
func absent(found *scan.Result) (all []state.Thing) {
	for _, s := range slices.Concat(found.Skipped, found.Ignores) {
		all = append(all, state.Thing{Path: s.Path, What: s.Why})
	}
	for _, t := range found.Cleared {
		if strings.HasSuffix(t.What, "removed") {
			all = append(all, t)
		}
	}
	return state.InOrder(all)
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
	base, found, err := r.look(ctx, scan.Options{Sweep: true}, nil)
	if err != nil {
		return err
	}
	return r.report(base.entries, found, keep)
}

const maxMarks = 64 << 20 // bytes

// report passes the findings of a walk to keep. Marks that the cache lists are not new. report
// updates the cache, one line per mark, after the findings were saved.
func (r *Repo) report(base []*index.Entry, w *scan.Result, keep func(state.Found) error) error {
	before, _ := hostfs.Read(filepath.Dir(r.opts.Cache), filepath.Base(r.opts.Cache), maxMarks)
	was, now := slices.Collect(strings.Lines(string(before))), []string{}
	control := r.control(base, w.Entries)
	for _, m := range w.Marks {
		line := fmt.Sprintf("%s %q\n", m.State, m.Path)
		now = append(now, line)
		if _, known := slices.BinarySearch(was, line); !known {
			control = append(control, m.Thing)
		}
	}
	if err := keep(state.Found{
		Cleared: w.Cleared,
		Control: state.InOrder(control),
		Ignored: w.Ignored,
		Absent:  absent(w),
	}); err != nil {
		return err
	}
	slices.Sort(now)
	if r.opts.Cache == "" || slices.Equal(was, now) {
		return nil
	}
	if err := hostfs.Write(r.opts.Cache, []byte(strings.Join(now, "")), 0o600); err != nil {
		return fmt.Errorf("cannot save the findings of %q: %w", r.dir, err)
	}
	return nil
}

// control lists new and changed files that steer the user's tools.
func (r *Repo) control(base, entries []*index.Entry) (all []state.Thing) {
	for _, path := range differing(base, entries) {
		e, what := entryAt(entries, path), scan.SteersPath(path)
		if what == "" && r.hooks != "" && strings.HasPrefix(path, r.hooks) {
			what = scan.Hook
		}
		if e != nil && what != "" {
			runs := scan.Runs(what) || e.Mode == filemode.Executable
			all = append(all, state.Thing{Path: path, What: what, Runs: runs})
		}
	}
	return all
}

// maxDiffers is the maximum number of listed paths that differ.
const maxDiffers = 100

// Differs lists up to 100 paths that differ from a commit, "" for HEAD: changed, deleted, and new
// unless ignored. It writes nothing.
func (r *Repo) Differs(ctx context.Context, commit string) ([]string, error) {
	base, found, err := r.look(ctx, scan.Options{}, nil)
	if err == nil && commit != "" {
		base, err = r.content(commit)
	}
	if err != nil {
		return nil, err
	}
	paths := differing(base.entries, found.Entries)
	return paths[:min(maxDiffers, len(paths))], nil
}

// Tree returns the mode and the hash of each path as a commit would contain it, and stores the
// content for PutBack. Ignored directories have a trailing slash and no value.
func (r *Repo) Tree(ctx context.Context) (map[string]string, error) {
	objects, err := newSpool(r.git)
	if err != nil {
		return nil, err
	}
	defer objects.close()
	_, found, err := r.look(ctx, scan.Options{}, objects)
	if err == nil {
		err = objects.finish(r.git)
	}
	if err != nil {
		return nil, err
	}
	return treeOf(found.Entries, found.Out...), nil
}

// WorkKey returns a key for the content of the directory without ignored files. Two directories
// have the same key if their commits would have the same tree.
func (r *Repo) WorkKey(ctx context.Context) (string, error) {
	_, found, err := r.look(ctx, scan.Options{}, nil)
	if err != nil {
		return "", err
	}
	key := sha256.New()
	for _, e := range found.Entries {
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

// Files returns up to max paths that a commit would contain, sorted.
func (r *Repo) Files(ctx context.Context, max int) (paths []string, err error) {
	_, found, err := r.look(ctx, scan.Options{Names: true}, nil)
	if err != nil {
		return nil, err
	}
	for _, e := range found.Entries[:min(max, len(found.Entries))] {
		paths = append(paths, e.Name)
	}
	return paths, nil
}
