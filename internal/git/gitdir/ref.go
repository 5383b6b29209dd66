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

	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
)

const maxRef = 4096 // bytes, more than the longest name of a ref

// Head reads HEAD. It returns the branch without refs/heads/, or the commit of a detached HEAD.
func (d Dir) Head() (branch, commit string, err error) {
	data, err := hostfs.Read(d.Path, "HEAD", maxRef)
	text := strings.TrimRight(string(data), "\n ")
	branch, ok := strings.CutPrefix(text, "ref: refs/heads/")
	switch {
	case ValidHash(text):
		return "", text, nil
	case err != nil:
		return "", "", Foreign("HEAD of %q: %v: git switch repairs it", d.Path, err)
	case !ok || !ValidRef(branch):
		return "", "", Foreign("HEAD of %q is %.60q, want a branch: git switch repairs it", d.Path, data)
	}
	return branch, "", nil
}

// maxLinks is the number of symbolic refs that git follows.
const maxLinks = 5

// Target returns the ref at the end of a chain of symbolic refs, or the ref itself.
func (d Dir) Target(name string) (string, error) {
	for at, left := name, maxLinks; ; left-- {
		data, err := hostfs.Read(d.Path, at, maxRef)
		to, symbolic := strings.CutPrefix(strings.TrimRight(string(data), "\n \t\r"), "ref: ")
		if err != nil || !symbolic { // Ref reports the error
			return at, nil
		}
		if branch, is := strings.CutPrefix(to, "refs/heads/"); !is || !ValidRef(branch) || left == 0 {
			return "", Foreign("the symbolic ref %q points to %.60q, which is not a branch: git symbolic-ref changes it",
				d.Join(name), to)
		}
		at = to
	}
}

// Ref returns the commit of a ref, "" if the ref does not exist. It follows symbolic refs. An empty
// ref, which other tools leave after a crash, is an error: treating it as missing would begin a new
// history next to the old one.
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
		return "", Foreign("the ref %q: %v: restore the file that git creates there", d.Join(name), err)
	}
	hash := strings.TrimRight(string(data), "\n \t\r")
	if !ValidHash(hash) {
		return "", Foreign("the ref %q contains %.60q instead of a commit: find the last good commit with git fsck "+
			"--lost-found and set it with git update-ref", d.Join(name), data)
	}
	return hash, nil
}

// Packed returns the refs in packed-refs with their values.
func (d Dir) Packed() (map[string]string, error) {
	refs := map[string]string{}
	data, err := hostfs.Read(d.Path, "packed-refs", maxFile)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return nil, Foreign("in %q: %v: restore the file that git creates there", d.Path, err)
	}
	for line := range bytes.Lines(data) {
		hash, ref, ok := strings.Cut(strings.TrimRight(string(line), "\n"), " ")
		if ok && line[0] != '#' {
			refs[ref] = hash
		}
	}
	return refs, nil
}

// Move sets a ref to a commit under its lock if the ref is still old. old is "" for a new ref.
func (d Dir) Move(ctx context.Context, name, old, commit string) error {
	if !ValidHash(commit) {
		return fmt.Errorf("cannot move the ref %q to %q: not a commit hash", name, commit)
	}
	name, err := d.Target(name)
	if err != nil {
		return err
	}
	if err := d.Mkdir(filepath.Dir(name)); err != nil {
		return fmt.Errorf("cannot create the ref %q: %w", name, err)
	}
	unlock, err := d.Lock(ctx, name)
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
		if strings.HasPrefix(name, ref+"/") || strings.HasPrefix(ref, name+"/") { // git cannot have both
			return Foreign("cannot create the ref %q, because %q exists: rename that with git branch -m", name, ref)
		}
	}
	if now != old {
		return Foreign("the ref %q moved from %q to %q while abl ran, so another process commits here: check git log "+
			"and run abl again", name, old, now)
	}
	return d.Replace(name, []byte(commit+"\n"))
}

// ValidRef reports whether git accepts the name for a ref below refs/heads or refs/tags.
func ValidRef(name string) bool {
	return plumbing.NewBranchReferenceName(name).Validate() == nil
}

// ValidHash reports whether s is the full hash of an object.
func ValidHash(s string) bool { return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == "" }
