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
	"abl/images"
	"abl/internal/config"
	"abl/internal/git"
	"abl/internal/hostfs"
	"abl/internal/spec"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/orchestrator"
	"abl/prompts"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/app"
	"abl/roles/environment"
)

// agents returns the agents of the project's settings.
func (s Folder) agents() environment.Agents {
	return environment.Agents{Conf: s.Conf, Root: s.Paths.Root}
}

// Player returns the agent, models and prompt of a role. It needs no engine; the image is set later.
func (s Folder) Player(role roles.Role) (orchestrator.Player, error) {
	chosen, err := s.agents().ForRole(role.Name)
	if err != nil {
		return orchestrator.Player{}, exit.With(exit.Usage, err, "")
	}
	own, err := hostfs.Read(s.Paths.Root, s.Paths.Rel(s.Paths.Prompt(role.Name)), spec.MaxBytes)
	if err != nil && !errors.Is(err, hostfs.ErrAbsent) {
		return orchestrator.Player{}, exit.With(exit.Usage, fmt.Errorf("cannot read the %s's prompt: %w", role.Name, err),
			"replace it with a regular file of at most 1 MiB")
	}
	tmpl, err := prompts.Choose(role.Name, own)
	if err != nil {
		return orchestrator.Player{}, exit.With(exit.Usage, err, "")
	}
	commands := map[string]map[string]config.Command{
		roles.Builder.Name: s.Conf.BuilderCommands, roles.Verifier.Name: s.Conf.VerifierCommands,
	}[role.Name]
	return orchestrator.Player{
		Agent:    chosen.Agent,
		Models:   chosen.Models,
		Efforts:  chosen.Efforts,
		Template: tmpl,
		Commands: environment.Commands(commands),
	}, nil
}

// Players returns the agents, models and prompts of both roles, by name.
func (s Folder) Players() (map[string]orchestrator.Player, error) {
	all := map[string]orchestrator.Player{}
	for _, role := range roles.Both() {
		p, err := s.Player(role)
		if err != nil {
			return nil, err
		}
		all[role.Name] = p
	}
	return all, nil
}

// Image returns the description of a role's image.
func (s Folder) Image(role roles.Role, a agent.Agent) (want images.Want, err error) {
	dockerfile := s.Conf.Images.Verifier.Dockerfile
	if want.Agent, want.Version, want.NPM = a.Image, a.Version, a.NPM; role.Name == roles.Builder.Name {
		want.Toolchain, dockerfile = s.Conf.Toolchain, s.Conf.Images.Builder.Dockerfile
	}
	want.Dockerfile, err = s.dockerfile(dockerfile)
	return want, err
}

// CheckImages returns an error if a Dockerfile of the project may not be built, or a seed file of a
// service does not exist.
func (s Folder) CheckImages() error {
	own := s.Conf.Images
	files := []string{own.Builder.Dockerfile, own.Verifier.Dockerfile, own.App.Dockerfile}
	for _, svc := range environment.Services(s.Conf) {
		files = append(files, s.Conf.App.Services[svc.Name].Dockerfile)
		if _, err := s.Conf.Seeds(s.Paths.Root, svc.Name); err != nil {
			return err
		}
	}
	for _, rel := range files {
		if _, err := s.dockerfile(rel); err != nil {
			return err
		}
	}
	return nil
}

func (s Folder) dockerfile(rel string) (string, error) {
	return environment.Dockerfile(s.Paths.Root, rel, s.Paths.Src, s.Paths.Tests)
}

// newJobs returns the jobs of a phase's calls, without players.
func newJobs(s *Project, n int, specs spec.Set) *orchestrator.RoleJobs {
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
	r.jobs.Trials, r.env.Boxes.Trial = r.app.Services, len(r.app.Services) > 0
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
	o := git.Options{MaxFile: int64(r.Conf.Limits.File), Begun: r.file.Begun(), Secrets: r.neverCommitted()}
	if r.src, err = r.openSource(ctx, o, src); err != nil {
		return err
	}
	o.Cache, o.Commit = r.Paths.Ignored(roles.Verifier.Name), tests
	if r.tests, err = git.Open(r.Paths.Tests, o); err != nil {
		return err
	}
	if !r.env.Lend {
		return handOver(r.Paths) // a role's git refuses a repository of root
	}
	if err := shareSpecs(r.Paths.Specs()); err != nil {
		return err
	}
	return r.lendAll()
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

// leases returns the leases in the state, by directory.
func leases(f *state.File) (map[string]hostfs.Lease, error) {
	all := map[string]hostfs.Lease{}
	if f.Lease == nil {
		return all, nil
	}
	if err := json.Unmarshal(*f.Lease, &all); err != nil {
		return nil, fmt.Errorf("cannot read the lease in state.json: %w", err)
	}
	for dir := range all {
		if !filepath.IsLocal(dir) {
			return nil, fmt.Errorf("cannot restore the owner of %q, a lease in state.json: it is not in the project", dir)
		}
	}
	return all, nil
}

// lendAll makes the roles' user the owner of both workspaces. It first saves how to undo that.
func (r *Run) lendAll() error {
	all, err := leases(r.file)
	if err != nil {
		return err
	}
	for _, dir := range []string{r.Paths.Src, r.Paths.Tests} {
		rel := r.Paths.Rel(dir)
		if _, lent := all[rel]; lent {
			continue
		}
		if all[rel], err = hostfs.Plan(dir, r.env.UID, r.env.GID); err != nil {
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
	for rel, lease := range all {
		if err := hostfs.Lend(filepath.Join(r.Paths.Root, rel), lease); err != nil {
			return err
		}
	}
	failpoint.Here("lease.lent")
	return nil
}

// GiveBack returns lent workspaces to the user, and emits a note for each path that it cleared.
func (s *Project) GiveBack(f *state.File, out state.Sink) error {
	all, err := leases(f)
	if err != nil || len(all) == 0 {
		return err
	}
	for rel, lease := range all {
		found, err := hostfs.Return(filepath.Join(s.Paths.Root, rel), lease)
		if err = cmp.Or(err, returnRecords(s.Paths.Calls(), lease)); err != nil {
			return err
		}
		for _, what := range found {
			out.Emit(state.Event{Kind: state.Note, Text: rel + ": " + what})
		}
	}
	failpoint.Here("lease.returned")
	f.Lease = nil
	return state.Save(s.Paths.State(), f)
}

// returnRecords makes the user the owner of the outputs of roles and app. The roles' user still owns those
// of a killed call.
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
