package docker

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/network"

	"abl/internal/sandbox"
)

// found is all that an engine says of a box, of what it stands on and of what
// it is connected to.
type found struct {
	info   sandbox.Info
	box    container.InspectResponse
	image  image.InspectResponse
	holder *container.InspectResponse // of a joined box
	nets   map[string]network.Inspect // of the box, or of its holder, by name
}

// Prove compares a box that was created with what was intended. It returns the
// checks, held or not; the error is that the engine could not be asked.
func (e *Engine) Prove(ctx context.Context, box sandbox.Box) (proof sandbox.Proof, err error) {
	defer func() { err = about(err, "cannot look whether box %q is as intended", box.Name) }()
	info, err := e.Info(ctx)
	if err != nil {
		return nil, err
	}
	f := found{info: info}
	// Side by side: this stands between a call and its start.
	var all sync.WaitGroup
	var berr, ierr, nerr error
	all.Go(func() { f.box, berr = e.inspectBox(ctx, box.Name) })
	all.Go(func() { f.image, ierr = e.inspectImage(ctx, box.Image) })
	all.Go(func() { f.holder, f.nets, nerr = e.inspectAround(ctx, box) })
	all.Wait()
	if err := errors.Join(berr, ierr, nerr); err != nil {
		return nil, err
	}
	return compare(box, f), nil
}

// inspectAround looks at the holder whose reach a joined box has, and at the
// networks that the box should be on or, as far as it is told, its holder is on.
func (e *Engine) inspectAround(ctx context.Context, box sandbox.Box) (*container.InspectResponse, map[string]network.Inspect, error) {
	names := map[string]bool{}
	for _, end := range box.Reach.Endpoints {
		names[end.Network] = true
	}
	var holder *container.InspectResponse
	if box.Reach.Join != "" {
		h, err := e.inspectBox(ctx, box.Reach.Join)
		if err != nil {
			return nil, nil, about(err, "holder %q", box.Reach.Join)
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
		n, err := e.inspectNetwork(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		nets[name] = n
	}
	return holder, nets, nil
}

// Env is the environment that a program in a box would find by the engine's
// record, as name and value: the box's own over its image's.
func (e *Engine) Env(ctx context.Context, name string) (map[string]string, error) {
	box, err := e.inspectBox(ctx, name)
	if err != nil {
		return nil, about(err, "cannot look at box %q", name)
	}
	return pairs(box.Config.Env), nil
}

// Addresses are those of a running box on its own networks, without their ranges.
func (e *Engine) Addresses(ctx context.Context, name string) (all []string, err error) {
	box, err := e.inspectBox(ctx, name)
	if err != nil {
		return nil, about(err, "cannot look at box %q", name)
	}
	for _, end := range box.NetworkSettings.Networks {
		all = append(all, end.IPAddress, end.GlobalIPv6Address)
	}
	slices.Sort(all)
	return slices.DeleteFunc(all, func(at string) bool { return at == "" }), nil
}

// Ranges are the address ranges of those networks that are there, as CIDR.
func (e *stores) Ranges(ctx context.Context, networks []string) (all []string, err error) {
	for _, name := range networks {
		n, err := e.inspectNetwork(ctx, name)
		if errdefs.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, r := range n.IPAM.Config {
			all = append(all, r.Subnet)
		}
	}
	return all, nil
}

// pairs splits KEY=value lines; a later line wins, as it does for the engine.
func pairs(env []string) map[string]string {
	all := map[string]string{}
	for _, line := range env {
		key, value, _ := strings.Cut(line, "=")
		all[key] = value
	}
	return all
}

// wantSecurity are the security options that a box should have.
func wantSecurity(box sandbox.Box, f found) string {
	options := "no-new-privileges seccomp=abl's"
	if f.info.SELinux && !box.Loose {
		options = "label=disable " + options
	}
	return options
}
