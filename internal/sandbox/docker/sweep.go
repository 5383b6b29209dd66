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

// Sweep removes abl's objects with the labels: containers, then volumes, then networks, each sorted
// by name. It keeps the containers for which keep returns true, and the objects that they use. It
// continues after an error. It returns the names of the removed objects.
func (e *Engine) Sweep(ctx context.Context, labels map[string]string,
	keep func(sandbox.Status) bool) (removed []string, err error) {
	const tries = 3
	for n := 1; ; n++ {
		gone, err := e.sweep(ctx, labels, keep)
		removed = append(removed, gone...)
		// The engine may still create objects for a killed abl, which use the removed ones.
		if !errdefs.IsConflict(err) || n == tries {
			return removed, err
		}
		if err := proc.Pause(ctx, 200*time.Millisecond); err != nil {
			return removed, err
		}
	}
}

func (e *Engine) sweep(ctx context.Context, labels map[string]string,
	keep func(sandbox.Status) bool) (removed []string, err error) {
	if labels[sandbox.LabelProject] == "" {
		return nil, errors.New("internal error: a sweep without a project's label would remove everything")
	}
	found, err := e.inspectAll(ctx, labels)
	if err != nil {
		return nil, about(err, "cannot list containers")
	}
	var containers, volumes, networks []stored
	used := map[string]bool{} // volumes and networks of kept containers, which may not be running
	for _, inspected := range found {
		status := toStatus(inspected)
		if sandbox.Made(status.Name, status.Labels) && (keep == nil || !keep(status)) {
			containers = append(containers, stored{status.Name, inspected.ID})
			continue
		}
		for _, m := range inspected.Mounts {
			used["volume "+m.Name] = true
		}
		for name := range inspected.NetworkSettings.Networks {
			used["network "+name] = true
		}
	}
	removed, err = removeAll(ctx, "container", containers, e.Remove)
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

// Objects lists the containers, volumes and networks of all projects with the labels. A label with
// an empty value matches any value.
func (e *Engine) Objects(ctx context.Context, labels map[string]string) (all []sandbox.Object, err error) {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	if _, named := labels[sandbox.LabelProject]; !named {
		labels[sandbox.LabelProject] = "" // matches any value
	}
	containers, err := e.List(ctx, labels)
	for _, b := range containers {
		running := b.State == sandbox.Running
		all = append(all, sandbox.Object{
			Kind:    sandbox.ContainerObject,
			Name:    b.Name,
			Labels:  b.Labels,
			Created: b.CreatedAt,
			Running: running,
		})
	}
	vols, verr := get(ctx, e.conn, e.api.VolumeList, volume.ListOptions{Filters: withLabels(labels)})
	for _, v := range vols.Volumes {
		all = append(all, sandbox.Object{
			Kind:    sandbox.VolumeObject,
			Name:    v.Name,
			Labels:  v.Labels,
			Created: toTime(v.CreatedAt),
		})
	}
	nets, nerr := get(ctx, e.conn, e.api.NetworkList, network.ListOptions{Filters: withLabels(labels)})
	for _, n := range nets {
		all = append(all, sandbox.Object{
			Kind:    sandbox.NetworkObject,
			Name:    n.Name,
			Labels:  n.Labels,
			Created: n.Created,
		})
	}
	return all, errors.Join(err, about(verr, "cannot list volumes"), about(nerr, "cannot list networks"))
}

// stored is an object on the engine. Removal uses the id, because engines before 25 allow two
// networks with the same name.
type stored struct{ name, id string }

// maxRemovals is the maximum number of parallel removals. With all objects of a large phase in
// parallel, the engine would not respond in time.
const maxRemovals = 8

// removeAll removes objects in parallel.
func removeAll(ctx context.Context, kind string, all []stored,
	remove func(context.Context, string) error) (removed []string, err error) {
	slices.SortFunc(all, func(a, b stored) int { return strings.Compare(a.name, b.name) })
	errs := make([]error, len(all))
	var done sync.WaitGroup
	free := make(chan struct{}, maxRemovals)
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
