package phase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"abl/cmd/internal/exit"
	"abl/internal/git"
	"abl/internal/state"
	"abl/orchestrator"
	"abl/roles"
)

// Origin opens the user's repository, of which the Builder's workspace is a clone. ok is false if the
// project has no such repository.
func (s *Project) Origin() (o *git.Origin, ok bool, err error) {
	if s.Conf.Source.Repo == "" {
		return nil, false, nil
	}
	if o, err = git.OpenOrigin(filepath.Join(s.Paths.Root, s.Conf.Source.Repo)); err != nil {
		code := exit.Person
		if errors.Is(err, git.ErrElsewhere) {
			code = exit.Usage
		}
		return nil, false, exit.With(code, err, "source.repo in "+s.Conf.File+" names the repository")
	}
	return o, true, nil
}

// withheld returns the paths of the user's repository that the Builder's clone leaves out: abl's files,
// the Verifier's prompt, .env, run reports and adopt.exclude.
func withheld(s *Project) []string {
	at, _ := filepath.Rel(filepath.Join(s.Paths.Root, s.Conf.Source.Repo), s.Paths.Root) // both are absolute
	own := []string{state.Dir, ".env", "prompts/builder.md", "prompts/verifier.md"}
	all := slices.Clone(s.Conf.Adopt.Exclude)
	for _, name := range own {
		all = append(all, filepath.Join(at, name))
	}
	return append(all, filepath.Join(s.Conf.Source.Dir, roles.Builder.Reports))
}

// source returns the options for opening the Builder's workspace.
func (s *Project) source() git.Options {
	if s.Conf.Source.Repo == "" {
		return git.Options{}
	}
	return git.Options{Clone: true, Without: withheld(s)}
}

// Branch returns the branch of a phase in the clone.
func Branch(n int) string { return fmt.Sprintf("abl/phase%d", n) }

// prefix returns the prefix of published branches.
func (s *Project) prefix() string { return cmp.Or(s.Conf.Publish.Prefix, git.BranchPrefix) }

// PublishedBranch returns the branch of a phase in the user's repository.
func (s *Project) PublishedBranch(n int) string { return fmt.Sprintf("%sphase%d", s.prefix(), n) }

// FetchRefs returns the command that fetches all published refs.
func (s *Project) FetchRefs() string {
	at := s.prefix() + "*"
	return fmt.Sprintf("git fetch origin 'refs/heads/%[1]s:refs/remotes/origin/%[1]s' 'refs/abl/*:refs/abl/*'", at)
}

// openSource opens the Builder's workspace: a separate repository, or a clone of the user's repository
// with the user's new commits.
func (r *Run) openSource(ctx context.Context, o git.Options, commit string) (*git.Repo, error) {
	own := r.source()
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
	if _, err := os.Lstat(filepath.Join(r.Paths.Src, ".git")); errors.Is(err, os.ErrNotExist) && !o.Begun {
		if err := r.clone(ctx, from, branch, head, o.Without); err != nil {
			return nil, err
		}
	}
	if o.Identity, err = r.identity(ctx, from); err != nil {
		return nil, err
	}
	repo, err := git.Open(r.Paths.Src, o)
	if err == nil && r.goesOn {
		err = repo.CheckSigning(ctx)
	}
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(r.Paths.Src, r.Conf.Source.Dir)); err != nil {
		return nil, exit.With(exit.Usage, fmt.Errorf("cannot find source.dir: %q is not in commit %.12s", r.Conf.Source.Dir,
			head), "set source.dir to a committed folder")
	}
	p := r.file.Phases[fmt.Sprint(r.phase)]
	if !r.goesOn {
		return repo, nil
	}
	begun, err := r.callBegun(*p)
	if err == nil && !begun {
		err = repo.Switch(ctx, Branch(r.phase))
	}
	if err == nil {
		err = r.takeIn(ctx, from, repo, head, begun)
	}
	return repo, err
}

// identity returns who makes the commits of the source: publish.author, or abl with the user as
// co-author, and the user who signs off and signs them.
func (s *Project) identity(ctx context.Context, from *git.Origin) (id git.Identity, err error) {
	user, known := from.User(ctx)
	own := s.Conf.Publish
	switch {
	case own.Author != "":
		id.Author = git.ParsePerson(own.Author)
	case known:
		id.Trailers = append(id.Trailers, "Co-authored-by: "+user.String())
	}
	if own.Signoff && !known {
		err := errors.New("cannot sign off commits: git does not know your name and e-mail address")
		return id, exit.With(exit.Usage, err, "git config user.name NAME && git config user.email EMAIL, or set publish.signoff to false")
	}
	if own.Signoff {
		id.Trailers = append(id.Trailers, "Signed-off-by: "+user.String())
	}
	id.Signing = from.Signing(ctx)
	return id, nil
}

