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
func (e *Engine) Create(ctx context.Context, box sandbox.Box) (id string, err error) {
	defer func() { err = about(err, "cannot create container %q", box.Name) }()
	if err := check(box); err != nil {
		return "", err
	}
	info, err := e.Info(ctx)
	if err != nil {
		return "", err
	}
	if err := e.inspectReach(ctx, box); err != nil {
		return "", err
	}
	if err := e.inspectVolumes(ctx, box); err != nil {
		return "", err
	}
	box.Labels = maps.Clone(box.Labels)
	box.Labels[labelMade] = rand.Text()
	if id, err = e.make(ctx, box, info); err != nil {
		return "", err
	}
	if err := e.connectRest(ctx, id, box.Reach.Endpoints); err != nil {
		return "", errors.Join(err, e.Remove(context.WithoutCancel(ctx), id))
	}
	return id, nil
}

// inspectReach checks that each network belongs to the project or was named by the user, and that
// outside names resolve only with an egress.
func (e *Engine) inspectReach(ctx context.Context, box sandbox.Box) error {
	egress := false
	for _, end := range box.Reach.Endpoints {
		n, err := e.networkNamed(ctx, end.Network)
		if err != nil {
			return err
		}
		if !end.Foreign && n.Labels[sandbox.LabelProject] != box.Labels[sandbox.LabelProject] {
			return fmt.Errorf("network %q does not belong to this project", end.Network)
		}
		if n.Driver == network.NetworkHost || n.Driver == "null" {
			return fmt.Errorf("network %q is not a network between containers", end.Network)
		}
		egress = egress || !n.Internal
	}
	if box.Reach.Resolve && !egress {
		return errors.New("cannot resolve outside names without an egress")
	}
	return nil
}

// inspectVolumes checks that the volumes exist and belong to the project. The engine would create a
// missing one without labels, which no sweep would remove.
func (e *Engine) inspectVolumes(ctx context.Context, box sandbox.Box) error {
	for _, m := range box.Mounts {
		if !m.What.IsVolume() {
			continue
		}
		v, err := e.inspectVolume(ctx, m.Source)
		if err != nil {
			return err
		}
		if v.Labels[sandbox.LabelProject] != box.Labels[sandbox.LabelProject] {
			return fmt.Errorf("volume %q does not belong to this project", m.Source)
		}
	}
	return nil
}

// make creates the container. After a lost response it checks whether the engine did so.
func (e *Engine) make(ctx context.Context, box sandbox.Box, info sandbox.Info) (id string, err error) {
	config, host, net := profile(box, info)
	err = e.change(ctx, long, func(ctx context.Context) error {
		made, err := e.api.ContainerCreate(ctx, &config, &host, &net, nil, box.Name)
		if errdefs.IsConflict(err) {
			return fmt.Errorf("%w: %w", sandbox.ErrExists, err)
		}
		id = made.ID
		return err
	}, func(ctx context.Context) (bool, error) {
		there, err := e.inspectBox(ctx, box.Name)
		if errors.Is(err, sandbox.ErrNotFound) {
			return false, nil
		}
		id = there.ID
		return err == nil && there.Config.Labels[labelMade] == box.Labels[labelMade], err
	})
	if errdefs.IsNotFound(err) && strings.Contains(strings.ToLower(err.Error()), "no such image") {
		return "", fmt.Errorf("%w: %q", sandbox.ErrNoImage, box.Image)
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
			box, err := e.inspectBox(ctx, id)
			if err != nil {
				return false, err
			}
			_, on := box.NetworkSettings.Networks[end.Network]
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
func check(box sandbox.Box) error {
	for _, c := range []struct {
		is  bool
		why string
	}{
		{box.Name == "" || box.Image == "", "name or image is missing"},
		{len(box.Argv) == 0 && !box.Loose, "command is missing"},
		{box.Labels[sandbox.LabelProject] == "" || box.Labels[sandbox.LabelKind] == "",
			"label " + sandbox.LabelProject + " or " + sandbox.LabelKind + " is missing"},
		{box.Reach.Join != "" && len(box.Reach.Endpoints) > 0, "it cannot both join a holder and have endpoints"},
		{box.Reach.Host && (box.Loose || box.Seals || box.Reach.Join != "" || len(box.Reach.Endpoints)+len(box.Mounts) > 0),
			"a container with the network of the engine's machine may have no mounts, other networks and privileges"},
		{box.Seals && (box.Loose || box.Reach.Join != "" || !onlyProxySockets(box.Mounts)),
			"a holder needs its own network and may mount only proxy sockets"},
		{!mayRun(box), fmt.Sprintf("invalid user %q, want numeric \"uid:gid\" with a uid other than 0", box.User)},
	} {
		if c.is {
			return errors.New(c.why)
		}
	}
	return checkPlaces(box)
}

// mayRun reports whether the user is allowed. uid 0 is not, because its files in a bind mount
// belong to root on the host. A service may use its image's user.
func mayRun(box sandbox.Box) bool {
	var uid, gid uint32
	_, _ = fmt.Sscanf(box.User, "%d:%d", &uid, &gid)
	return box.User == "" && box.Loose || uid > 0 && box.User == fmt.Sprintf("%d:%d", uid, gid)
}

// onlyProxySockets reports whether all mounts are proxy sockets.
func onlyProxySockets(all []sandbox.Mount) bool {
	return !slices.ContainsFunc(all, func(m sandbox.Mount) bool { return m.What != sandbox.Sockets })
}

// checkPlaces checks the paths of mounts.
func checkPlaces(box sandbox.Box) error {
	for _, m := range box.Mounts {
		if !clean(m.Target) || m.Source == "" || !m.What.IsVolume() && !clean(m.Source) {
			return fmt.Errorf("mount of %q at %q: want absolute paths without dots", m.Source, m.Target)
		}
	}
	return nil
}

func clean(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }
