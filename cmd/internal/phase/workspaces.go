package phase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/orchestrator"
	"abl/roles"
)

// openWorkspaces opens both repositories and, when abl is root in a project of
// root's, lends what is in them to the roles' user.
func (r *Run) openWorkspaces() (err error) {
	for _, dir := range []string{r.Paths.Src, r.Paths.Tests, r.Paths.Calls()} {
		if err := hostfs.MkdirAll(r.Paths.Root, r.Paths.Rel(dir)); err != nil {
			return fmt.Errorf("cannot make a workspace: %w", err)
		}
	}
	src, tests := r.file.Commits()
	o := git.Options{MaxFile: int64(r.Conf.Limits.File), Cache: r.Paths.Ignored(roles.Builder.Name), Begun: r.file.Begun(), Commit: src, Secrets: r.neverCommitted()}
	if r.src, err = git.Open(r.Paths.Src, o); err != nil {
		return err
	}
	o.Cache, o.Commit = r.Paths.Ignored(roles.Verifier.Name), tests
	if r.tests, err = git.Open(r.Paths.Tests, o); err != nil {
		return err
	}
	if !r.env.Lend {
		return r.handOver() // git in a role refuses a history of root's
	}
	return r.lendAll()
}

// leases are those that the state keeps, by the directory that is lent.
func leases(f *state.File) (map[string]hostfs.Lease, error) {
	all := map[string]hostfs.Lease{}
	if f.Lease == nil {
		return all, nil
	}
	if err := json.Unmarshal(*f.Lease, &all); err != nil {
		return nil, fmt.Errorf("cannot read the lease in state.json: %w", err)
	}
	return all, nil
}

// lendAll hands both workspaces to the roles' user; how to undo it is on disk first.
func (r *Run) lendAll() error {
	all, err := leases(r.file)
	if err != nil {
		return err
	}
	dirs := []string{r.Paths.Src, r.Paths.Tests}
	for _, dir := range dirs {
		if _, ok := all[r.Paths.Rel(dir)]; ok {
			continue
		}
		if all[r.Paths.Rel(dir)], err = hostfs.Plan(dir, r.env.UID, r.env.GID); err != nil {
			return err
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	r.file.Lease = (*json.RawMessage)(&data)
	if err := r.save(); err != nil {
		return err
	}
	failpoint.Here("lease.saved")
	for _, dir := range dirs {
		if err := hostfs.Lend(dir, all[r.Paths.Rel(dir)]); err != nil {
			return err
		}
	}
	failpoint.Here("lease.lent")
	return nil
}

// GiveBack returns lent workspaces to the person and says what it cleared there.
func (s *Project) GiveBack(f *state.File, out state.Sink) error {
	all, err := leases(f)
	if err != nil || len(all) == 0 {
		return err
	}
	for rel, lease := range all {
		found, err := hostfs.Return(filepath.Join(s.Paths.Root, rel), lease)
		if err != nil {
			return err
		}
		for _, what := range found {
			out.Emit(state.Event{Time: time.Now().UTC(), Kind: state.Note, Text: rel + ": " + what})
		}
		if err := returnRecords(s.Paths.Calls(), lease); err != nil {
			return err
		}
	}
	failpoint.Here("lease.returned")
	f.Lease = nil
	return state.Save(s.Paths.State(), f)
}

// returnRecords gives the person the files that took what roles and the app
// printed; those of a call that was killed are still the roles' user's.
func returnRecords(dir string, lent hostfs.Lease) error {
	calls, err := hostfs.Plan(dir, lent.UID, lent.GID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = hostfs.Return(dir, calls)
	}
	return err
}

// repo lets the loop commit through a workspace.
type repo struct{ *git.Repo }

// Tip is the last commit, "" before the first.
func (r repo) Tip() (string, error) {
	c, _, err := r.Head()
	return c.Hash, err
}

// Snapshot commits the tree under the call's key.
func (r repo) Snapshot(ctx context.Context, subject, key string, keep func(state.Found) error) (orchestrator.Commit, error) {
	s, err := r.Repo.Snapshot(ctx, git.Message{Subject: subject, Call: key, Keep: keep})
	if err != nil {
		return orchestrator.Commit{}, err
	}
	c := orchestrator.Commit{Hash: s.Commit.Hash, Changed: s.Changed}
	for _, skipped := range s.Skipped {
		c.Skipped = append(c.Skipped, skipped.Path+": "+skipped.Why)
	}
	return c, nil
}
