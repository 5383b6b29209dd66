package ground

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"abl/cmd/internal/cli"
	"abl/cmd/internal/exit"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/roles"
	"abl/roles/boundary"
)

// WeakFlag lets a person go on with an engine whose networks are not proven.
const WeakFlag = "allow-weak-network"

// NetworkFlags are the flags of everything that starts containers of a role.
func NetworkFlags() []cli.Flag {
	return []cli.Flag{{Name: WeakFlag, Usage: "go on although the engine's networks are not proven to keep containers from this machine and the world; every report then says so"}}
}

// ProbeNetworks is the proof of the engine's kind of network: the one that is
// known, or one that is made now, when there is none or it is asked for afresh.
func ProbeNetworks(ctx context.Context, in *cli.Input, eng *docker.Engine, info sandbox.Info, pool string, fresh bool) (boundary.Result, error) {
	return boundary.UserCache().Network(ctx, fresh, info, func(ctx context.Context, id string) (boundary.Result, error) {
		image, err := Maker(eng, func(string) {}, in).Holder(ctx)
		if err != nil {
			return boundary.Result{}, err
		}
		p := boundary.Prober{Engine: eng, Image: image, Pool: pool, ID: id, Away: !info.Local}
		return p.Probe(ctx, info, ways(info)...)
	})
}

// ways are the ways to keep networks apart, the one that the engine's version is
// known to have first.
func ways(info sandbox.Info) []sandbox.Apart {
	if docker.WayOf(info.API) == sandbox.NoAddress {
		return []sandbox.Apart{sandbox.NoAddress, sandbox.IsolatedGateway}
	}
	return []sandbox.Apart{sandbox.IsolatedGateway, sandbox.NoAddress}
}

// Networks learns how the engine keeps networks apart. One that is not proven to
// is refused unless the person allows it.
func Networks(ctx context.Context, in *cli.Input, eng *docker.Engine, info sandbox.Info, pool string) (roles.Net, error) {
	r, err := ProbeNetworks(ctx, in, eng, info, pool, false)
	if err != nil && !errors.Is(err, sandbox.ErrUnproven) {
		return roles.Net{}, err
	}
	return JudgeNetworks(info, r, err, in.Bool(WeakFlag))
}

// JudgeNetworks decides whether an engine's networks will do. why is that they
// could not be probed, nil when they were.
func JudgeNetworks(info sandbox.Info, r boundary.Result, why error, allowed bool) (roles.Net, error) {
	net := roles.Net{Apart: r.Apart, Away: !info.Local}
	if why == nil {
		why = r.Err()
	}
	switch {
	case why == nil:
		return net, nil
	case allowed:
		net.Weak = Reason(why)
		return net, nil
	}
	return net, exit.With(exit.Boundary, fmt.Errorf("cannot keep the roles' containers from this machine: networks of the engine at %s: %w", info.Host, why),
		"abl doctor --boundary shows what was found; with --"+WeakFlag+" abl goes on, and every report says so")
}

// Reason is what is not proven, in one sentence.
func Reason(err error) string {
	return strings.TrimPrefix(err.Error(), sandbox.ErrUnproven.Error()+": ")
}
