package setup

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
	"abl/cmd/internal/exit"
	"abl/cmd/internal/project"
	"abl/cmd/internal/view"
	"abl/images"
	"abl/internal/config"
	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
	"abl/internal/wording"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/call"
	"abl/roles/environment"
)

// boundaries is what `abl doctor --boundary` prints.
type boundaries struct {
	Engine  string        `json:"engine"`
	At      time.Time     `json:"at"`
	Apart   sandbox.Apart `json:"apart"` // how the engine isolates its networks
	Network sandbox.Proof `json:"network"`
	Roles   []roleProof   `json:"roles"`
	Calls   []callProof   `json:"calls"` // the last one of each role
}

// roleProof is the proof of a temporary container like a role's.
type roleProof struct {
	Role   string        `json:"role"`
	Image  string        `json:"image"`
	Made   sandbox.Proof `json:"made"`
	Inside sandbox.Proof `json:"inside"`
	MS     int64         `json:"probe_ms"`
	Error  string        `json:"error,omitempty"`
}

// callProof sums up the proof in a call's record.
type callProof struct {
	Container string    `json:"box"`
	At        time.Time `json:"at"`
	Checks    int       `json:"checks"`
	Failed    string    `json:"failed,omitempty"`
	Weak      string    `json:"weak_network,omitempty"`
}

// examineBoundary runs all checks of the boundary, and prints them with the recorded proofs of the last
// calls. It fails with exit code Boundary if a check fails.
func examineBoundary(ctx context.Context, in *cli.Input) error {
	conf := &config.Loaded{Config: config.Default()}
	s, err := openAny(in)
	if err != nil {
		return err
	}
	if s != nil {
		if err := s.Trusted(ctx); err != nil {
			return err
		}
		conf = s.Conf
	}
	eng, info, err := environment.Connect(ctx)
	if err != nil {
		return exit.OnEngine(err)
	}
	defer eng.Close()
	b := boundaries{Engine: fmt.Sprintf("Docker %s, API %s at %s", info.Version, info.API, info.Host),
		Roles: []roleProof{}, Calls: []callProof{}}
	if err := b.prove(ctx, in, s, conf, eng, info); err != nil {
		return exit.OnEngine(err)
	}
	if s != nil {
		if err := b.recall(s); err != nil {
			return err
		}
	}
	if in.Bool("json") {
		err = in.JSON(b)
	} else {
		err = in.Print(b.text(in))
	}
	return errors.Join(err, b.verdict())
}

// prove probes the engine's networks and a container like each role's.
func (b *boundaries) prove(
	ctx context.Context, in *cli.Input, s *project.Project, conf *config.Loaded, eng environment.Engine, info sandbox.Info,
) (err error) {
	o := environment.Options{Conf: conf, CACert: in.String("ca-cert"), Offline: in.Bool("offline")}
	b.At, b.Apart = time.Now().UTC(), info.Apart
	if b.Network, err = o.ProveNetworks(ctx, eng); err != nil {
		return fmt.Errorf("cannot probe the engine's networks: %w", err)
	}
	return inTrial(ctx, in, conf, "", true, func(env *environment.Environment) error {
		for _, role := range roles.Both() {
			p, err := probeRole(ctx, env, s, role)
			if err != nil {
				return err
			}
			b.Roles = append(b.Roles, p)
		}
		return nil
	})
}

// recall reads the recorded proofs of each role's last call.
func (b *boundaries) recall(s *project.Project) error {
	calls, err := s.Calls()
	if err != nil {
		return err
	}
	last := map[string]project.Call{}
	for _, c := range calls {
		last[c.Role.Name] = c
	}
	for _, role := range roles.Both() {
		proofs, err := last[role.Name].Proofs()
		if err != nil {
			s.In.Warn(err)
		}
		for _, p := range proofs {
			b.Calls = append(b.Calls, callProof{
				Container: p.Container,
				At:        p.At,
				Checks:    len(p.Made) + len(p.Inside),
				Failed:    p.Failed,
				Weak:      p.Weak,
			})
		}
	}
	return nil
}

