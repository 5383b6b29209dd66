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

// labelMade carries a random word of one Create, by which it knows its own
// box again when the engine made it and the answer was lost.
const labelMade = "abl.made"

// Create makes a box without starting it and returns its id. A box of the same
// name is sandbox.ErrExists, an image that the engine lacks sandbox.ErrNoImage.
func (e *Engine) Create(ctx context.Context, box sandbox.Box) (id string, err error) {
	defer func() { err = about(err, "cannot create box %q", box.Name) }()
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

// inspectReach sees to it that each endpoint's network is the project's or one
// that the person named, so that no slip opens another, and that outside names
// resolve only where a way out is meant to be.
func (e *Engine) inspectReach(ctx context.Context, box sandbox.Box) error {
	egress := false
	for _, end := range box.Reach.Endpoints {
		n, err := e.inspectNetwork(ctx, end.Network)
		if err != nil {
			return err
		}
		if !end.Foreign && n.Labels[sandbox.LabelProject] != box.Labels[sandbox.LabelProject] {
			return fmt.Errorf("network %q is not this project's", end.Network)
		}
		if n.Driver == network.NetworkHost || n.Driver == "null" {
			return fmt.Errorf("network %q is the engine's own and no network between boxes", end.Network)
		}
		egress = egress || !n.Internal
	}
	if box.Reach.Resolve && !egress {
		return errors.New("it would resolve outside names without a way out")
	}
	return nil
}

// inspectVolumes refuses a volume that is not there: the engine would make one
// without labels, which nothing would ever sweep.
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
			return fmt.Errorf("volume %q is not this project's", m.Source)
		}
	}
	return nil
}

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

// about puts an act and its object before the engine's words, once.
func about(err error, act string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(act+": %w", append(args, err)...)
}

// check refuses what no box may be. It is the last look before an engine that
// does as it is told, so it repeats what callers should have seen to.
func check(box sandbox.Box) error {
	for _, c := range []struct {
		is  bool
		why string
	}{
		{box.Name == "" || box.Image == "", "a box needs a name and an image"},
		{len(box.Argv) == 0 && !box.Loose, "it has no command"},
		{box.Labels[sandbox.LabelProject] == "" || box.Labels[sandbox.LabelKind] == "",
			"it lacks the label " + sandbox.LabelProject + " or " + sandbox.LabelKind + ", without which it could not be swept"},
		{box.Reach.Join != "" && len(box.Reach.Endpoints) > 0, "it cannot both join another and have endpoints of its own"},
		{box.Seals && (box.Loose || box.Reach.Join != "" || !doors(box.Mounts)),
			"it would close a network that is not its own, or has something to write as root"},
		{!mayRun(box), fmt.Sprintf("user %q: want \"uid:gid\" in numbers, and uid 0 is refused", box.User)},
	} {
		if c.is {
			return errors.New(c.why)
		}
	}
	return checkPlaces(box)
}

// mayRun keeps uid 0 out: what it leaves in a bind mount is root's on the host. A service
// may have its image's own user.
func mayRun(box sandbox.Box) bool {
	var uid, gid uint32
	_, _ = fmt.Sscanf(box.User, "%d:%d", &uid, &gid)
	return box.User == "" && box.Loose || uid > 0 && box.User == fmt.Sprintf("%d:%d", uid, gid)
}

// doors says that there is nothing else among mounts.
func doors(all []sandbox.Mount) bool {
	return !slices.ContainsFunc(all, func(m sandbox.Mount) bool { return m.What != sandbox.Door })
}

func checkPlaces(box sandbox.Box) error {
	for _, m := range box.Mounts {
		if !clean(m.Target) || m.Source == "" || !m.What.IsVolume() && !clean(m.Source) {
			return fmt.Errorf("mount of %q at %q: want absolute paths without dots", m.Source, m.Target)
		}
	}
	return nil
}

func clean(p string) bool { return path.IsAbs(p) && path.Clean(p) == p && p != "/" }
