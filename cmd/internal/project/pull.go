package project

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"abl/cmd/internal/exit"
	"abl/internal/audit"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/roles"
)

// Pull replaces the local state with the state published in the user's repository, and returns a summary.
// It fails if the local state has diverged. With theirs it backs up the local state and replaces it.
func (s *Project) Pull(ctx context.Context, theirs bool) (text string, err error) {
	x, err := s.exchange()
	if err == nil && x.tip == "" {
		err = exit.With(exit.Usage, fmt.Errorf("cannot pull: there is no %s here", stateRef),
			s.fetchRefs()+" fetches the pushed refs")
	}
	if err != nil {
		return "", err
	}
	has := len(x.file.Phases) > 0
	if has && x.file.Published == x.tip {
		return "nothing new: " + summary(x.file), nil
	}
	if has && x.file.Published != "" {
		if same, err := x.alike(x.file.Published, x.tip); err == nil && same {
			x.file.Published = x.tip
			return "nothing new: " + summary(x.file), state.Save(x.Paths.State(), x.file)
		}
	}
	refused := func(err error) (string, error) { return "", fmt.Errorf("cannot pull %s: %w", stateRef, err) }
	in, err := x.incoming()
	if err != nil {
		return refused(err)
	}
	if has {
		changed, err := x.hasMoved(ctx)
		if err == nil && changed && !theirs {
			err = x.diverged(in.file)
		}
		if err == nil && changed {
			text, err = x.putAside(ctx)
		}
		if err != nil {
			return "", err
		}
	}
	if err := x.restore(ctx, in); err != nil {
		return refused(err)
	}
	return "restored: " + summary(x.file) + text, nil
}

// hasMoved reports whether the project has changed since it last published or pulled, or whether that state
// is not part of the one at tip.
func (x exchange) hasMoved(ctx context.Context) (bool, error) {
	if has, err := x.repo.Contains(x.tip, x.file.Published); err != nil || !has {
		return true, err
	}
	same, err := x.standsAt(x.file.Published)
	for dir, o := range map[string]git.Options{x.Paths.Src: x.SourceOptions(), x.Paths.Tests: {}} {
		if _, gone := os.Lstat(filepath.Join(dir, ".git")); err != nil || !same || gone != nil {
			continue
		}
		repo, err := git.Open(dir, o)
		if err != nil {
			return true, err
		}
		at, made, err1 := repo.Head()
		differ, err2 := repo.Differs(ctx, "")
		if err := errors.Join(err1, err2); err != nil {
			return true, err
		}
		same = (!made || x.repo.Holds(at.Hash, ".")) && (!o.Clone || len(differ) == 0) // otherwise the user made changes
	}
	return !same, err
}

// standsAt reports whether the project is what was published as a commit. The id of the project
// and the ids of contracts are not compared: another clone has its own id, and the user commits the
// file of contract ids.
func (x exchange) standsAt(commit string) (bool, error) {
	was, err1 := x.kept(commit)
	if f, err := state.Decode(was[carriedState]); err == nil {
		mine := *x.file
		mine.Project, x.file = f.Project, &mine
	}
	is, err2 := x.carried()
	return sameState(was, is), errors.Join(err1, err2)
}

// alike reports whether two published states differ at most in the id of the project.
func (x exchange) alike(a, b string) (bool, error) {
	if a == "" {
		return false, nil
	}
	was, err1 := x.kept(a)
	is, err2 := x.kept(b)
	if err := errors.Join(err1, err2); err != nil {
		return false, err
	}
	for _, files := range []map[string][]byte{was, is} {
		f, err := state.Decode(files[carriedState])
		if err != nil {
			return false, nil
		}
		f.Project = ""
		if files[carriedState], err = json.Marshal(f); err != nil {
			return false, fmt.Errorf("internal error: %w", err)
		}
	}
	return sameState(was, is), nil
}

