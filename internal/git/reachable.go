package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"abl/internal/git/gitdir"

	"github.com/go-git/go-git/v5/plumbing"
)

// reachable are the objects of a commit and its history.
type reachable struct {
	objects []plumbing.Hash // objects for the clone
	left    []plumbing.Hash // content of omitted paths
	missing []plumbing.Hash // objects that the repository lacks, because it is a partial clone
}

// reachable returns the objects of a commit and its history. git determines the content that only
// omitted paths have, with the patterns of a sparse checkout.
func (s *scratch) reachable(ctx context.Context, commit string, without []string) (all reachable, err error) {
	args := []string{"rev-list", "--objects", "--missing=print"}
	if len(without) > 0 {
		cmd := s.command(ctx, "hash-object", "-w", "--stdin")
		cmd.Stdin = bytes.NewReader(sparseOf(without))
		patterns, err := output(cmd)
		if err != nil {
			return all, err
		}
		args = append(args, "--filter=sparse:oid="+strings.TrimSpace(string(patterns)), "--filter-print-omitted")
	}
	out, err := s.run(ctx, append(args, commit, "--")...)
	for line := range strings.Lines(out) {
		to := &all.objects
		switch line[0] {
		case '~':
			to, line = &all.left, line[1:]
		case '?':
			to, line = &all.missing, line[1:]
		}
		hash, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		*to = append(*to, plumbing.NewHash(hash))
	}
	return all, err
}

// fetchAll names the command that fetches the objects that a partial clone lacks.
const fetchAll = "git fetch --refetch --no-filter origin '+refs/heads/*:refs/remotes/origin/*' 'refs/abl/*:refs/abl/*' " +
	"fetches all, with git 2.36 or newer"

// Lacking adds this command to an error about a missing object.
func Lacking(err error) error {
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return gitdir.Foreign("%v: a partial or damaged clone: %s", err, fetchAll)
	}
	return err
}

// partial handles objects that a partial clone lacks: the new clone omits content that only the
// history has. It fails if the commit itself lacks content, or if a directory is missing.
func (s *scratch) partial(ctx context.Context, commit string, left []string, all *reachable) error {
	lacks := func(what string) error {
		return gitdir.Foreign("%s is missing, because the repository is a partial clone (%d objects are missing): "+fetchAll,
			what, len(all.missing))
	}
	if _, err := s.run(ctx, "rev-list", "--objects", "--filter=blob:none", "--missing=error", commit, "--"); err != nil {
		return lacks("a directory of its history")
	}
	tip, err := s.run(ctx, "ls-tree", "-r", "-z", "--full-tree", commit)
	if err != nil {
		return err
	}
	there := map[string]string{} // path by hash
	for entry := range strings.SplitSeq(tip, "\x00") {
		if info, name, ok := strings.Cut(entry, "\t"); ok && !without(left, name) {
			parts := strings.Fields(info)
			there[parts[len(parts)-1]] = name
		}
	}
	for _, hash := range all.missing {
		if name, is := there[hash.String()]; is {
			return lacks(fmt.Sprintf("the content of %q", name))
		}
	}
	all.left = append(all.left, all.missing...)
	return nil
}

// pack copies objects to a pack with its index and returns the path of the pack. git compares each
// object with its hash and a damaged one is an ErrForeign.
func (s *scratch) pack(ctx context.Context, objects []plumbing.Hash) (string, error) {
	var list strings.Builder
	for _, hash := range objects {
		fmt.Fprintln(&list, hash)
	}
	apart := filepath.Join(s.work, "objects") // elsewhere git would compare the objects with borrowed ones
	if err := os.MkdirAll(apart, 0o700); err != nil {
		return "", err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	from := s.command(ctx, "pack-objects", "-q", "--delta-base-offset", "--stdout")
	from.Stdin, from.Stdout = strings.NewReader(list.String()), w
	sent := make(chan error, 1)
	go func() {
		err := finished(from)
		sent <- errors.Join(err, w.Close())
	}()
	const inParts = "core.bigFileThreshold=8m" // git streams larger objects
	to := s.command(ctx, "-c", inParts, "index-pack", "--stdin")
	to.Env, to.Stdin = append(to.Env, "GIT_OBJECT_DIRECTORY="+apart), r
	said, err := output(to)
	r.Close() // the sender ends with a broken pipe
	serr := <-sent
	if serr != nil && strings.Contains(serr.Error(), "broken pipe") { // the receiver failed first
		serr = nil
	}
	err = cmp.Or(ctx.Err(), serr, err)
	if _, exited := errors.AsType[*exec.ExitError](err); exited && !strings.Contains(err.Error(), "No space left") {
		err = gitdir.Foreign("%v; git fsck lists damaged objects", err)
	}
	_, name, _ := strings.Cut(strings.TrimSpace(string(said)), "\t") // "pack" and the hash
	return filepath.Join(apart, "pack", "pack-"+name+".pack"), err
}
