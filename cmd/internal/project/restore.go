package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/trust"
	"abl/internal/state"
)

// Restored returns a command that first restores the published project in a fresh clone of the
// user's repository. If branches of phases were fetched without their state, it prints a warning.
func Restored(do Action) Action {
	return restored(do, func(s *Project, err error) error {
		s.Unfetched = err
		s.In.Warn(fmt.Sprintf("%v; %s", err, exit.Hint(err)))
		return nil
	})
}

// Continued returns a command that runs phases. It fetches the state of a remote, if the settings name
// one. It restores a fresh clone as Restored does, and pulls a newer state that was fetched. It fails if a
// phase would be paid for a second time.
func Continued(do Action) Action {
	run := withPull(do)
	return func(ctx context.Context, s *Project) error {
		if s.Conf.Remote.Name != "" && !s.In.Bool("dry-run") {
			defer s.Unlock()
			if err := s.fetchState(ctx); err != nil {
				return exit.Because(ctx, err)
			}
		}
		return run(ctx, s)
	}
}

// withPull returns a command that first pulls the fetched state.
func withPull(do Action) Action {
	return restored(func(ctx context.Context, s *Project) error {
		if err := pullNewer(ctx, s); err != nil {
			return err
		}
		return do(ctx, s)
	}, func(_ *Project, err error) error { return err })
}

// restored restores a fresh clone and then calls do. unfetched handles a clone that has the branches of
// phases but not their state.
func restored(do Action, unfetched func(*Project, error) error) Action {
	return func(ctx context.Context, s *Project) error {
		if _, err := os.Lstat(s.Paths.State()); errors.Is(err, fs.ErrNotExist) {
			if err := restoreFresh(ctx, s, unfetched); err != nil {
				return err
			}
		}
		if err := trust.CheckRecords(ctx, s.Paths.Root); err != nil { // Opened returns this error
			s.In.Warn(err)
		}
		return do(ctx, s)
	}
}

func restoreFresh(ctx context.Context, s *Project, unfetched func(*Project, error) error) error {
	if s.Conf.Source.Repo == "" {
		return nil
	}
	if s.Conf.Source.Repo != "." && s.Trusted(ctx) != nil { // the repository may not be the user's choice
		return nil
	}
	x, err := s.exchange()
	if err != nil {
		return err
	}
	if x.tip == "" {
		if err := x.fetchedWhole(ctx); err != nil {
			return unfetched(s, err)
		}
		return nil
	}
	if s.remote != nil && x.tip == s.remote.Ref(stateRef) { // fetchState restored it, unless no phase in it has begun
		return nil
	}
	return pullAndPrint(ctx, s)
}

// pullAndPrint pulls under the project's lock and prints the result.
func pullAndPrint(ctx context.Context, s *Project) error {
	unlock, err := s.Lock()
	if err != nil {
		return err
	}
	defer unlock()
	text, err := s.Pull(ctx, false)
	if err == nil {
		s.In.Say("%s, from %s", text, stateRef)
	}
	return err
}

// fetchedWhole fails if the repository has the branch of a phase and no state: git clone fetches
// branches only, and a phase that passed would look as if it had never run.
func (x exchange) fetchedWhole(ctx context.Context) error {
	refs, err := x.repo.Branches(ctx, x.prefix()+"phase")
	if err != nil || len(refs) == 0 {
		return err
	}
	ref := strings.TrimPrefix(strings.TrimPrefix(refs[0], "refs/heads/"), "refs/remotes/")
	return exit.With(exit.Person, fmt.Errorf("branch %s exists, but %s was not fetched", ref, stateRef),
		x.fetchRefs()+" fetches it; if no state was published, delete the branch to start from scratch")
}

// pullNewer pulls a state that was fetched and that continues the state of this project. It fails
// if both have work that the other does not have.
func pullNewer(ctx context.Context, s *Project) error {
	if s.Conf.Source.Repo == "" || s.In.Bool("dry-run") {
		return nil
	}
	x, err := s.exchange()
	if err != nil || x.tip == "" || len(x.file.Phases) == 0 || x.upToDate() == nil {
		return err
	}
	if x.file.Published != "" {
		if older, err := x.repo.Contains(x.file.Published, x.tip); err == nil && older {
			return nil
		}
	}
	changed, err := x.hasMoved(ctx)
	if err != nil {
		return err
	}
	if !changed {
		return pullAndPrint(ctx, s)
	}
	in, err := x.incoming()
	if err != nil {
		return fmt.Errorf("cannot pull %s: %w", stateRef, err)
	}
	return x.diverged(in.file)
}

// diverged is the error for a published state and a project that both have work that the other does
// not have.
func (x exchange) diverged(theirs *state.File) error {
	what := fmt.Errorf("cannot pull %s: it is at %.12s (%s), and this project changed since %.12q (%s)",
		stateRef, x.tip, summary(theirs), x.file.Published, summary(x.file))
	undo := "git update-ref -d " + stateRef
	if x.file.Published != "" {
		undo = "git update-ref " + stateRef + " " + x.file.Published
	}
	return exit.With(exit.Person, what,
		"abl pull --theirs moves the local state into .abl/aside-N and uses the published one; "+
			undo+" && git update-ref -d "+testsRef+" && git update-ref -d "+sourceRef+" ignores the fetched state")
}
