package docker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/volume"

	"abl/internal/proc"
	"abl/internal/sandbox"
)

// Sweep removes what abl made and carries the labels: boxes, then volumes, then networks,
// each kind in the order of its names, which it returns. It spares the boxes
// that keep answers true for, and what they use. It goes on after an error.
func (e *Engine) Sweep(ctx context.Context, labels map[string]string, keep func(sandbox.Status) bool) (removed []string, err error) {
	const tries = 3
	for n := 1; ; n++ {
		gone, err := e.sweep(ctx, labels, keep)
		removed = append(removed, gone...)
		// What an abl asked for that was killed may be made meanwhile, and use what goes.
		if !errdefs.IsConflict(err) || n == tries {
			return removed, err
		}
		if err := proc.Pause(ctx, 200*time.Millisecond); err != nil {
			return removed, err
		}
	}
}

func (e *Engine) sweep(ctx context.Context, labels map[string]string, keep func(sandbox.Status) bool) (removed []string, err error) {
	if labels[sandbox.LabelProject] == "" {
		return nil, errors.New("internal error: a sweep without a project's label would take everything")
	}
	found, err := e.inspectAll(ctx, labels)
	if err != nil {
		return nil, about(err, "cannot list boxes")
	}
	var boxes, volumes, networks []stored
	used := map[string]bool{} // volumes and networks: a box that is not running does not hold its own
	for _, box := range found {
		status := toStatus(box)
		if sandbox.Made(status.Name, status.Labels) && (keep == nil || !keep(status)) {
			boxes = append(boxes, stored{status.Name, box.ID})
			continue
		}
		for _, m := range box.Mounts {
			used["volume "+m.Name] = true
		}
		for name := range box.NetworkSettings.Networks {
			used["network "+name] = true
		}
	}
	removed, err = removeAll(ctx, "box", boxes, e.Remove)
	vols, verr := get(ctx, e.conn, e.api.VolumeList, volume.ListOptions{Filters: withLabels(labels)})
	for _, v := range vols.Volumes {
		if used["volume "+v.Name] {
			used["volume "+v.Labels[labelUpper]] = true
		}
	}
	for _, v := range vols.Volumes {
		if sandbox.Made(v.Name, v.Labels) && !used["volume "+v.Name] {
			volumes = append(volumes, stored{v.Name, v.Name})
		}
	}
	gone, rerr := removeAll(ctx, "volume", volumes, func(ctx context.Context, id string) error {
		return e.do(ctx, long, func(ctx context.Context) error { return e.api.VolumeRemove(ctx, id, false) })
	})
	nets, nerr := get(ctx, e.conn, e.api.NetworkList, network.ListOptions{Filters: withLabels(labels)})
	for _, n := range nets {
		if sandbox.Made(n.Name, n.Labels) && !used["network "+n.Name] {
			networks = append(networks, stored{n.Name, n.ID})
		}
	}
	more, merr := removeAll(ctx, "network", networks, e.removeNetwork)
	err = errors.Join(err, about(verr, "cannot list volumes"), rerr, about(nerr, "cannot list networks"), merr)
	return slices.Concat(removed, gone, more), err
}

// Objects lists the containers, volumes and networks of every project that carry the labels. A
// label with an empty value only has to be there.
func (e *Engine) Objects(ctx context.Context, labels map[string]string) (all []sandbox.Object, err error) {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if _, named := labels[sandbox.LabelProject]; !named {
		labels[sandbox.LabelProject] = "" // any value will do
	}
	boxes, err := e.List(ctx, labels)
	for _, b := range boxes {
		running := b.State == sandbox.Running
		all = append(all, sandbox.Object{
			Kind: sandbox.ContainerObject, Name: b.Name, Labels: b.Labels, Created: b.CreatedAt, Running: running,
		})
	}
	vols, verr := get(ctx, e.conn, e.api.VolumeList, volume.ListOptions{Filters: withLabels(labels)})
	for _, v := range vols.Volumes {
		all = append(all, sandbox.Object{Kind: sandbox.VolumeObject, Name: v.Name, Labels: v.Labels, Created: toTime(v.CreatedAt)})
	}
	nets, nerr := get(ctx, e.conn, e.api.NetworkList, network.ListOptions{Filters: withLabels(labels)})
	for _, n := range nets {
		all = append(all, sandbox.Object{Kind: sandbox.NetworkObject, Name: n.Name, Labels: n.Labels, Created: n.Created})
	}
	return all, errors.Join(err, about(verr, "cannot list volumes"), about(nerr, "cannot list networks"))
}

// stored is what an engine keeps. Engines before 25 let two networks have one
// name, which then fits neither, so removal goes by id.
type stored struct{ name, id string }

// sideBySide is how many are removed at once: an engine mostly waits for what it ends, and
// answers nobody in time under all of a large phase.
const sideBySide = 8

// removeAll removes all, several side by side.
func removeAll(ctx context.Context, kind string, all []stored, remove func(context.Context, string) error) (removed []string, err error) {
	slices.SortFunc(all, func(a, b stored) int { return strings.Compare(a.name, b.name) })
	errs := make([]error, len(all))
	var done sync.WaitGroup
	free := make(chan struct{}, sideBySide)
	for i, s := range all {
		free <- struct{}{}
		done.Go(func() { errs[i] = remove(ctx, s.id); <-free })
	}
	done.Wait()
	for i, s := range all {
		if errs[i] == nil {
			removed = append(removed, s.name)
		} else if !errdefs.IsNotFound(errs[i]) {
			err = errors.Join(err, about(errs[i], "cannot remove %s %q", kind, s.name))
		}
	}
	return removed, err
}
