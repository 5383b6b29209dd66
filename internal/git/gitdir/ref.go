package gitdir

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
)

const maxRef = 4096 // bytes: longer than any name of a ref

// Head reads HEAD: the branch that it names, without refs/heads/, or the commit at which it is
// detached.
func (d Dir) Head() (branch, commit string, err error) {
	data, err := hostfs.Read(d.Path, "HEAD", maxRef)
	text := strings.TrimRight(string(data), "\n ")
	branch, ok := strings.CutPrefix(text, "ref: refs/heads/")
	switch {
	case ValidHash(text):
		return "", text, nil
	case err != nil:
		return "", "", Foreign("HEAD of %q: %v: git switch mends it", d.Path, err)
	case !ok || !ValidRef(branch):
		return "", "", Foreign("HEAD of %q does not name a branch: it holds %.60q; git switch mends it", d.Path, data)
	}
	return branch, "", nil
}

// maxLinks is how many symbolic refs git follows.
const maxLinks = 5

// Target returns the ref that a symbolic ref leads to, or the ref itself.
func (d Dir) Target(name string) (string, error) {
	for at, left := name, maxLinks; ; left-- {
		data, err := hostfs.Read(d.Path, at, maxRef)
		to, symbolic := strings.CutPrefix(strings.TrimRight(string(data), "\n \t\r"), "ref: ")
		if err != nil || !symbolic { // Ref reports the error
			return at, nil
		}
		if branch, is := strings.CutPrefix(to, "refs/heads/"); !is || !ValidRef(branch) || left == 0 {
			return "", Foreign("the symbolic ref %q leads to %.60q, which is not a branch: git symbolic-ref changes it", d.Join(name), to)
		}
		at = to
	}
}

// Ref reads what a ref names, "" when there is no such ref. It follows a symbolic ref. A ref that is
// there and empty, which other tools leave after a crash, is never taken for
// one that is missing: that would begin a new history beside the old one.
func (d Dir) Ref(name string) (string, error) {
	name, err := d.Target(name)
	if err != nil {
		return "", err
	}
	data, err := hostfs.Read(d.Path, name, maxRef)
	info, lerr := os.Lstat(d.Join(name))
	switch {
	case errors.Is(err, hostfs.ErrAbsent), errors.Is(lerr, syscall.ENOTDIR), lerr == nil && info.IsDir():
		packed, err := d.Packed()
		value, there := packed[name]
		if err != nil || !there {
			return "", err
		}
		data = []byte(value)
	case err != nil:
		return "", Foreign("the ref %q: %v: replace it by what git makes there", d.Join(name), err)
	}
	hash := strings.TrimRight(string(data), "\n \t\r")
	if !ValidHash(hash) {
		return "", Foreign("the ref %q holds %.60q and not a commit: find the last good one with git fsck --lost-found and set it with git update-ref", d.Join(name), data)
	}
	return hash, nil
}

// Packed reads what packed-refs says each ref names, be it a commit or not.
func (d Dir) Packed() (map[string]string, error) {
	refs := map[string]string{}
	data, err := hostfs.Read(d.Path, "packed-refs", maxFile)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return nil, Foreign("in %q: %v: replace it by what git makes there", d.Path, err)
	}
	for line := range bytes.Lines(data) {
		hash, ref, ok := strings.Cut(strings.TrimRight(string(line), "\n"), " ")
		if ok && line[0] != '#' {
			refs[ref] = hash
		}
	}
	return refs, nil
}

// Move sets a ref to a commit if it still names old ("" when it must not
// exist), under its lock.
func (d Dir) Move(ctx context.Context, name, old, commit string, wait time.Duration) error {
	if !ValidHash(commit) {
		return fmt.Errorf("cannot move the ref %q to %q: that is no commit", name, commit)
	}
	name, err := d.Target(name)
	if err != nil {
		return err
	}
	if err := d.Mkdir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("cannot make room for the ref %q: %w", name, err)
	}
	unlock, err := d.Lock(ctx, name, wait)
	if err != nil {
		return err
	}
	defer unlock()
	now, err1 := d.Ref(name)
	packed, err2 := d.Packed()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for ref := range packed {
		if strings.HasPrefix(name, ref+"/") || strings.HasPrefix(ref, name+"/") { // git can keep one of both alone
			return Foreign("cannot make the ref %q beside %q: git branch -m gives that another name", name, ref)
		}
	}
	if now != old {
		return Foreign("the ref %q moved from %q to %q while abl worked: somebody else commits here; look with git log and run abl again", name, old, now)
	}
	return d.Replace(name, []byte(commit+"\n"))
}

// ValidRef says whether git takes the name for a ref below refs/heads or
// refs/tags: no way out of the folder, nothing git reads as something else.
func ValidRef(name string) bool {
	return plumbing.NewBranchReferenceName(name).Validate() == nil
}

// ValidHash says whether the text is the name of an object.
func ValidHash(s string) bool { return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "" }
