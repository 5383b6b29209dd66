package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"abl/internal/git/gitdir"
	"abl/internal/hostfs"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

// ErrConflict means that both sides of a merge changed the same lines, so that the user must merge.
var ErrConflict = errors.New("both sides changed the same files")

// Switch creates a branch at the tip of the current one and makes HEAD point to it. It changes
// nothing else.
func (r *Repo) Switch(ctx context.Context, branch string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if branch == r.branch {
		return nil
	}
	tip, err := r.tip()
	if err != nil {
		return err
	}
	there, err := r.git.Ref("refs/heads/" + branch)
	if has, herr := r.Contains(tip, there); err == nil && there != "" && !has {
		err = cmp.Or(herr, gitdir.Foreign("%q: branch %s has commits that %s lacks: merge it with git merge, or rename "+
			"it with git branch -m", r.dir, branch, r.branch))
	}
	if err == nil && there != tip {
		err = r.git.Move(ctx, "refs/heads/"+branch, there, tip)
	}
	if err == nil {
		err = setHead(r.git, branch)
	}
	if err == nil {
		r.branch = branch
	}
	return err
}

// ErrEdited means that a merge would overwrite uncommitted changes.
var ErrEdited = errors.New("uncommitted changes are in the way")

// Merge merges a commit of this repository, which Fetch has copied, into the branch and the work
// tree of a clone. It returns the new tip. It fast-forwards if the commit contains the branch. An
// ErrConflict names the files. edited are the paths of the work tree that differ from the branch.
// If the merge changes one of them, Merge returns ErrEdited and changes nothing.
func (o *Origin) Merge(ctx context.Context, r *Repo, commit, subject string, edited []string) (Commit, error) {
	text, err := r.opts.Identity.text(Message{Subject: subject})
	if err != nil {
		return Commit{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	ours, _, err := r.Head()
	if err != nil {
		return ours, err
	}
	if done, err := r.Contains(ours.Hash, commit); done || err != nil {
		return ours, err
	}
	forward, err := r.Contains(commit, ours.Hash)
	if err == nil && !forward {
		commit, err = o.merged(ctx, r, ours.Hash, commit, text)
	}
	c := checkout{r, ours.Hash, commit}
	if err == nil {
		err = c.refuse(edited)
	}
	if err == nil {
		err = c.begin(ctx)
	}
	if err != nil {
		return ours, err
	}
	ours, _, err = r.Head()
	return ours, err
}

// checkout moves branch, index and work tree of a clone from one commit to another.
type checkout struct {
	*Repo
	was, is string
}

// refuse returns ErrEdited if an edited path differs between the commits, or is a parent or child
// of such a path.
func (c checkout) refuse(edited []string) error {
	if len(edited) == 0 {
		return nil
	}
	if len(edited) >= maxDiffers { // there may be more
		return fmt.Errorf("%w: %d or more", ErrEdited, maxDiffers)
	}
	before, after, err := c.content()
	if err != nil {
		return err
	}
	for _, path := range differing(before, after) {
		for _, mine := range edited {
			if path == mine || strings.HasPrefix(path, mine+"/") || strings.HasPrefix(mine, path+"/") {
				return fmt.Errorf("%w: %q", ErrEdited, mine)
			}
		}
	}
	return nil
}

// merged creates the merge commit of a clone's commit and one of this repository. The user's git
// merges in a scratch repository with the objects of both.
func (o *Origin) merged(ctx context.Context, r *Repo, ours, theirs, text string) (string, error) {
	s, err := newScratch(ctx, r.git, &o.repository, &r.repository)
	if err != nil {
		return "", err
	}
	defer s.close()
	if _, err := s.run(ctx, "merge-base", ours, theirs); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); exited {
			err = fmt.Errorf("%w: %s and %s have no commit in common; in a shallow clone run git fetch --unshallow",
				ErrConflict, ours, theirs)
		}
		return "", err
	}
	tree, conflicts, err := s.mergeTree(ctx, ours, theirs)
	if err != nil {
		return "", err
	}
	for i, name := range conflicts { // git appends the commit to a file that is a directory on the other side
		conflicts[i] = strings.TrimSuffix(strings.TrimSuffix(name, "~"+ours), "~"+theirs)
	}
	if len(conflicts) > 0 {
		return "", fmt.Errorf("%w: %s", ErrConflict, strings.Join(conflicts, ", "))
	}
	return s.commit(ctx, r, tree, text, ours, theirs)
}

