package docker

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"

	"abl/internal/sandbox"
)

// found is the engine's description of a container, its image and its networks.
type found struct {
	info      sandbox.Info
	container container.InspectResponse
	image     image.InspectResponse
	holder    *container.InspectResponse // nil without Join
	nets      map[string]network.Inspect // networks of the container, or of its holder, by name
}

// Prove compares a created container with its specification and returns all checks. It fails if the
// engine does not respond.
func (e *Engine) Prove(ctx context.Context, desired sandbox.ContainerConfig) (proof sandbox.Proof, err error) {
	defer func() { err = about(err, "cannot verify container %q", desired.Name) }()
	info, err := e.Info(ctx)
	if err != nil {
		return nil, err
	}
	f := found{info: info}
	// In parallel, because each call waits for this.
	var all sync.WaitGroup
	var berr, ierr, nerr error
	all.Go(func() { f.container, berr = e.inspectContainer(ctx, desired.Name) })
	all.Go(func() { f.image, ierr = e.inspectImage(ctx, desired.Image) })
	all.Go(func() { f.holder, f.nets, nerr = e.inspectAround(ctx, desired) })
	all.Wait()
	if err := errors.Join(berr, ierr, nerr); err != nil {
		return nil, err
	}
	return compare(desired, f), nil
}

// inspectAround inspects the holder of a joined container and the networks of both.
func (e *Engine) inspectAround(ctx context.Context,
	desired sandbox.ContainerConfig) (*container.InspectResponse, map[string]network.Inspect, error) {
	names := map[string]bool{}
	for _, end := range desired.Reach.Endpoints {
		names[end.Network] = true
	}
	var holder *container.InspectResponse
	if desired.Reach.Join != "" {
		h, err := e.inspectContainer(ctx, desired.Reach.Join)
		if err != nil {
			return nil, nil, about(err, "holder %q", desired.Reach.Join)
		}
		holder = &h
		for name := range h.NetworkSettings.Networks {
			names[name] = true
		}
	}
	nets := map[string]network.Inspect{}
	for name := range names {
		if name == network.NetworkNone {
			continue
		}
		n, err := e.networkNamed(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		nets[name] = n
	}
	return holder, nets, nil
}

// Subnets returns the subnets of the existing networks.
func (e *stores) Subnets(ctx context.Context, networks []string) (all []sandbox.Subnet, err error) {
	for _, name := range networks {
		n, err := e.networkNamed(ctx, name)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, c := range n.IPAM.Config {
			subnet := sandbox.Subnet{Range: c.Subnet}
			if !n.Internal {
				subnet.Host = bridgeAddress(c)
			}
			all = append(all, subnet)
		}
	}
	return all, nil
}

// bridgeAddress returns the address of the engine's machine on a network.
func bridgeAddress(c network.IPAMConfig) netip.Addr {
	if addr, err := netip.ParseAddr(c.Gateway); err == nil {
		return addr
	}
	if p, err := netip.ParsePrefix(c.Subnet); err == nil && p.Addr().Is4() {
		return p.Masked().Addr().Next() // the engine's default
	}
	return netip.Addr{}
}

// pairs splits KEY=value lines. As in the engine, a later line overrides an earlier one.
func pairs(env []string) map[string]string {
	all := map[string]string{}
	for _, line := range env {
		key, value, _ := strings.Cut(line, "=")
		all[key] = value
	}
	return all
}

// wantSecurity returns the expected security options.
func wantSecurity(desired sandbox.ContainerConfig, f found) string {
	options := "no-new-privileges seccomp=abl"
	if f.info.SELinux && !desired.Loose {
		options = "label=disable " + options
	}
	return options
}
