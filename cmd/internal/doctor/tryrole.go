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
// project's limits, through its proof.
func tryRole(ctx context.Context, env *environment.Environment, s *phase.Project, role roles.Role) (p roleProof, err error) {
	p.Role = role.Name
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
	r := env.Runner(env.Project, state.Discard)
	r.Timeout, r.Idle, r.Quota = time.Minute, 0, roles.DiskQuota{}
	o, rerr := r.Run(ctx, job)
	b, _, err := roles.Record{Dir: env.Project.Call(job.Call.ID)}.Boundary()
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

// inTrial does something in an environment on a throw-away project of its own, so nothing of the
// person's is touched, and leaves nothing. Paths in the settings start from root, "" for that
// project's.
func inTrial(ctx context.Context, in *cli.Input, conf *config.Loaded, root string, net roles.Net, do func(*environment.Environment) error) (err error) {
	dir, err := os.MkdirTemp("", "abl-doctor-")
	if err != nil {
		return fmt.Errorf("cannot make a folder to try a container on: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	real, err := state.Real(dir)
	if err != nil {
		return err
	}
	p := state.NewProject(real, "src", ".abl/tests")
	env, err := environment.Open(ctx, environment.Options{
		Project: p, ID: "look-" + strings.ToLower(rand.Text()[:10]), Conf: conf, Root: cmp.Or(root, p.Root), Net: &net, Safe: in.Safe, CACert: in.String("ca-cert"),
		Offline: true, // what is not there yet is not made for this
		Note:    func(string) {}, NoteImage: func(string) {},
	})
	if err != nil {
		return err
	}
	defer func() {
		_, cerr := env.Close(ctx, nil)
		err = errors.Join(err, cerr)
	}()
	for _, dir := range []string{p.Specs(), p.Calls(), filepath.Join(p.Src, ".git"), filepath.Join(p.Tests, ".git")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	err = errors.Join(os.Chmod(p.Root, 0o755), os.Chown(p.Src, env.UID, env.GID), os.Chown(p.Tests, env.UID, env.GID))
	if err != nil {
		return err
	}
	env.Boxes.Trial = len(environment.Services(conf)) > 0
	return do(env)
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