// callBegun reports whether the phase's current call has begun. Its agent may still work, or its result
// is not committed yet, so the source must not change.
func (r *Run) callBegun(p state.Phase) (bool, error) {
	key := callAtRest(p)
	if key == "" {
		return false, nil
	}
	rec := roles.Record{Dir: r.Paths.Call(key)}
	_, begun, err := rec.Intent()
	return begun || rec.Started() || p.Recheck, err
}

// clone clones the user's repository into the Builder's workspace.
func (r *Run) clone(ctx context.Context, from *git.Origin, branch, head string, without []string) error {
	draft, err1 := emptied(r.Paths, r.Paths.Src+".new")
	remarks, err2 := from.Remarks(head, without)
	err := errors.Join(err1, err2)
	if err == nil {
		err = from.Clone(ctx, draft, head, Branch(r.phase), without)
	}
	if err != nil {
		return fmt.Errorf("cannot clone your repository: %w", err)
	}
	if err := errors.Join(os.Remove(r.Paths.Src), os.Rename(draft, r.Paths.Src)); err != nil { // Src is empty
		return fmt.Errorf("cannot clone your repository: %w", err)
	}
	r.file.Branch, r.file.Start = branch, head
	r.note(fmt.Sprintf("the Builder works on a clone of %s at %.12s, in %s, on branch %s",
		cmp.Or(branch, "your repository"), head, r.Paths.Rel(r.Paths.Src), Branch(r.phase)))
	for _, text := range remarks {
		if text == git.NoRoom && r.prefix() != git.BranchPrefix {
			continue
		}
		r.note("of your repository " + text)
	}
	return nil
}

// takeIn merges the commits that the user made since the clone, on the branch that was cloned. During
// a call, and over edits that are not committed, it only reports them.
func (r *Run) takeIn(ctx context.Context, from *git.Origin, repo *git.Repo, head string, begun bool) error {
	tip, err := from.Tip(r.file.Branch)
	if err != nil {
		return err
	}
	theirs, name := tip, r.file.Branch
	if tip == "" { // a detached HEAD, as in CI
		theirs, name = head, "HEAD of your repository"
	}
	at, _, err := repo.Head()
	if err == nil {
		err = repo.Whole(at.Hash)
	}
	if err != nil {
		return err
	}
	has, err := repo.Contains(at.Hash, theirs)
	if err == nil && begun {
		if !has {
			r.note(fmt.Sprintf("%s has new commits; a call has begun without them, so the next run of abl phase merges them",
				name))
		}
		return nil
	}
	p := r.file.Phases[fmt.Sprint(r.phase)]
	if err != nil || has {
		p.SrcCommit = at.Hash
		return err
	}
	if p.SrcCommit, err = r.merge(ctx, from, repo, theirs, name); p.SrcCommit == "" && err == nil {
		p.SrcCommit = at.Hash
	}
	return err
}

// merge merges a commit of the user's repository into the branch of the phase, and returns the new
// tip. Files that an interrupted call of the Builder left are kept. It returns "" if the source has
// other edits, which stop the next call, or if those files are in the way.
func (r *Run) merge(ctx context.Context, from *git.Origin, repo *git.Repo, theirs, name string) (string, error) {
	changed, err := repo.Differs(ctx, "")
	if err != nil {
		return "", err
	}
	left := len(changed) > 0
	if left {
		if is, err := orchestrator.IsLeft(ctx, r.Paths, repo); err != nil || !is {
			return "", err
		}
	}
	if err := from.Fetch(ctx, repo, theirs); err != nil {
		return "", err
	}
	merged, err := from.Merge(ctx, repo, theirs, fmt.Sprintf("phase%d: take in %s at %.12s", r.phase, name, theirs),
		changed)
	switch {
	case errors.Is(err, git.ErrEdited):
		r.note(fmt.Sprintf("%s has new commits, which abl merges later: an interrupted call changed the same files (%v)",
			name, err))
		return "", nil
	case errors.Is(err, git.ErrConflict):
		what := fmt.Errorf("cannot take in what is new on %s: %w", name, err)
		return "", exit.With(exit.Person, what, git.ByHand(r.Paths.Rel(r.Paths.Src),
			theirs)+"; then run the same command again")
	case err != nil:
		return "", err
	}
	r.note(fmt.Sprintf("%s has new commits; %s takes them in, at %.12s", name, Branch(r.phase), merged.Hash))
	if left {
		err = orchestrator.KeepLeft(ctx, r.Paths, repo)
	}
	return merged.Hash, err
}