// commit copies the objects that git created in the scratch repository to a clone, and creates a
// commit of a tree there.
func (s *scratch) commit(ctx context.Context, to *Repo, tree, text string, parents ...string) (string, error) {
	made, err1 := s.made()
	objects, err2 := newSpool(&to.repository, to.opts.Identity)
	if err := errors.Join(err1, err2); err != nil {
		return "", err
	}
	defer objects.close()
	from := gitdir.At(s.dir, to.id).Store()
	for _, hash := range made {
		o, err := from.EncodedObject(plumbing.AnyObject, hash)
		if err == nil {
			err = objects.put(o)
		}
		if err != nil {
			return "", err
		}
	}
	c, err := objects.commitOf(ctx, plumbing.NewHash(tree), text, parents...)
	if err == nil {
		err = objects.finish()
	}
	if err != nil {
		return "", err
	}
	return c.Hash.String(), nil
}

// ByHand returns the commands with which the user merges a commit of their repository into the
// clone at src. With these options git neither checks out nor changes the paths that the clone
// omits, and knows a user whose name is set in the repository only.
func (o *Origin) ByHand(ctx context.Context, src, commit string) string {
	with := "-c core.sparseCheckout=true -c sparse.expectFilesOutsideOfPatterns=true"
	for _, name := range []string{"user.name", "user.email"} {
		if own := o.setting(ctx, name, "--local"); own != "" {
			with += fmt.Sprintf(" -c %s='%s'", name, strings.ReplaceAll(own, "'", `'\''`))
		}
	}
	return fmt.Sprintf("git -C %[1]s %[2]s merge %.12[3]s; resolve the conflicts; git -C %[1]s %[2]s -c "+
		"remote.abl.promisor=1 commit -a", src, with, commit)
}

const (
	maxText   = 4 << 20 // bytes of a text
	maxTarget = 1 << 16 // bytes of the target of a link
)

// textOf reads a text. It returns ErrConflict if the blob is too large or binary.
func textOf(s *gitdir.Store, hash plumbing.Hash) (string, error) {
	if size, err := s.EncodedObjectSize(hash); err == nil && size > maxText {
		return "", ErrConflict
	}
	data, err := read(s, hash, maxText+1)
	if err == nil && (len(data) > maxText || bytes.IndexByte(data, 0) >= 0) {
		err = ErrConflict
	}
	return string(data), err
}

// underWay is the file in .git with the two commits of a checkout in progress. It exists while the
// work tree is between them.
const underWay = "ABL_CHECKOUT"

// begin moves the branch, then index and work tree. After a kill, Open completes the move.
func (c checkout) begin(ctx context.Context) error {
	if err := c.git.Replace(underWay, []byte(c.was+" "+c.is+"\n")); err != nil {
		return err
	}
	if err := c.git.Move(ctx, c.ref(), c.was, c.is); err != nil {
		return errors.Join(err, os.Remove(c.git.Join(underWay)))
	}
	return c.complete()
}

// complete moves index and work tree.
func (c checkout) complete() error {
	before, after, err := c.content()
	if err == nil {
		err = c.checkOut(before, after)
	}
	if err != nil {
		return err
	}
	return os.Remove(c.git.Join(underWay))
}

// content returns the entries of both commits.
func (c checkout) content() (before, after []*index.Entry, err error) {
	was, err1 := c.Repo.content(c.was)
	is, err2 := c.Repo.content(c.is)
	return was.entries, is.entries, errors.Join(err1, err2)
}

// endCheckout completes a checkout in progress if the branch has already moved.
func (r *Repo) endCheckout(tip string) error {
	data, err := hostfs.Read(r.git.Path, underWay, maxSteering)
	if errors.Is(err, hostfs.ErrAbsent) {
		return nil
	}
	was, is, ok := strings.Cut(strings.TrimSpace(string(data)), " ")
	if err != nil || !ok {
		return gitdir.Foreign("cannot read %q: check the work tree with git status, and remove the file",
			r.git.Join(underWay))
	}
	if tip == is {
		return checkout{r, was, is}.complete()
	}
	return os.Remove(r.git.Join(underWay))
}
