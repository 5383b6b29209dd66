package doctor

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/phase"
	"abl/images"
	"abl/internal/config"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/environment"
)

// onlooker is an agent that does nothing: what it is started for is the proof
// that comes before.
var onlooker = agent.Program("none", agent.Command{Argv: []string{helper.Bin + "/" + helper.HelperProbe, "look", "{}"}})

// tryRole takes a container like the role's, with the role's image and the
// project's limits, through its proof. It stands on folders of its own, so
// nothing of the project's is touched, and leaves nothing.
func tryRole(ctx context.Context, in *cli.Input, s *phase.Project, conf *config.Loaded, net roles.Net, role roles.Role) (p roleProof, err error) {
	p.Role = role.Name
	env, project, closed, err := openTrial(ctx, in, conf, "", net)
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, closed()) }()
	env.Boxes.Trial = len(environment.Services(conf)) > 0
	if p.Image, err = imageFor(ctx, s, env.Images, role); errors.Is(err, sandbox.ErrNoImage) {
		p.Image, err = env.Boxes.Helper, nil // abl's own programs are in it too
	}
	if err != nil {
		return p, err
	}
	job := roles.Job{
		Role: role, Agent: onlooker, Image: p.Image, Place: role.Name, Call: agent.Call{ID: "look-" + role.Name, Role: role.Name},
		Prompt: func() (string, error) { return "", nil },
	}
	r := env.Runner(project, state.Discard)
	r.Timeout, r.Idle, r.Quota = time.Minute, 0, roles.DiskQuota{}
	o, rerr := r.Run(ctx, job)
	b, _, err := roles.Record{Dir: project.Call(job.Call.ID)}.Boundary()
	p.Made, p.Inside, p.MS = b.Made, b.Inside, b.ProbeMS
	switch {
	case errors.Is(rerr, sandbox.ErrUnproven):
		p.Error = rerr.Error()
	case rerr != nil:
		return p, rerr
	case o.Class != outcome.Done:
		p.Error = o.Reason
	}
	return p, err
}

// openTrial opens an environment on a throw-away project of its own. Paths in the settings start
// from root, "" for that project's.
func openTrial(ctx context.Context, in *cli.Input, conf *config.Loaded, root string, net roles.Net) (env *environment.Environment, p state.Project, closed func() error, err error) {
	id, p, err := newTrial()
	if err != nil {
		return nil, p, nil, fmt.Errorf("cannot make a folder to try a container on: %w", err)
	}
	env, err = environment.Open(ctx, environment.Options{
		Project: p, ID: id, Conf: conf, Root: cmp.Or(root, p.Root), Net: &net, Safe: in.Safe, CACert: in.String("ca-cert"),
		Offline: true, // what is not there yet is not made for this
		Note:    func(string) {}, NoteImage: func(string) {},
	})
	if err != nil {
		return nil, p, nil, errors.Join(err, os.RemoveAll(p.Root))
	}
	return env, p, func() error {
		_, err := env.Close(ctx, nil)
		return errors.Join(err, os.RemoveAll(p.Root))
	}, nil
}

// imageFor is the role's image, and outside a project that of the tools.
func imageFor(ctx context.Context, s *phase.Project, m *images.Maker, role roles.Role) (string, error) {
	want := images.Want{Agent: images.Tools}
	if s != nil {
		p, err := s.Player(role)
		if err != nil {
			return "", err
		}
		if want, err = s.Image(role, p.Agent); err != nil {
			return "", err
		}
	}
	return m.Ensure(ctx, want)
}

// newTrial lays out a throw-away project, for the user that roles run as. Its id is that on
// the engine.
func newTrial() (id string, p state.Project, err error) {
	id = "look-" + strings.ToLower(rand.Text()[:10])
	root, err := os.MkdirTemp("", "abl-doctor-")
	if err == nil {
		root, err = state.Real(root)
	}
	if err != nil {
		return id, p, err
	}
	p = state.NewProject(root, "src", ".abl/tests")
	uid, gid, _ := hostfs.RoleID(root, os.Geteuid())
	for _, dir := range []string{p.Specs(), p.Calls(), filepath.Join(p.Src, ".git"), filepath.Join(p.Tests, ".git")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return id, p, err
		}
	}
	if err := os.Chmod(root, 0o755); err != nil || os.Geteuid() != 0 {
		return id, p, err
	}
	return id, p, errors.Join(os.Chown(p.Src, uid, gid), os.Chown(p.Tests, uid, gid))
}
