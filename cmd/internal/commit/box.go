package commit

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/images"
	"abl/internal/cacerts"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/gateway"
	"abl/roles"
	"abl/roles/agent"
	"abl/roles/registry"
)

func boxFlags() []cli.Flag { return slices.Concat(ground.NetworkFlags(), ground.ImageFlags()) }

// shown ends the last line of a build's output before somebody else speaks.
type shown struct {
	codecommit.Builder
	stream io.Closer
}

func (b shown) Build(ctx context.Context) (codecommit.Built, error) {
	built, err := b.Builder.Build(ctx)
	return built, errors.Join(settle(err), b.stream.Close())
}

// builder decides where the build runs.
func (s *session) builder(ctx context.Context, r *codecommit.Run, secrets codecommit.Secrets, limit time.Duration) (done func(), err error) {
	if note, _ := codecommit.Runnable(s.project.Root); note != "" {
		s.in.Warn("every build will be red: " + note)
	}
	stream := s.in.Outlet.Writer(s.in.Bare.Stderr, "build | ")
	if s.in.String("build-on") != "container" {
		s.in.Say("build.sh runs on this machine as you do; --build-on container keeps it in a box")
		r.Builder = shown{codecommit.Host{Root: s.project.Root, Stream: stream, Limit: limit, Secrets: secrets.All}, stream}
		return func() { stream.Close() }, nil
	}
	e := &environment{session: s}
	if err := e.open(ctx, limit); err != nil {
		return nil, settle(errors.Join(err, e.close(ctx)))
	}
	r.Builder = shown{&codecommit.Box{Root: s.project.Root, Builds: e.builds, Limit: limit, Stream: stream, Secrets: secrets.All}, stream}
	return func() {
		stream.Close()
		if err := e.close(ctx); err != nil {
			s.in.Warn(fmt.Sprintf("cannot tidy up (the next run will): %v", err))
		}
	}, nil
}

// settle gives an error of work on the engine its exit code: unless it is known
// better, the environment failed, which no model can mend.
func settle(err error) error {
	err = explained(err)
	var known *exit.Error
	if err == nil || errors.As(err, &known) || errors.Is(err, context.Canceled) {
		return err
	}
	return exit.With(exit.Environment, err, hint(err))
}

// environment is what builds in containers need for the length of a run.
type environment struct {
	*session
	conf   *config.Loaded
	engine *docker.Engine
	info   sandbox.Info
	builds *roles.Builds
}

// open reads the settings, reaches the engine, and makes what a build needs there.
func (e *environment) open(ctx context.Context, limit time.Duration) (err error) {
	if e.conf, err = config.Load(e.project.Root, os.LookupEnv, nil); err != nil {
		return err
	}
	for _, w := range e.conf.Warnings {
		if !slices.Contains(e.warned, w) {
			e.in.Warn(w)
		}
	}
	if e.engine, e.info, err = ground.Connect(ctx); err != nil {
		return err
	}
	if _, err = Sweep(ctx, e.engine, e.project.Root); err != nil {
		return err
	}
	maker := ground.MakerFor(e.engine, e.show().Say, e.in, e.project.Root, e.conf.Network)
	handed := e.project.Handed()
	e.builds = &roles.Builds{
		Engine: e.engine, Project: handed, ID: e.project.EngineID(), Root: os.Geteuid() == 0, Outlet: e.in.Outlet, Tree: e.copy,
		Box: ground.Limits(e.conf.Config), Argv: []string{"/bin/sh", "-c", "exec ./" + codecommit.Script},
	}
	for _, name := range []string{".git", ".env", codecommit.ConfigDir} {
		e.builds.Absent = append(e.builds.Absent, filepath.Join(e.project.Root, name))
	}
	e.builds.UID, e.builds.GID, _ = hostfs.RoleID(e.project.Root, os.Geteuid())
	if e.builds.Image, err = e.image(ctx, maker); err != nil {
		return err
	}
	holder, err := maker.Holder(ctx)
	if err == nil {
		err = os.MkdirAll(handed.Root, 0o755)
	}
	if err == nil {
		err = ground.Sees(ctx, e.engine, e.info, e.builds.ID, holder, handed.Root)
	}
	if err != nil {
		return err
	}
	e.builds.Site = &roles.Site{
		Engine: e.engine, ID: e.builds.ID, Image: holder, Pool: e.conf.Network.Pool, Egress: e.conf.Network.Egress,
		Gated: map[string]bool{roles.PlaceBuilder: true}, Life: max(24*time.Hour, limit+time.Hour),
	}
	e.builds.Net.Away = !e.info.Local
	if len(e.conf.Network.Allow) > 0 {
		return e.allow(ctx, maker)
	}
	e.in.Say("build.sh runs in a container, on a copy of the project and without a network")
	return ctx.Err()
}

