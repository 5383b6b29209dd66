package sandboxtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"abl/internal/sandbox"
)

// EnsureNetwork creates a network unless it exists.
func (e *Engine) EnsureNetwork(ctx context.Context, n sandbox.Network) error {
	return e.call("EnsureNetwork", n.Name, func() error {
		there, ok := e.networks[n.Name]
		if ok && there.Labels[sandbox.LabelProject] != n.Labels[sandbox.LabelProject] {
			return fmt.Errorf("cannot create network %q: it exists, but does not belong to this project", n.Name)
		}
		if ok && there.Egress != n.Egress {
			return fmt.Errorf("cannot create network %q: it exists, but with a different isolation", n.Name)
		}
		if e.networks == nil {
			e.networks = map[string]sandbox.Network{}
		}
		e.networks[n.Name] = n
		return nil
	})
}

// EnsureVolume creates a volume unless it exists.
func (e *Engine) EnsureVolume(ctx context.Context, v sandbox.Volume) error {
	return e.call("EnsureVolume", v.Name, func() error {
		there, ok := e.volumes[v.Name]
		if ok && there.Labels[sandbox.LabelProject] != v.Labels[sandbox.LabelProject] {
			return fmt.Errorf("cannot create volume %q: it exists, but does not belong to this project", v.Name)
		}
		if ok && (!slices.Equal(there.Lower, v.Lower) || there.Upper != v.Upper) {
			return fmt.Errorf("cannot create volume %q: it exists, but with different directories", v.Name)
		}
		if _, ok := e.volumes[v.Upper]; !ok && len(v.Lower) > 0 {
			return fmt.Errorf("cannot create volume %q: volume %q: no such volume", v.Name, v.Upper)
		}
		if e.volumes == nil {
			e.volumes = map[string]sandbox.Volume{}
		}
		e.volumes[v.Name] = v
		return nil
	})
}

// Sweep removes the objects with the labels, like the real engine.
func (e *Engine) Sweep(
	ctx context.Context, labels map[string]string, keep func(sandbox.Status) bool,
) (removed []string, err error) {
	err = e.call("Sweep", show(labels), func() error {
		if labels[sandbox.LabelProject] == "" {
			return errors.New("internal error: a sweep without a project's label would take everything")
		}
		volumes, networks := map[string]bool{}, map[string]bool{}
		for _, s := range e.matching(labels) {
			if !sandbox.Made(s.Name, s.Labels) || keep != nil && keep(s) {
				e.noteUsed(e.containers[s.Name].ContainerConfig, volumes, networks)
				continue
			}
			e.drop(s.Name)
			removed = append(removed, s.Name)
		}
		ofVolume := func(v sandbox.Volume) map[string]string { return v.Labels }
		removed = append(removed, sweep(e.volumes, labels, volumes, ofVolume)...)
		ofNetwork := func(n sandbox.Network) map[string]string { return n.Labels }
		removed = append(removed, sweep(e.networks, labels, networks, ofNetwork)...)
		return nil
	})
	return removed, err
}

func (e *Engine) noteUsed(b sandbox.ContainerConfig, volumes, networks map[string]bool) {
	for _, m := range b.Mounts {
		volumes[m.Source] = true
		volumes[e.volumes[m.Source].Upper] = true
	}
	for _, end := range b.Reach.Endpoints {
		networks[end.Network] = true
	}
}

func sweep[T any](
	all map[string]T, labels map[string]string, used map[string]bool, of func(T) map[string]string,
) (removed []string) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if has(of(all[name]), labels) && sandbox.Made(name, of(all[name])) && !used[name] {
			delete(all, name)
			removed = append(removed, name)
		}
	}
	return removed
}

// Left returns the names of all containers, volumes and networks.
func (e *Engine) Left() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Concat(
		slices.Sorted(maps.Keys(e.containers)),
		slices.Sorted(maps.Keys(e.volumes)),
		slices.Sorted(maps.Keys(e.networks)),
	)
}

func has(labels, want map[string]string) bool {
	for key, value := range want {
		got, ok := labels[key]
		if !ok || value != "" && got != value {
			return false
		}
	}
	return true
}

func show(labels map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, key+"="+labels[key])
	}
	return strings.Join(pairs, " ")
}

// Usage returns the result of Used for a volume.
func (e *Engine) Usage(_ context.Context, volume string) (int64, error) {
	if e.Used == nil {
		return 0, nil
	}
	return e.Used(volume), nil
}
