package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"

	"abl/internal/sandbox"
)

// labelMade has a random value for each call of Create. If the response was lost, Create recognizes
// its container by the value.
const labelMade = "abl.made"

// Create creates a container without starting it and returns its id. It returns sandbox.ErrExists
// if the name is in use and sandbox.ErrNoImage if the engine does not have the image.
func (e *Engine) Create(ctx context.Context, desired sandbox.ContainerConfig) (id string, err error) {
	defer func() { err = about(err, "cannot create container %q", desired.Name) }()
	if err := check(desired); err != nil {
		return "", err
	}
	info, err := e.Info(ctx)
	if err != nil {
		return "", err
	}
	if err := e.inspectReach(ctx, desired); err != nil {
		return "", err
	}
	if err := e.inspectVolumes(ctx, desired); err != nil {
		return "", err
	}
	desired.Labels = maps.Clone(desired.Labels)
	desired.Labels[labelMade] = rand.Text()
	if id, err = e.make(ctx, desired, info); err != nil {
		return "", err
	}
	if err := e.connectRest(ctx, id, desired.Reach.Endpoints); err != nil {
		return "", errors.Join(err, e.Remove(context.WithoutCancel(ctx), id))
	}
	return id, nil
}

// inspectReach checks that each network belongs to the project or was named by the user, and that
// outside names resolve only with an egress.
func (e *Engine) inspectReach(ctx context.Context, desired sandbox.ContainerConfig) error {
	egress := false
	for _, end := range desired.Reach.Endpoints {
		n, err := e.networkNamed(ctx, end.Network)
		if err != nil {
			return err
		}
		if !end.Foreign && n.Labels[sandbox.LabelProject] != desired.Labels[sandbox.LabelProject] {
			return fmt.Errorf("network %q does not belong to this project", end.Network)
		}
		if n.Driver == network.NetworkHost || n.Driver == "null" {
			return fmt.Errorf("network %q is not a network between containers", end.Network)
		}
		egress = egress || !n.Internal
	}
	if desired.Reach.Resolve && !egress {
		return errors.New("cannot resolve outside names without an egress")
	}
	return nil
}

// inspectVolumes checks that the volumes exist and belong to the project. The engine would create a
// missing one without labels, which no sweep would remove.
func (e *Engine) inspectVolumes(ctx context.Context, desired sandbox.ContainerConfig) error {
	for _, m := range desired.Mounts {
		if !m.What.IsVolume() {
			continue
		}
		v, err := e.inspectVolume(ctx, m.Source)
		if err != nil {
			return err
		}
		if v.Labels[sandbox.LabelProject] != desired.Labels[sandbox.LabelProject] {
			return fmt.Errorf("volume %q does not belong to this project", m.Source)
		}
	}
	return nil
}

// make creates the container. After a lost response it checks whether the engine did so.
func (e *Engine) make(ctx context.Context, desired sandbox.ContainerConfig, info sandbox.Info) (id string, err error) {
	config, host, net := profile(desired, info)
	err = e.change(ctx, long, func(ctx context.Context) error {
		made, err := e.api.ContainerCreate(ctx, &config, &host, &net, nil, desired.Name)
		if errdefs.IsConflict(err) {
			return fmt.Errorf("%w: %w", sandbox.ErrExists, err)
		}
		id = made.ID
		return err
	}, func(ctx context.Context) (bool, error) {
		there, err := e.inspectContainer(ctx, desired.Name)
		if errors.Is(err, sandbox.ErrNotFound) {
			return false, nil
		}
		id = there.ID
		return err == nil && there.Config.Labels[labelMade] == desired.Labels[labelMade], err
	})
	if errdefs.IsNotFound(err) && strings.Contains(strings.ToLower(err.Error()), "no such image") {
		return "", fmt.Errorf("%w: %q", sandbox.ErrNoImage, desired.Image)
	}
	return id, err
}

// connectRest connects a container to all its networks except the first, which its creation
// includes.
func (e *Engine) connectRest(ctx context.Context, id string, all []sandbox.Endpoint) error {
	for _, end := range all[min(1, len(all)):] {
		err := e.change(ctx, short, func(ctx context.Context) error {
			return e.api.NetworkConnect(ctx, end.Network, id, &network.EndpointSettings{Aliases: end.Aliases})
		}, func(ctx context.Context) (bool, error) {
			inspected, err := e.inspectContainer(ctx, id)
			if err != nil {
				return false, err
			}
			_, on := inspected.NetworkSettings.Networks[end.Network]
			return on, nil
		})
		if err != nil {
			return fmt.Errorf("cannot connect it to network %q: %w", end.Network, err)
		}
	}
	return nil
}

// about adds the failed operation and its object to an error.
func about(err error, act string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(act+": %w", append(args, err)...)
}

// check rejects an invalid specification. It repeats the checks of callers, because it is the last
// one before the engine.
func check(desired sandbox.ContainerConfig) error {
	for _, c := range []struct {
		is  bool
		why string
	}{
		{desired.Name == "" || desired.Image == "", "name or image is missing"},
		{len(desired.Argv) == 0 && !desired.Loose, "command is missing"},
		{desired.Labels[sandbox.LabelProject] == "" || desired.Labels[sandbox.LabelKind] == "",
			"label " + sandbox.LabelProject + " or " + sandbox.LabelKind + " is missing"},
		{desired.Reach.Join != "" && len(desired.Reach.Endpoints) > 0, "it cannot both join a holder and have endpoints"},
		{desired.Reach.Host && (desired.Loose || desired.Seals || desired.Reach.Join != "" || len(desired.Reach.Endpoints)+len(desired.Mounts) > 0),
			"a container with the network of the engine's machine may have no mounts, other networks and privileges"},
		{desired.Seals && (desired.Loose || desired.Reach.Join != "" || !onlyProxySockets(desired.Mounts)),
			"a holder needs its own network and may mount only proxy sockets"},
		{!mayRun(desired), fmt.Sprintf("invalid user %q, want numeric \"uid:gid\" with a uid other than 0", desired.User)},
	} {
		if c.is {
			return errors.New(c.why)
		}
	}
	return checkPlaces(desired)
}

// mayRun reports whether the user is allowed. uid 0 is not, because its files in a bind mount
// belong to root on the host. A service may use its image's user.
func mayRun(desired sandbox.ContainerConfig) bool {
	var uid, gid uint32
	_, _ = fmt.Sscanf(desired.User, "%d:%d", &uid, &gid)
	return desired.User == "" && desired.Loose || uid > 0 && desired.User == fmt.Sprintf("%d:%d", uid, gid)
}

// onlyProxySockets reports whether all mounts are proxy sockets.
func onlyProxySockets(all []sandbox.Mount) bool {
	return !slices.ContainsFunc(all, func(m sandbox.Mount) bool { return m.What != sandbox.Sockets })
}

// checkPlaces checks the paths of mounts.
func checkPlaces(desired sandbox.ContainerConfig) error {
	for _, m := range desired.Mounts {
		if !clean(m.Target) || m.Source == "" || !m.What.IsVolume() && !clean(m.Source) {
			return fmt.Errorf("mount of %q at %q: want absolute paths without dots", m.Source, m.Target)
		}
	}
	return nil
}

func clean(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }
