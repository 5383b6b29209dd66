package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/internal/git"
	"abl/orchestrator"
	"abl/roles"
)

// openSource opens the Builder's workspace: a separate repository, or a clone of the user's repository
// with the user's new commits.
func (r *Run) openSource(ctx context.Context, o git.Options, commit string) (*git.Repo, error) {
	own := r.SourceOptions()
	o.Cache, o.Commit, o.Clone, o.Without = r.Paths.Ignored(roles.Builder.Name), commit, own.Clone, own.Without
	from, adopts, err := r.Origin()
	if err != nil {
		return nil, err
	}
	if !adopts {
		return git.Open(r.Paths.Src, o)
	}
	branch, head, err := from.Head()
	switch {
	case err != nil:
		return nil, err
	case head == "":
		return nil, exit.With(exit.Person, errors.New("cannot clone your repository: it has no commit yet"),
			"git add -A && git commit")
	}
	a := adoption{Run: r, from: from, head: head}
	if _, err := os.Lstat(filepath.Join(r.Paths.Src, ".git")); errors.Is(err, os.ErrNotExist) && !o.Begun {
		if err := a.clone(ctx, branch, o.Without); err != nil {
			return nil, err
		}
	}
	if o.Identity, err = r.identity(ctx, from); err != nil {
		return nil, err
	}
	a.repo, err = git.Open(r.Paths.Src, o)
	if err == nil && r.goesOn {
		err = a.repo.CheckSigning(ctx)
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(r.Paths.Src, r.Conf.Source.Dir)); err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot find source.dir: %q is not in commit %.12s", r.Conf.Source.Dir,
			head), "set source.dir to a committed folder")
	}
	if !r.goesOn {
		return a.repo, nil
	}
	begun, err := r.CallBegun(*r.file.Phases[fmt.Sprint(r.phase)])
	if err == nil && !begun {
		err = a.repo.Switch(ctx, project.Branch(r.phase))
	}
	if err == nil {
		err = a.takeIn(ctx, begun)
	}
	return a.repo, err
}

// adoption keeps the Builder's workspace as a clone of the user's repository.
type adoption struct {
	*Run
	from *git.Origin
	head string    // the commit that is checked out in the user's repository
	repo *git.Repo // the workspace; nil before it is open
}

// identity returns who makes the commits of the source: publish.author, or abl with the user as
// co-author, and the user who signs off and signs them.
func (r *Run) identity(ctx context.Context, from *git.Origin) (id git.Identity, err error) {
	user, known := from.User(ctx)
	own := r.Conf.Publish
	switch {
	case own.Author != "":
		id.Author = git.ParsePerson(own.Author)
	case known:
		id.Trailers = append(id.Trailers, "Co-authored-by: "+user.String())
	}
	if own.Signoff && !known {
		err := errors.New("cannot sign off commits: git does not know your name and e-mail address")
		return id, exit.With(exit.Usage, err,
			"git config user.name NAME && git config user.email EMAIL, or set publish.signoff to false")
	}
	if own.Signoff {
		id.Trailers = append(id.Trailers, "Signed-off-by: "+user.String())
	}
	id.Signing = from.Signing(ctx)
	return id, nil
}

// clone clones the user's repository into the Builder's workspace.
func (a adoption) clone(ctx context.Context, branch string, without []string) error {
	draft, err1 := a.Draft(a.Paths.Src)
	remarks, err2 := a.from.Remarks(a.head, without)
	err := errors.Join(err1, err2)
	if err == nil {
		err = a.from.Clone(ctx, draft, a.head, project.Branch(a.phase), without)
	}
	if err != nil {
		return fmt.Errorf("cannot clone your repository: %w", err)
	}
	if err := errors.Join(os.Remove(a.Paths.Src), os.Rename(draft, a.Paths.Src)); err != nil { // Src is empty
		return fmt.Errorf("cannot clone your repository: %w", err)
	}
	a.file.Branch, a.file.Start = branch, a.head
	a.note(fmt.Sprintf("the Builder works on a clone of %s at %.12s, in %s, on branch %s",
		cmp.Or(branch, "your repository"), a.head, a.Paths.Rel(a.Paths.Src), project.Branch(a.phase)))
	for _, text := range remarks {
		if text == git.NoRoom && a.PublishedBranch(a.phase) != project.Branch(a.phase) {
			continue
		}
		a.note("your repository: " + text)
	}
	return nil
}

// takeIn merges the commits that the user made since the clone, on the branch that was cloned. During
// a call, and over edits that are not committed, it only reports them.
func (a adoption) takeIn(ctx context.Context, begun bool) error {
	tip, err := a.from.Tip(a.file.Branch)
	if err != nil {
		return err
	}
	theirs, name := tip, a.file.Branch
	if tip == "" { // a detached HEAD, as in CI
		theirs, name = a.head, "HEAD of your repository"
	}
	at, _, err := a.repo.Head()
	if err == nil {
		err = a.repo.Whole(at.Hash)
	}
	if err != nil {
		return err
	}
	has, err := a.repo.Contains(at.Hash, theirs)
	if err == nil && begun {
		if !has {
			a.note(fmt.Sprintf("%s has new commits; a call has begun without them, so the next run of abl phase merges them",
				name))
		}
		return nil
	}
	p := a.file.Phases[fmt.Sprint(a.phase)]
	if err != nil || has {
		p.SrcCommit = at.Hash
		return err
	}
	if p.SrcCommit, err = a.merge(ctx, theirs, name); p.SrcCommit == "" && err == nil {
		p.SrcCommit = at.Hash
	}
	return err
}

// merge merges a commit of the user's repository into the branch of the phase, and returns the new
// tip. Files that an interrupted call of the Builder left are kept. It returns "" if the source has
// other edits, which stop the next call, or if those files are in the way.
func (a adoption) merge(ctx context.Context, theirs, name string) (string, error) {
	changed, err := a.repo.Differs(ctx, "")
	if err != nil {
		return "", err
	}
	left := len(changed) > 0
	if left {
		if is, err := orchestrator.IsLeft(ctx, a.Paths, a.repo); err != nil || !is {
			return "", err
		}
	}
	if err := a.from.Fetch(ctx, a.repo, theirs); err != nil {
		return "", err
	}
	merged, err := a.from.Merge(ctx, a.repo, theirs, fmt.Sprintf("phase%d: merge %s at %.12s", a.phase, name, theirs),
		changed)
	switch {
	case errors.Is(err, git.ErrEdited):
		a.note(fmt.Sprintf("%s has new commits, which abl merges later: an interrupted call changed the same files (%v)",
			name, err))
		return "", nil
	case errors.Is(err, git.ErrConflict):
		what := fmt.Errorf("cannot merge the new commits of %s: %w", name, err)
		return "", exit.With(exit.Person, what, a.from.ByHand(ctx, a.Paths.Rel(a.Paths.Src),
			theirs)+"; then run the same command again")
	case err != nil:
		return "", err
	}
	a.note(fmt.Sprintf("%s has new commits; merged into %s at %.12s", name, project.Branch(a.phase), merged.Hash))
	if left {
		err = orchestrator.KeepLeft(ctx, a.Paths, a.repo)
	}
	return merged.Hash, err
}
