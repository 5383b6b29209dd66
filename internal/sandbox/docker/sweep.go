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
	stores, err := e.sweepStores(ctx, labels, used)
	return append(removed, stores...), errors.Join(append(errs, err)...)
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

func (e *stores) sweepStores(ctx context.Context, labels map[string]string, used map[string]bool) (removed []string, err error) {
	volumes, verr := e.sweepVolumes(ctx, labels, used)
	networks, nerr := e.sweepNetworks(ctx, labels, used)
	return append(volumes, networks...), errors.Join(verr, nerr)
}

func (e *stores) sweepVolumes(ctx context.Context, labels map[string]string, used map[string]bool) ([]string, error) {
	var list volume.ListResponse
	err := e.do(ctx, short, func(ctx context.Context) (err error) {
		list, err = e.api.VolumeList(ctx, volume.ListOptions{Filters: withLabels(labels)})
		return err
	})
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
	}, func(ctx context.Context, name string) error {
		_, err := e.inspectVolume(ctx, name)
		return err
	})
}

func (e *stores) sweepNetworks(ctx context.Context, labels map[string]string, used map[string]bool) ([]string, error) {
	var list []network.Summary
	err := e.do(ctx, short, func(ctx context.Context) (err error) {
		list, err = e.api.NetworkList(ctx, network.ListOptions{Filters: withLabels(labels)})
		return err
	})
	if err != nil {
		return nil, about(err, "cannot list networks")
	}
	var all []storage
	for _, n := range list {
		all = append(all, storage{n.Name, n.ID})
	}
	return e.removeEach(ctx, "network", all, used, e.api.NetworkRemove, func(ctx context.Context, id string) error {
		return e.do(ctx, short, func(ctx context.Context) error {
			_, err := e.api.NetworkInspect(ctx, id, network.InspectOptions{})
			return err
		})
	})
}

// storage is a volume or a network. Engines before 25 let two networks have one
// name, which then fits neither, so removal goes by id.
type storage struct{ name, id string }

func (e *stores) removeEach(ctx context.Context, kind string, all []storage, used map[string]bool, remove, look func(context.Context, string) error) (removed []string, err error) {
	var errs []error
	slices.SortFunc(all, func(a, b storage) int { return strings.Compare(a.name, b.name) })
	for _, s := range all {
		if used[kind+" "+s.name] {
			continue
		}
		err := e.change(ctx, long, func(ctx context.Context) error { return remove(ctx, s.id) }, func(ctx context.Context) (bool, error) {
			err := look(ctx, s.id)
			if errdefs.IsNotFound(err) {
				return true, nil
			}
			return false, err
		})
		switch {
		case err == nil:
			removed = append(removed, s.name)
		case !errdefs.IsNotFound(err):
			errs = append(errs, about(err, "cannot remove %s %q", kind, s.name))
		}
	}
	return removed, errors.Join(errs...)
}