// close takes everything down: containers, networks, volumes.
func (e *environment) close(ctx context.Context) error {
	if e.engine == nil {
		return nil
	}
	tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	_, err := Sweep(tidy, e.engine, e.project.Root)
	return errors.Join(err, e.engine.Close(), os.RemoveAll(e.project.Handed().Root))
}

// image makes the one that builds run in: abl's, or the project's own on top of it.
func (e *environment) image(ctx context.Context, maker *images.Maker) (string, error) {
	want := images.Want{Agent: images.Tools}
	own := filepath.Join(e.project.Root, codecommit.Dockerfile)
	if _, err := os.Lstat(own); err == nil && e.project.Name == codecommit.V2 {
		// No link may lead there: all but agent-config is the model's to write.
		if real, err := filepath.EvalSymlinks(own); err == nil && real != own {
			return "", exit.With(exit.Usage, fmt.Errorf("cannot build an image from %q: a link leads there", codecommit.Dockerfile), "put the real folder there")
		}
		if want.Dockerfile, err = ground.Dockerfile(e.project.Root, codecommit.Dockerfile); err != nil {
			return "", err
		}
	}
	image, err := maker.Ensure(ctx, want)
	if err != nil {
		err = fmt.Errorf("cannot make the image for the build: %w", err)
	}
	return image, err
}

// allow lets the build's tools through to the hosts of network.allow.
func (e *environment) allow(ctx context.Context, maker *images.Maker) (err error) {
	b := e.builds
	if b.Net, err = ground.Networks(ctx, e.in, e.engine, e.info, e.conf.Network.Pool); err != nil {
		return err
	}
	if b.Net.Weak != "" {
		e.in.Warn("weak network, as --" + ground.WeakFlag + " allows: " + b.Net.Weak)
	}
	b.Site.Net = b.Net
	gate := &ground.Gate{
		Engine: e.engine, Project: b.Project, Site: b.Site, Place: roles.PlaceBuilder, Role: "build",
		Vars: agent.Provider{}, Budget: func(string) (gateway.Budget, error) { return gateway.Budget{}, nil }, Outlet: e.in.Outlet,
	}
	if gate.Image, err = maker.Gateway(ctx); err != nil {
		return fmt.Errorf("cannot make the gateway's image: %w", err)
	}
	asker := registry.Asker{
		Engine: e.engine, Image: b.Image, User: fmt.Sprintf("%d:%d", b.UID, b.GID),
		Name:   func(tool string) string { return roles.BoxName(b.ID, "ask-"+tool) },
		Labels: map[string]string{sandbox.LabelProject: b.ID, sandbox.LabelKind: "helper", sandbox.LabelRole: gate.Role},
	}
	trusted := cacerts.Finder{Env: os.Getenv, Extra: cmp.Or(e.in.String("ca-cert"), ground.Path(e.project.Root, e.conf.Network.CACert))}
	if err := gate.Trust(trusted); err != nil {
		return err
	}
	egress, files, err := gate.Fetch(ctx, asker, e.conf.Network.Allow, trusted)
	if err != nil {
		return err
	}
	for _, note := range egress.Notes {
		e.in.Say("%s", note)
	}
	b.Gate, b.Files = gate, files
	e.in.Say("build.sh runs in a container, on a copy of the project; it reaches %s and nothing else", strings.Join(egress.Hosts, ", "))
	return nil
}

// copy writes the project as a tar stream for the box: all of it but what is nobody's
// business there, and as the property of the box's user.
func (e *environment) copy(to io.Writer, as string) error {
	from, whole := io.Pipe()
	go func() { whole.CloseWithError(hostfs.Tar(whole, as, e.project.Root, ".git", codecommit.ConfigDir)) }()
	defer from.Close()
	in, out := tar.NewReader(from), tar.NewWriter(to)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return out.Close()
		}
		if err != nil {
			return err
		}
		if e.project.Withheld(strings.TrimSuffix(strings.TrimPrefix(h.Name, as+"/"), "/")) {
			continue
		}
		h.Uid, h.Gid = e.builds.UID, e.builds.GID
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(out, in); err != nil {
			return err
		}
	}
}
