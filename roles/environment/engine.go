package environment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"abl/images"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/roles/boundary"
)

// Engine is the interface to a container engine. Connect chooses the implementation.
type Engine interface {
	sandbox.Engine
	images.Engine
	Objects(ctx context.Context, labels map[string]string) ([]sandbox.Object, error)
	Attach(ctx context.Context, name string, term sandbox.Terminal) (exit int, err error)
	Guard(check func() error)
	Killer(image func(context.Context) (string, error), report func(string))
	Patient(ends context.Context, span time.Duration, report func(away time.Duration, back bool))
	Close() error
}

// Connect connects to the engine. It refuses an engine that cannot isolate containers as needed.
func Connect(ctx context.Context) (Engine, sandbox.Info, error) {
	eng, err := docker.Connect(ctx, os.Getenv)
	if err != nil {
		return nil, sandbox.Info{}, err
	}
	info, err := eng.Info(ctx)
	if err != nil {
		return nil, info, err
	}
	if info.Podman {
		return nil, info, fmt.Errorf("%w: Podman %s is not supported: its Docker API cannot apply abl's seccomp profile; "+
			"use Docker", sandbox.ErrWeak, info.Version)
	}
	if info.Rootless || info.UserNS {
		return nil, info, fmt.Errorf("%w: it maps user ids (rootless or userns-remap), "+
			"so you would not own the files that a role writes", sandbox.ErrWeak)
	}
	return eng, info, nil
}

// longestRestart is how long abl waits for an engine that stopped responding.
const longestRestart = 10 * time.Minute

// bePatient makes requests to an engine wait until it responds again, at most outage or
// longestRestart. The end of ctx ends the wait.
func bePatient(ctx context.Context, eng Engine, outage time.Duration, note func(string)) {
	span := min(outage, longestRestart)
	eng.Patient(ctx, span, func(away time.Duration, back bool) {
		text := fmt.Sprintf("the engine does not respond; abl waits for it, up to %s", span)
		if back {
			text = fmt.Sprintf("the engine responds again, after %s", away.Round(100*time.Millisecond))
		}
		note(text)
	})
}

// UseKiller makes abl kill the processes of containers that eng cannot stop. It calls report.
func UseKiller(eng Engine, report func(string)) {
	eng.Killer(Maker(eng, func(string) {}, "", true).Holder, report)
}

// ProveNetworks proves the engine's networks with temporary containers.
func (o Options) ProveNetworks(ctx context.Context, eng Engine) (sandbox.Proof, error) {
	image, err := Maker(eng, func(string) {}, o.CACert, o.Offline).Holder(ctx)
	if err != nil {
		return nil, err
	}
	id := "probe-" + strings.ToLower(rand.Text()[:12])
	return boundary.Prober{Engine: eng, Image: image, Pool: o.Conf.Network.Pool, ID: id}.Try(ctx)
}

// ErrElsewhere means that an engine does not see the project's files.
var ErrElsewhere = errors.New("the engine does not see the project's files where abl sees them")

// sees checks that the engine has a directory under the same path as abl. It creates a file with a
// random name and asks the engine for a container that mounts the file, which fails if the engine
// does not find it. The check is for abl in a container that has the engine's socket, and for a
// remote engine that shares the files.
func sees(ctx context.Context, containers *boundary.Containers, dir string) error {
	name := filepath.Join(dir, "nonce.tmp-"+rand.Text())
	if err := hostfs.Put(name, nil, 0o644); err != nil {
		return fmt.Errorf("cannot check whether the engine sees the project: %w", err)
	}
	defer os.Remove(name)
	container := containers.Tool("sees", containers.Labels("helper", "", "", time.Now().Add(time.Minute)), "none")
	container.Mounts = []sandbox.Mount{{What: sandbox.CallIn, Source: name, Target: helper.In, ReadOnly: true}}
	c := sandbox.Container{Engine: containers.Engine, ContainerConfig: container}
	if err := c.Remove(ctx); err != nil {
		return err
	}
	err := c.Create(ctx)
	switch {
	case err == nil:
		return c.Remove(context.WithoutCancel(ctx))
	case errors.Is(err, sandbox.ErrUnreachable), errors.Is(err, sandbox.ErrNoImage), ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("%w: %q (%w)", ErrElsewhere, dir, err)
}