// sameState reports whether two sets of published files are equal, without the ids of contracts and
// the lease.
func sameState(a, b map[string][]byte) bool {
	other := func(name string, _ []byte) bool { return name == carriedIDs || name == leaseFile }
	maps.DeleteFunc(a, other)
	maps.DeleteFunc(b, other)
	return maps.EqualFunc(a, b, bytes.Equal)
}

// putAside moves the state, logs, reports and workspaces to a new folder in .abl. It deletes the published
// branches of phases, which are in the workspace, so that the pulled ones can replace them.
func (x exchange) putAside(ctx context.Context) (string, error) {
	if err := x.dropBranches(ctx); err != nil {
		return "", err
	}
	to := ""
	for n := 1; ; n++ {
		to = filepath.Join(x.Paths.Root, state.Dir, fmt.Sprintf("aside-%d", n))
		if err := os.Mkdir(to, 0o755); err == nil {
			break
		} else if !errors.Is(err, fs.ErrExist) {
			return "", err
		}
	}
	if err := hostfs.Write(filepath.Join(to, ".gitignore"), []byte("*\n"), 0o644); err != nil { // transcripts are in there
		return "", err
	}
	for _, path := range []string{x.Paths.State(), x.Paths.Logs(), x.Paths.Reports(), x.Paths.Tests, x.Paths.Src} {
		if err := os.Rename(path, filepath.Join(to, filepath.Base(path))); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "; the earlier local state is in " + x.Paths.Rel(to), nil
}

// dropBranches deletes the published branches of phases that are as the clone has them. Others have commits
// of the user.
func (x exchange) dropBranches(ctx context.Context) error {
	if !isRepository(x.Paths.Src) {
		return nil
	}
	src, err := git.Open(x.Paths.Src, x.SourceOptions())
	for _, n := range x.file.Begun() {
		if err != nil {
			return err
		}
		ref := "refs/heads/" + x.PublishedBranch(n)
		was, err1 := x.repo.Ref(ref)
		is, err2 := src.Ref("refs/heads/" + Branch(n))
		if err = errors.Join(err1, err2); err != nil || was == "" || was != is {
			continue
		}
		if err := x.repo.Drop(ctx, ref, was); err != nil {
			x.In.Warn(fmt.Sprintf("%s stays at %.12s: %v", x.PublishedBranch(n), was, err))
		}
	}
	return err
}

// incoming is a published state that was checked, with its files and commits.
type incoming struct {
	file   *state.File
	files  map[string][]byte // by the name under which they were published
	branch string            // of the last phase that has begun
	src    string            // its tip
	tests  string            // commit of the tests, "" before the first
}

// incoming reads and checks what was published. It writes nothing.
func (x exchange) incoming() (in incoming, err error) {
	if in.files, err = x.kept(x.tip); err != nil {
		return in, err
	}
	if in.file, err = state.Decode(in.files[carriedState]); err != nil {
		return in, exit.With(exit.Person, fmt.Errorf("%s: %w", carriedState, err), unbelieved)
	}
	f := in.file // what runs on the engine has the id of this project
	f.Root, f.Project, f.Published, f.Owners, f.Git = x.Paths.Root, x.file.Project, x.tip, nil, nil
	all := f.Begun()
	if len(all) == 0 {
		return in, errors.New("no phase in it has begun")
	}
	last := all[len(all)-1]
	in.branch = Branch(last)
	if in.src, err = x.repo.Ref(sourceRef); err == nil && in.src == "" { // of an earlier version
		in.src, err = x.newest(x.PublishedBranch(last), f.Phase(last).SrcCommit)
	}
	if err == nil && in.src == "" {
		in.src, err = x.withoutBranch(f.Phase(last).SrcCommit, x.PublishedBranch(last))
	}
	tests, terr := x.repo.Ref(testsRef)
	if in.tests, err = tests, errors.Join(err, terr); err != nil {
		return in, err
	}
	for _, key := range slices.Sorted(maps.Keys(f.Phases)) { // phases that never began as well
		n, _ := strconv.Atoi(key) // Decode has checked it
		if err := x.believable(n, in); err != nil {
			err = fmt.Errorf("phase %d is %s there, but %w", n, f.Phase(n).Status, err)
			return in, exit.With(exit.Person, err, unbelieved)
		}
	}
	return in, nil
}

// restore writes the published files and clones the workspaces. It writes state.json last: without it a
// run starts from scratch.
func (x *exchange) restore(ctx context.Context, in incoming) (err error) {
	x.file = in.file
	for name, to := range x.places(x.file) {
		data, is := in.files[name]
		if _, gone := os.Lstat(to); name == carriedIDs && gone == nil {
			is = false // the user's file, committed with the specs
		}
		if is {
			err = errors.Join(err, x.lay(to, data))
		}
	}
	if err == nil {
		err = x.cloneTo(ctx, x.Paths.Src, in.src, in.branch, withheld(x.Folder))
	}
	if err == nil {
		err = x.cloneTo(ctx, x.Paths.Tests, in.tests, "main", nil)
	}
	if err == nil {
		err = x.forward(ctx)
	}
	if err == nil {
		err = state.Save(x.Paths.State(), x.file)
	}
	return err
}

// forward moves the local branches of phases to the fetched ones: otherwise git push --atomic refuses all
// refs because of an older branch. A branch with other commits, or one that is checked out, stays.
func (x exchange) forward(ctx context.Context) error {
	for _, n := range x.file.Begun() {
		ref := "refs/heads/" + x.PublishedBranch(n)
		was, err := x.repo.Ref(ref)
		if err != nil {
			return err
		}
		is, err := x.newest(x.PublishedBranch(n), x.file.Phase(n).SrcCommit)
		if err != nil || was == "" || is == was {
			continue
		}
		if later, err := x.repo.Contains(is, was); err == nil && later {
			if err := x.repo.Forward(ctx, ref, was, is); err != nil {
				x.In.Warn(fmt.Sprintf("%s stays at %.12s: %v", x.PublishedBranch(n), was, err))
			}
		}
	}
	return nil
}

// unbelieved is the hint for a state that does not match the refs that were published with it.
const unbelieved = "fetch the branches of phases and refs/abl/* together; if they still differ, git log " + stateRef +
	" names the commits to choose from: git update-ref " + stateRef + " COMMIT"

// withoutBranch returns the commit of a phase whose branch does not exist, as after its pull request
// was merged and the branch was deleted.
func (x exchange) withoutBranch(commit, branch string) (string, error) {
	if commit != "" && x.repo.Holds(commit, ".") {
		return commit, nil
	}
	hint := x.fetchRefs() + " fetches it; if origin does not have it, run abl publish && git push --atomic origin " +
		"'refs/abl/*' in the clone that built it"
	return "", exit.With(exit.Person, fmt.Errorf("branch %s does not exist here, and its state does", branch), hint)
}

// newest returns the tip of a phase's branch: the fetched one if it contains the local one, or if only it
// contains the phase's commit. It returns "" if neither branch exists.
func (x exchange) newest(branch, commit string) (string, error) {
	tip, err := x.repo.Tip(branch)
	fetched, ferr := x.repo.Ref("refs/remotes/" + cmp.Or(x.Conf.Remote.Name, "origin") + "/" + branch)
	if err != nil || ferr != nil || fetched == "" {
		return tip, err
	}
	has := func(tip, commit string) bool {
		is, err := x.repo.Contains(tip, commit)
		return err == nil && is
	}
	if has(fetched, tip) || has(fetched, commit) && !has(tip, commit) {
		return fetched, nil
	}
	return tip, nil
}

// believable fails if a commit of a phase is missing, or if the phase is passed without the tree and the
// audit record of a pass.
func (x exchange) believable(n int, in incoming) error {
	p := in.file.Phase(n)
	passed := p.Status == state.Passed || p.Status == state.Stale
	own, err := x.newest(x.PublishedBranch(n), p.SrcCommit)
	if err != nil {
		return err
	}
	if has, err := x.repo.Contains(in.src, p.SrcCommit); err == nil && has {
		own = in.src // also if a user rewrote the branch
	}
	for _, c := range []struct{ commit, in, name string }{
		{p.SrcCommit, cmp.Or(own, in.src), x.PublishedBranch(n)},
		{p.TestsCommit, in.tests, testsRef},
	} {
		if c.commit == "" && !passed {
			continue
		}
		has, err := x.repo.Contains(c.in, c.commit)
		if err != nil || !has {
			return errors.Join(fmt.Errorf("its commit %.40q is not in %s", c.commit, c.name), err)
		}
	}
	if !passed {
		return nil
	}
	tree, err := x.repo.TreeKey(p.SrcCommit, roles.Builder.Reports)
	if err != nil {
		return err
	}
	at := audit.Path(x.Paths, n, p.Step)
	name := path.Join(carriedReports, filepath.Base(filepath.Dir(at)), filepath.Base(at))
	r, err := audit.Decode(in.files[name])
	if err != nil {
		return fmt.Errorf("its audit record %s cannot be read: %w", name, err)
	}
	was := audit.Commits{Source: p.SrcCommit, Tests: p.TestsCommit}
	if r.Commits.Tree != "" { // records of earlier versions have none
		if was.Tree, err = x.repo.TreeHash(p.SrcCommit); err != nil {
			return err
		}
	}
	if r.Commits.Tag = ""; r.Phase != n || r.Step != p.Step || r.Verdict != "pass" || r.Commits != was {
		return fmt.Errorf("its audit record %s does not match its phase, step, verdict or commits", name)
	}
	if len(p.History) == 0 {
		return errors.New("its history is empty")
	}
	last := p.History[len(p.History)-1]
	if last.Step != p.Step || last.Verdict != r.Verdict || last.Tree != tree {
		return fmt.Errorf("its tree is not the one that step-%d was tested with", last.Step)
	}
	return nil
}

// lay writes a pulled file. It refuses links in the path, which could come from the repository.
func (x *exchange) lay(to string, data []byte) error {
	for at := filepath.Dir(to); at != x.Paths.Root; at = filepath.Dir(at) {
		if is, err := os.Lstat(at); err == nil && !is.IsDir() {
			return exit.With(exit.Person, fmt.Errorf("%q is a file or a symbolic link, want a directory", x.Paths.Rel(at)),
				"rename it and run the command again")
		}
	}
	return errors.Join(hostfs.MkdirAll(x.Paths.Root, x.Paths.Rel(filepath.Dir(to))), hostfs.Write(to, data, 0o644))
}

// cloneTo replaces a workspace by a clone, with the tags of the phases that have passed. If commit is "",
// the new repository is empty.
func (x *exchange) cloneTo(ctx context.Context, dir, commit, branch string, without []string) error {
	draft, err := x.Draft(dir)
	if err == nil && commit != "" {
		err = x.repo.Clone(ctx, draft, commit, branch, without)
	}
	if err != nil {
		return err
	}
	repo, err := git.Open(draft, git.Options{Clone: commit != "", Without: without})
	if err != nil {
		return err
	}
	for _, n := range x.file.Begun() {
		p := x.file.Phase(n)
		at := p.SrcCommit
		if dir == x.Paths.Tests {
			at = p.TestsCommit
		}
		if p.Status != state.Passed {
			continue
		}
		has, err := repo.Contains(commit, at)
		if err == nil && has {
			err = repo.Tag(ctx, fmt.Sprintf("phase%d/passed", n), at)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(hostfs.Remove(filepath.Dir(dir), filepath.Base(dir)), os.Rename(draft, dir))
}
