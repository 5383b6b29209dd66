package commit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/cmd/internal/ground"
	"abl/images"
	"abl/internal/config"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/orchestrator/codecommit"
	"abl/orchestrator/codecommit/build"
	"abl/roles"
)

func boxFlags() []cli.Flag { return slices.Concat(ground.NetworkFlags(), ground.ImageFlags()) }

// yard is what builds in containers stand on for the length of a run.
type yard struct {
	*session
	conf   *config.Loaded
	engine *docker.Engine
	info   sandbox.Info
	maker  *images.Maker
	holder string // image
	builds *roles.Builds
}

// openYard reads the settings, reaches the engine, and makes what a build needs
// there. What it has made so far is taken down when it fails.
func (s *session) openYard(ctx context.Context, limit time.Duration) (y *yard, err error) {
	y = &yard{session: s}
	if y.conf, err = config.Load(s.root, os.LookupEnv, nil); err != nil {
		return nil, err
	}
	for _, w := range y.conf.Warnings {
		if !slices.Contains(s.warned, w) {
			s.in.Warn(w)
		}
	}
	if y.engine, y.info, err = ground.Connect(ctx); err != nil {
		return nil, err
	}
	for _, do := range []func(context.Context) error{y.sweep, y.images, y.sees, y.open} {
		if err = do(ctx); err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(err, y.close(ctx))
		}
	}
	y.builds.Site.Life = max(y.builds.Site.Life, limit+time.Hour)
	return y, nil
}

// sweep removes what a run that was killed left on the engine.
func (y *yard) sweep(ctx context.Context) error {
	_, err := Sweep(ctx, y.engine, y.root)
	return err
}

// close takes everything down: containers, networks, volumes.
func (y *yard) close(ctx context.Context) error {
	tidy, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	return errors.Join(y.sweep(tidy), y.engine.Close(), os.RemoveAll(y.handed().Root))
}

func (y *yard) images(ctx context.Context) (err error) {
	y.maker = ground.MakerFor(y.engine, y.say, y.in, y.root, y.conf.Network)
	want := images.Want{Agent: images.Tools}
	if own := filepath.Join(y.root, dockerfile); y.profile.Name == codecommit.V2 && exists(own) {
		if want.Dockerfile, err = ownDockerfile(y.root); err != nil {
			return err
		}
	}
	y.builds = &roles.Builds{
		Engine: y.engine, Project: y.handed(), ID: engineID(y.root), Root: os.Geteuid() == 0, Outlet: y.in.Outlet, Tree: y.copy,
		Box: ground.Limits(y.conf.Config), Argv: []string{"/bin/sh", "-c", "exec ./" + build.Script},
	}
	for _, name := range []string{".git", ".env", codecommit.ConfigDir} {
		y.builds.Absent = append(y.builds.Absent, filepath.Join(y.root, name))
	}
	y.builds.UID, y.builds.GID, _ = hostfs.RoleID(y.root, os.Geteuid())
	if y.builds.Image, err = y.maker.Ensure(ctx, want); err != nil {
		return fmt.Errorf("cannot make the image for the build: %w", err)
	}
	y.holder, err = y.maker.Holder(ctx)
	return err
}

// ownDockerfile is the project's, which no link may lead to: all but agent-config is
// the model's to write.
func ownDockerfile(root string) (string, error) {
	real, err := filepath.EvalSymlinks(filepath.Join(root, dockerfile))
	if at, rerr := filepath.EvalSymlinks(root); err == nil && rerr == nil && real != filepath.Join(at, dockerfile) {
		return "", exit.With(exit.Usage, fmt.Errorf("cannot build an image from %q: a link leads there", dockerfile), "put the real folder there")
	}
	return ground.Dockerfile(root, dockerfile)
}

// sees makes sure that an engine that may have other files sees the project's.
func (y *yard) sees(ctx context.Context) error {
	root := y.handed().Root
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	return ground.Sees(ctx, y.engine, y.info, engineID(y.root), y.holder, root)
}
