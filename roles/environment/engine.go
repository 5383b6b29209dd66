package environment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"abl/images"
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
	Attach(ctx context.Context, name string, term sandbox.Terminal) (exit int, err error)
	Guard(check func() error)
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

// Prober proves that an engine keeps networks apart from its machine and the world.
type Prober struct {
	Engine  Engine
	Info    sandbox.Info
	Pool    string // CIDR out of which networks are taken
	CACert  string
	Offline bool
	Fresh   bool // a proof that is known already does not count
}

// Networks learns how the engine keeps networks apart: from the proof that is known,
// or one that is made now. Networks that are not proven to be are refused unless the
// person allows it.
func (p Prober) Networks(ctx context.Context, allowed bool) (boundary.Result, roles.Net, error) {
	r, why := boundary.UserCache().Network(ctx, p.Fresh, p.Info, p.probe)
	net := roles.Net{Apart: r.Apart, Away: !p.Info.Near, Other: !p.Info.Local}
	switch {
	case why != nil && !errors.Is(why, sandbox.ErrUnproven):
		return r, net, why
	case why != nil: // it could not be tried
		r.Proof = sandbox.Proof{{Name: "probe", Want: "possible", Got: reason(why)}}
	default:
		why = r.Err()
	}
	if why != nil && !allowed {
		return r, net, fmt.Errorf("%w: networks of the engine at %s: %w", ErrNetworks, p.Info.Host, why)
	}
	if why != nil {
		net.Weak = reason(why)
	}
	return r, net, nil
}

// probe makes the proof with boxes of this id.
func (p Prober) probe(ctx context.Context, id string) (boundary.Result, error) {
	image, err := Maker(p.Engine, func(string) {}, p.CACert, p.Offline).Holder(ctx)
	if err != nil {
		return boundary.Result{}, err
	}
	ways := []sandbox.Apart{sandbox.IsolatedGateway, sandbox.NoAddress} // the one that the version is known to have first
	if p.Info.Apart == sandbox.NoAddress {
		slices.Reverse(ways)
	}
	probe := boundary.Prober{Engine: p.Engine, Image: image, Pool: p.Pool, ID: id, Away: !p.Info.Near, Virtual: !p.Info.Local}
	return probe.Probe(ctx, ways...)
}

// reason is what is not proven, in one sentence.
func reason(err error) string {
	return strings.TrimPrefix(err.Error(), sandbox.ErrUnproven.Error()+": ")
}
