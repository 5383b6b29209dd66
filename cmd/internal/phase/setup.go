package phase

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"abl/cmd/internal/exit"
	"abl/cmd/internal/money"
	"abl/cmd/internal/project"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/ledger"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/roles"
	"abl/roles/app"
	"abl/roles/environment"
)

// newJobs returns the jobs of a phase's calls, without players.
func newJobs(s *project.Project, n int, specs spec.Set) *orchestrator.RoleJobs {
	return &orchestrator.RoleJobs{
		Number:  n,
		Project: s.Paths,
		Specs:   specs,
		App:     environment.AppSpec(s.Conf),
		Trials:  environment.Services(s.Conf),
		Safe:    s.In.Safe,
		Players: map[string]orchestrator.Player{},
		Files:   map[string]orchestrator.Files{},
		Within:  s.Conf.Source.Dir,
		Adopted: s.Conf.Source.Repo != "",
	}
}

// setUp resolves the players, makes their images and the app, and opens the workspaces.
func (r *Run) setUp(ctx context.Context) (err error) {
	r.jobs = newJobs(r.Project, r.phase, r.specs)
	if r.players == nil {
		if r.players, err = r.Players(); err != nil {
			return err
		}
	}
	for _, role := range roles.Both() {
		p := r.players[role.Name]
		want, err := r.Image(role, p.Agent)
		if err != nil {
			return err
		}
		if p.Image, err = r.env.Images.Ensure(ctx, want); err != nil {
			return fmt.Errorf("cannot build the %s's image: %w", role.Name, err)
		}
		if r.goesOn {
			if err := r.openGate(ctx, role, &p); err != nil {
				return err
			}
		}
		r.jobs.Players[role.Name] = p
	}
	if r.app, err = r.env.App(ctx, r.jobs.Players[roles.Builder.Name].Image, r.out); err != nil {
		return err
	}
	r.jobs.Trials, r.env.Containers.Trial = r.app.Services, len(r.app.Services) > 0
	if err := r.openWorkspaces(ctx); err != nil {
		return err
	}
	if err := r.checkUnfinished(ctx); err != nil {
		return err
	}
	r.app.Commits = repo{r.src, r.env.UID, r.env.GID}
	r.app.Build = r.env.Build()
	if r.app.Prepare, err = r.env.Prepare(ctx, r.src); err != nil {
		return err
	}
	r.jobs.Files[roles.Builder.Name], r.jobs.Files[roles.Verifier.Name] = r.src.Files, r.tests.Files
	r.runner = r.env.Runner(r.Paths, r.out)
	r.runner.Prices = r.book.List
	return nil
}

// checkUnfinished returns an error if an interrupted app.prepare changed the source: abl cannot
// distinguish these changes from the user's.
func (r *Run) checkUnfinished(ctx context.Context) error {
	differ, err := app.Unfinished(ctx, r.Paths, r.src, r.In.Bool("take-mine"))
	do := fmt.Sprintf("git -C %s checkout -- . reverts the changes (git clean removes new files); abl phase %d --take-mine keeps them", r.Paths.Rel(r.Paths.Src), r.phase)
	switch _, damaged := errors.AsType[*roles.Damaged](err); {
	case damaged:
		return exit.With(exit.Person, fmt.Errorf("abl was stopped while app.prepare ran: %w", err), do)
	case err != nil || len(differ) == 0:
		return err
	}
	err = fmt.Errorf("abl was stopped while app.prepare ran, which changed %q in the source (%s)", differ[0],
		wording.Count(len(differ), "path"))
	return exit.With(exit.Person, err, do)
}

// openGate opens the role's gateway, if the role may reach anything.
func (r *Run) openGate(ctx context.Context, role roles.Role, p *orchestrator.Player) error {
	g, err := r.env.Gate(ctx, environment.Access{
		Place: role.Name, Agent: p.Agent, Models: p.Models, Prices: money.Of(r.book.List, p.Models),
		Fetch: role.Fetches, Budget: r.account.Left, Spent: r.account.Spent,
	})
	if g != nil {
		p.Gate, p.Hosts, p.Files = g, g.Hosts, g.Files
	}
	return err
}

// openWorkspaces opens both repositories. If abl runs as root in root's project, it makes the roles' user
// the owner of their files.
func (r *Run) openWorkspaces(ctx context.Context) (err error) {
	for _, dir := range []string{r.Paths.Src, r.Paths.Tests, r.Paths.Calls()} {
		if err := hostfs.MkdirAll(r.Paths.Root, r.Paths.Rel(dir)); err != nil {
			return fmt.Errorf("cannot create a workspace: %w", err)
		}
	}
	src, tests := r.file.Commits()
	o := git.Options{MaxFile: int64(r.Conf.Limits.File), Begun: len(r.file.Begun()) > 0, Secrets: r.NeverCommitted()}
	if r.src, err = r.openSource(ctx, o, src); err != nil {
		return err
	}
	o.Cache, o.Commit = r.Paths.Ignored(roles.Verifier.Name), tests
	if r.tests, err = git.Open(r.Paths.Tests, o); err != nil {
		return err
	}
	if !r.env.Chown {
		return r.ChownToUser() // a role's git refuses a repository of root
	}
	if err := shareSpecs(r.Paths.Specs()); err != nil {
		return err
	}
	return r.chownToRoles()
}

