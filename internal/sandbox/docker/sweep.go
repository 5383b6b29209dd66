package docker

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"abl/internal/sandbox"
)

// Sweep removes what carries the labels: boxes, then volumes, then networks,
// each kind in the order of its names, which it returns. It spares the boxes
// that keep answers true for, and what they use. It goes on after an error.
func (e *Engine) Sweep(ctx context.Context, labels map[string]string, keep func(sandbox.Status) bool) (removed []string, err error) {
	if len(labels) == 0 {
		return nil, errors.New("internal error: a sweep without labels would take everything")
	}
	boxes, err := e.inspectAll(ctx, labels)
	if err != nil {
		return nil, about(err, "cannot list boxes")
	}
	var errs []error
	used := map[string]bool{}
	for _, box := range boxes {
		status := toStatus(box)
		if keep != nil && keep(status) {
			noteUsed(used, box)
			continue
		}
		if err := e.Remove(ctx, box.ID); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, status.Name)
	}
	volumes, verr := e.sweepVolumes(ctx, labels, used)
	networks, nerr := e.sweepNetworks(ctx, labels, used)
	return slices.Concat(removed, volumes, networks), errors.Join(append(errs, verr, nerr)...)
}

// noteUsed marks the volumes and networks of a box that stays. A box that is
// not running does not hold its networks by itself.
func noteUsed(used map[string]bool, box container.InspectResponse) {
	for _, m := range box.Mounts {
		used[volumeKey(m.Name)] = true
	}
	for name := range box.NetworkSettings.Networks {
		used[networkKey(name)] = true
	}
}

func volumeKey(name string) string  { return "volume " + name }
func networkKey(name string) string { return "network " + name }

func (e *stores) sweepVolumes(ctx context.Context, labels map[string]string, used map[string]bool) ([]string, error) {
	list, err := get(ctx, e.conn, e.api.VolumeList, volume.ListOptions{Filters: withLabels(labels)})
	if err != nil {
		return nil, about(err, "cannot list volumes")
	}
	var all []storage
	for _, v := range list.Volumes {
		all = append(all, storage{v.Name, v.Name})
		if used[volumeKey(v.Name)] {
			used[volumeKey(v.Labels[labelUpper])] = true
		}
	}
	return e.removeEach(ctx, "volume", all, used, func(ctx context.Context, name string) error {
		return e.api.VolumeRemove(ctx, name, false)
	})
}

func (e *stores) sweepNetworks(ctx context.Context, labels map[string]string, used map[string]bool) ([]string, error) {
	list, err := get(ctx, e.conn, e.api.NetworkList, network.ListOptions{Filters: withLabels(labels)})
	if err != nil {
		return nil, about(err, "cannot list networks")
	}
	var all []storage
	for _, n := range list {
		all = append(all, storage{n.Name, n.ID})
	}
	return e.removeEach(ctx, "network", all, used, e.api.NetworkRemove)
}

// storage is a volume or a network. Engines before 25 let two networks have one
// name, which then fits neither, so removal goes by id.
type storage struct{ name, id string }

func (e *stores) removeEach(ctx context.Context, kind string, all []storage, used map[string]bool, remove func(context.Context, string) error) (removed []string, err error) {
	slices.SortFunc(all, func(a, b storage) int { return strings.Compare(a.name, b.name) })
	for _, s := range all {
		if used[kind+" "+s.name] {
			continue
		}
		rerr := e.do(ctx, long, func(ctx context.Context) error { return remove(ctx, s.id) })
		switch {
		case rerr == nil:
			removed = append(removed, s.name)
		case !errdefs.IsNotFound(rerr):
			err = errors.Join(err, about(rerr, "cannot remove %s %q", kind, s.name))
		}
	}
	return removed, err
}
