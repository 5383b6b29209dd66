package environment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"abl/images"
	"abl/internal/helper"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/roles"
	"abl/roles/boundary"
)

// Engine is all that abl asks of a container engine: a package that implements it can
// stand in Docker's place, and is chosen in Connect.
type Engine interface {
	boundary.Engine
	images.Engine
	ImageID(ctx context.Context, ref string) (id string, ok bool, err error)
	Objects(ctx context.Context, labels map[string]string) ([]sandbox.Object, error)
	Attach(ctx context.Context, name string, term sandbox.Terminal) (exit int, err error)
	Guard(check func() error)
	Killer(image func(context.Context) (string, error), report func(string))
	Patient(ends context.Context, span time.Duration, tell func(away time.Duration, back bool))
	Close() error
}

// Connect reaches the engine and refuses one that cannot keep the boundary.
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
		return nil, info, fmt.Errorf("%w: this is Podman %s, which is not supported: by its Docker socket no container can be given abl's list of system calls; use Docker's own engine", sandbox.ErrWeak, info.Version)
	}
	if info.Rootless || info.UserNS {
		return nil, info, fmt.Errorf("%w: it maps user ids (rootless or userns-remap), so files that a role writes would not be yours", sandbox.ErrWeak)
	}
	return eng, info, nil
}

// longestRestart is how long an engine that ran is waited for when it is gone.
const longestRestart = 10 * time.Minute

// bePatient has an engine that was there waited for from now on, no longer than an
// outage may last. A person who stops the run waits no longer.
func bePatient(ctx context.Context, eng Engine, outage time.Duration, note func(string)) {
	span := min(outage, longestRestart)
	eng.Patient(ctx, span, func(away time.Duration, back bool) {
		text := fmt.Sprintf("the engine does not answer; it is waited for, up to %s", span)
		if back {
			text = fmt.Sprintf("the engine answers again, after %s", away.Round(100*time.Millisecond))
		}
		note(text)
	})
}

// UseKiller makes abl kill the processes of containers that eng cannot stop, and report it.
func UseKiller(eng Engine, report func(string)) {
	eng.Killer(Maker(eng, func(string) {}, "", true).Holder, report)
}

// Networks learns how an engine keeps networks apart: from the proof that is known, unless a
// fresh one is wanted, or one that is made now. Networks that are not proven to be are refused
// unless the person allows it.
func (o Options) Networks(ctx context.Context, eng Engine, info sandbox.Info, fresh bool) (boundary.Result, roles.Net, error) {
	r, why := boundary.UserCache().Network(ctx, fresh, info, func(ctx context.Context, id string) (boundary.Result, error) {
		return o.probe(ctx, eng, info, id)
	})
	net := roles.Net{Apart: r.Apart, Away: !info.Near, Other: !info.Local}
	switch {
	case why != nil && !errors.Is(why, sandbox.ErrUnproven):
		return r, net, why
	case why != nil: // it could not be tried
		r.Proof = sandbox.Proof{{Name: "probe", Want: "possible", Got: reason(why)}}
	default:
		why = r.Err()
	}
	if why != nil && !o.Weak {
		return r, net, fmt.Errorf("%w: networks of the engine at %s: %w", ErrNetworks, info.Host, why)
	}
	if why != nil {
		net.Weak = reason(why)
	}
	return r, net, nil
}

// probe makes the proof with boxes of this id.
func (o Options) probe(ctx context.Context, eng Engine, info sandbox.Info, id string) (boundary.Result, error) {
	image, err := Maker(eng, func(string) {}, o.CACert, o.Offline).Holder(ctx)
	if err != nil {
		return boundary.Result{}, err
	}
	ways := []sandbox.Apart{sandbox.IsolatedGateway, sandbox.NoAddress} // the one that the version is known to have first
	if info.Apart == sandbox.NoAddress {
		slices.Reverse(ways)
	}
	p := boundary.Prober{Engine: eng, Image: image, Pool: o.Conf.Network.Pool, ID: id, Away: !info.Near, Virtual: !info.Local}
	return p.Probe(ctx, ways...)
}

// reason is what is not proven, in one sentence.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), sandbox.ErrUnproven.Error()+": ")
}

// ErrElsewhere means that an engine does not see the project's files.
var ErrElsewhere = errors.New("the engine does not see the project's files where abl sees them")

// sees proves that an engine sees a directory under the path at which abl
// sees it: it is asked for a box that mounts a file there whose name nobody can
// have guessed. An engine refuses that for a file that it does not find. abl in a
// container that was handed the engine's socket needs this, or one beside a remote
// engine that shares its files.
func sees(ctx context.Context, boxes *roles.Boxes, dir string) error {
	name := filepath.Join(dir, "nonce.tmp-"+rand.Text())
	if err := hostfs.Put(name, nil, 0o644); err != nil {
		return fmt.Errorf("cannot try whether the engine sees the project: %w", err)
	}
	defer os.Remove(name)
	box := boxes.Tool("sees", boxes.Labels("helper", "", "", time.Now().Add(time.Minute)), "none")
	box.Mounts = []sandbox.Mount{{What: sandbox.CallIn, Source: name, Target: helper.In, ReadOnly: true}}
	if err := boxes.Engine.Remove(ctx, box.Name); err != nil {
		return err
	}
	_, err := boxes.Engine.Create(ctx, box)
	switch {
	case err == nil:
		return boxes.Engine.Remove(context.WithoutCancel(ctx), box.Name)
	case errors.Is(err, sandbox.ErrUnreachable), errors.Is(err, sandbox.ErrNoImage), ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("%w: %q (%w)", ErrElsewhere, dir, err)
}