// shareSpecs makes the specs readable for the roles' user: root may have a strict umask.
func shareSpecs(dir string) error {
	files, err := hostfs.List(filepath.Dir(dir), filepath.Base(dir), 10_000)
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	for _, f := range files {
		err = errors.Join(err, os.Chmod(filepath.Join(dir, f.Name), 0o644))
	}
	if err != nil {
		return fmt.Errorf("cannot let the roles read the specs: %w", err)
	}
	return nil
}

// ownerships returns the owners of workspaces before the run, by directory.
func ownerships(f *state.File) (map[string]hostfs.Ownership, error) {
	all := map[string]hostfs.Ownership{}
	if f.Owners == nil {
		return all, nil
	}
	if err := json.Unmarshal(*f.Owners, &all); err != nil {
		return nil, fmt.Errorf("cannot read the owners of workspaces (lease) in state.json: %w", err)
	}
	for dir := range all {
		if !filepath.IsLocal(dir) {
			return nil, fmt.Errorf("cannot restore the owner of %q, which lease in state.json names: it is not in the project", dir)
		}
	}
	return all, nil
}

// chownToRoles makes the roles' user the owner of both workspaces. It first saves how to undo that.
func (r *Run) chownToRoles() error {
	all, err := ownerships(r.file)
	if err != nil {
		return err
	}
	for _, dir := range []string{r.Paths.Src, r.Paths.Tests} {
		rel := r.Paths.Rel(dir)
		if _, done := all[rel]; done {
			continue
		}
		if all[rel], err = hostfs.OwnershipOf(dir, r.env.UID, r.env.GID); err != nil {
			return err
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	r.file.Owners = (*json.RawMessage)(&data)
	if err := r.Save(r.file); err != nil {
		return err
	}
	failpoint.Here("owner.saved")
	for rel, owners := range all {
		if err := hostfs.ChownToRole(filepath.Join(r.Paths.Root, rel), owners); err != nil {
			return err
		}
	}
	failpoint.Here("owner.changed")
	return nil
}

// RestoreOwners makes the user the owner of the workspaces again, and emits a note for each path whose
// bits it cleared.
func RestoreOwners(s project.Folder, f *state.File, out state.Sink) error {
	all, err := ownerships(f)
	if err != nil || len(all) == 0 {
		return err
	}
	for rel, owners := range all {
		found, err := hostfs.ChownBack(filepath.Join(s.Paths.Root, rel), owners)
		if err = cmp.Or(err, restoreRecords(s.Paths.Calls(), owners)); err != nil {
			return err
		}
		for _, what := range found {
			out.Emit(state.Event{Kind: state.Note, Text: rel + ": " + what})
		}
	}
	failpoint.Here("owner.restored")
	f.Owners = nil
	return state.Save(s.Paths.State(), f)
}

// restoreRecords makes the user the owner of the outputs of roles and app. The roles' user still owns those
// of a killed call.
func restoreRecords(dir string, roles hostfs.Ownership) error {
	calls, err := hostfs.OwnershipOf(dir, roles.UID, roles.GID)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, err = hostfs.ChownBack(dir, calls)
	}
	return err
}

// repo is a workspace as the loop uses it.
type repo struct {
	*git.Repo
	uid, gid int // the owner of the files that it writes
}

// Restore writes committed files again that a power failure destroyed.
func (r repo) Restore(ctx context.Context, aside string) ([]string, error) {
	return r.Repo.Restore(ctx, aside, r.uid, r.gid)
}

// ExportTo writes a commit into an empty directory, owned by the roles' user.
func (r repo) ExportTo(ctx context.Context, dir, commit, earlier string) error {
	return r.Repo.ExportTo(ctx, dir, commit, earlier, git.Owner{UID: r.uid, GID: r.gid})
}

// Tip returns the last commit, "" before the first.
func (r repo) Tip() (string, error) {
	c, _, err := r.Head()
	return c.Hash, err
}

// Snapshot commits the workspace under the call's key.
func (r repo) Snapshot(
	ctx context.Context, subject, key string, ifChanged bool, keep func(state.Found) error,
) (orchestrator.Commit, error) {
	s, err := r.Repo.Snapshot(ctx, git.Message{Subject: subject, Call: key, IfChanged: ifChanged, Keep: keep})
	if err != nil {
		return orchestrator.Commit{}, err
	}
	c := orchestrator.Commit{Hash: s.Commit.Hash, Changed: s.Changed}
	for _, skipped := range s.Skipped {
		c.Skipped = append(c.Skipped, skipped.Path+": "+skipped.Why)
	}
	return c, nil
}

// openLedger opens tokens.csv and checks that it is writable.
func (r *Run) openLedger() error {
	list, err := r.Prices()
	if err != nil {
		return err
	}
	note := func(text string) { r.emit(state.Event{Text: text}) }
	r.book = money.Book{Ledger: ledger.Open(r.Paths.Ledger()), List: list, Hide: r.In.Safe.Redact, Note: note}
	return r.book.Ready()
}
