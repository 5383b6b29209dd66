package git

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// large is the content of a new file in Git LFS. Commits contain a pointer to it.
type large struct {
	spooled
	oid string // SHA-256
}

// namesLFS reports whether an attributes file names the filter of Git LFS.
func namesLFS(attributes []byte) bool { return bytes.Contains(attributes, []byte("filter=lfs")) }

// usesLFS reports whether an attributes file among the entries of a commit names the filter of Git
// LFS. It ignores files that cannot be read.
func (r *repository) usesLFS(entries []*index.Entry) bool {
	s := r.git.Store()
	return slices.ContainsFunc(entries, func(e *index.Entry) bool {
		if !isAttributes(e) {
			return false
		}
		data, err := read(s, e.Hash, maxSteering)
		return err == nil && namesLFS(data)
	})
}

func isAttributes(e *index.Entry) bool {
	return path.Base(e.Name) == ".gitattributes" && e.Mode != filemode.Symlink && !e.SkipWorktree
}

// point replaces the hashes of new and changed files in Git LFS with those of their pointers, as the
// clean filter of git-lfs does. git determines these files with the attributes of the work tree. The
// work tree keeps the content.
func (w *walk) point(ctx context.Context) error {
	uses := func(e *index.Entry) bool {
		data, err := hostfs.Read(w.dir, e.Name, maxSteering)
		return err == nil && namesLFS(data)
	}
	if !w.opts.Clone || !slices.ContainsFunc(w.Entries, func(e *index.Entry) bool {
		return isAttributes(e) && uses(e)
	}) {
		return nil
	}
	names := slices.DeleteFunc(differing(w.base.entries, w.Entries), func(name string) bool {
		return !isFile(entryAt(w.Entries, name))
	})
	if len(names) == 0 {
		return nil
	}
	s, err := w.withAttributes(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	cmd := s.inWorkTree(ctx, "check-attr", "-z", "--stdin", "filter")
	cmd.Stdin = strings.NewReader(strings.Join(names, "\x00") + "\x00")
	out, err := output(cmd)
	var raw []plumbing.Hash
	fields := strings.Split(string(out), "\x00") // path, attribute and value of each
	for i, name := range names {
		if err == nil && len(fields) > 3*i+2 && fields[3*i+2] == "lfs" {
			at, _ := slices.BinarySearchFunc(w.Entries, name, byName)
			raw = append(raw, w.Entries[at].Hash)
			w.Entries[at], err = w.pointer(w.Entries[at])
		}
	}
	for _, hash := range raw {
		uses := func(e *index.Entry) bool { return e.Hash == hash }
		if w.objects != nil && !slices.ContainsFunc(w.Entries, uses) {
			delete(w.objects.all, hash)
		}
	}
	return err
}

// pointer returns the entry with the hash of its pointer. An empty file and a pointer are their own
// pointers.
func (w *walk) pointer(e *index.Entry) (*index.Entry, error) {
	f, err := hostfs.Open(w.dir, e.Name)
	if err != nil {
		return e, fmt.Errorf("cannot read %q: %w", e.Name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return e, err
	}
	blob, sum := plumbing.NewHasher(plumbing.BlobObject, info.Size()), sha256.New()
	var head bytes.Buffer
	if _, err = io.Copy(io.MultiWriter(blob, sum), io.TeeReader(io.LimitReader(f, gitdir.MaxPointer), &head)); err == nil {
		_, err = io.Copy(io.MultiWriter(blob, sum), f)
	}
	if err == nil && blob.Sum() != e.Hash {
		err = hostfs.ErrChanged
	}
	if _, _, is := gitdir.Pointer(head.Bytes()); is && info.Size() <= gitdir.MaxPointer || err != nil {
		return e, err
	}
	oid := fmt.Sprintf("%x", sum.Sum(nil))
	text := gitdir.PointerText(oid, info.Size())
	to := *e
	to.Hash = plumbing.ComputeHash(plumbing.BlobObject, text)
	if w.objects == nil {
		return &to, nil
	}
	if _, err = f.Seek(0, io.SeekStart); err == nil {
		err = w.objects.add(plumbing.BlobObject, e.Hash, info.Size(), f)
	}
	if err == nil {
		_, err = w.objects.blob(text)
		w.objects.large[to.Hash] = large{w.objects.all[e.Hash], oid}
	}
	return &to, err
}

// bringLarge copies the content of a commit's files in Git LFS to a clone, as far as the repository
// has it. A larger file remains a pointer, because the clone could not commit it.
func (o *Origin) bringLarge(to *repository, commit string, left []string) error {
	all, err := o.contentOf(commit, left)
	if err != nil || !o.usesLFS(all.entries) {
		return err
	}
	s := o.git.Store()
	for _, e := range all.entries {
		if size, serr := s.EncodedObjectSize(e.Hash); serr != nil || size > gitdir.MaxPointer || e.SkipWorktree {
			continue
		}
		oid, size, is := s.Pointer(e.Hash)
		if !is || size > gitdir.MaxLarge {
			continue
		}
		if err := to.git.TakeLarge(o.git, oid); err != nil && !errors.Is(err, hostfs.ErrAbsent) {
			return fmt.Errorf("cannot copy %q of Git LFS: %w", e.Name, err)
		}
	}
	return nil
}