// verdict returns an error if a check failed.
func (b *boundaries) verdict() error {
	failed := len(b.Network.Failed())
	for _, r := range b.Roles {
		failed += len(r.Made.Failed()) + len(r.Inside.Failed())
		for _, c := range r.Inside {
			if c.Weak {
				failed++
			}
		}
		if r.Error != "" && failed == 0 {
			failed++
		}
	}
	if failed == 0 {
		return nil
	}
	return exit.With(exit.Boundary, fmt.Errorf("containers are not isolated: %s failed", wording.Count(failed, "check")),
		"")
}

// text lays out the engine, a row for each check, and a line for each call.
func (b *boundaries) text(in *cli.Input) string {
	t := view.Table{Header: []string{"RESULT", "PLACE", "CHECK", "FOUND"}, Flex: 3}
	add := func(place string, p sandbox.Proof) {
		for _, c := range p {
			result, found := "ok", brief(c.Got)
			if !c.OK {
				result, found = "FAILED", fmt.Sprintf("%s, wanted %s", found, brief(c.Want))
			}
			t.Rows = append(t.Rows, []string{result, place, c.Name, found})
		}
	}
	add("network", b.Network)
	for _, r := range b.Roles {
		add(r.Role+" made", r.Made)
		add(r.Role+" inside", r.Inside)
		if r.Error != "" {
			t.Rows = append(t.Rows, []string{"FAILED", r.Role, "container", brief(r.Error)})
		}
	}
	var calls []string
	for _, c := range b.Calls {
		calls = append(calls, c.String())
	}
	return in.Lines(fmt.Sprintf("%s; networks isolated by %s", b.Engine, b.Apart)) + "\n" + in.Table(t) + in.Lines(calls...)
}

// brief shortens text to 100 characters.
func brief(text string) string { return wording.Cut(cmp.Or(text, "none"), 100) }

// String returns the proof on one line.
func (c callProof) String() string {
	text := fmt.Sprintf("%s at %s: %d checks", c.Container, c.At.Format(time.RFC3339), c.Checks)
	switch {
	case c.Failed != "":
		return text + ", " + c.Failed
	case c.Weak != "":
		return text + " passed, weak network: " + c.Weak
	}
	return text + " passed"
}

// onlooker is an agent that does nothing: the container is only started for the proof before it.
var onlooker = agent.Program("none", agent.Command{Argv: []string{helper.Bin + "/" + helper.HelperProbe, "look", "{}"}})

// probeRole proves the boundary of a container like the role's, with the role's image and the project's
// limits.
func probeRole(
	ctx context.Context, env *environment.Environment, s *project.Project, role roles.Role,
) (p roleProof, err error) {
	p.Role = role.Name
	if p.Image, err = imageFor(ctx, s, env.Images, role); errors.Is(err, sandbox.ErrNoImage) {
		p.Image, err = env.Containers.Helper, nil // it contains abl's programs too
	}
	if err != nil {
		return p, err
	}
	job := call.Job{
		Role:   role,
		Agent:  onlooker,
		Image:  p.Image,
		Place:  role.Name,
		Call:   agent.Call{ID: "look-" + role.Name, Role: role.Name},
		Prompt: func() (string, string, error) { return "", "", nil },
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

// inTrial calls do in an environment with a temporary project, and removes both. Relative paths in the
// settings start at root, or at the temporary project if root is "". weak allows unproven networks.
func inTrial(
	ctx context.Context, in *cli.Input, conf *config.Loaded, root string, weak bool,
	do func(*environment.Environment) error,
) (err error) {
	dir, err := os.MkdirTemp("", "abl-doctor-")
	if err != nil {
		return fmt.Errorf("cannot create a folder for a test container: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	real, err := state.Real(dir)
	if err != nil {
		return err
	}
	p := state.NewProject(real, "src", ".abl/tests")
	env, err := environment.Open(ctx, environment.Options{
		Project:   p,
		ID:        "look-" + strings.ToLower(rand.Text()[:10]),
		Conf:      conf,
		Root:      cmp.Or(root, p.Root),
		Weak:      weak,
		Safe:      in.Safe,
		CACert:    in.String("ca-cert"),
		Offline:   true, // doctor builds no image
		Note:      func(string) {},
		NoteImage: func(string) {},
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
	env.Containers.Trial = len(environment.Services(conf)) > 0
	return do(env)
}

// imageFor returns the role's image, outside a project the image of the tools.
func imageFor(ctx context.Context, s *project.Project, m *images.Maker, role roles.Role) (string, error) {
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
