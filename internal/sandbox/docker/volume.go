package docker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"

	"abl/internal/sandbox"
)

// labelUpper names the volume that takes a copy-on-write view's writes, so
// that a sweep spares both or neither.
const labelUpper = "abl.upper"

// EnsureVolume makes a volume unless it is there. With Lower set it becomes a
// copy-on-write view of that directory, which needs an engine on this machine,
// a path without comma, colon and backslash, and the volume Upper to be there.
// Lower must not change while the view is in use.
func (e *Engine) EnsureVolume(ctx context.Context, v sandbox.Volume) (err error) {
	defer func() { err = about(err, "cannot make volume %q", v.Name) }()
	if v.Labels[sandbox.LabelProject] == "" {
		return fmt.Errorf("it lacks the label %s", sandbox.LabelProject)
	}
	there, err := e.inspectVolume(ctx, v.Name)
	if err == nil {
		return sameVolume(there, v)
	}
	if !errdefs.IsNotFound(err) {
		return err
	}
	o := volume.CreateOptions{Name: v.Name, Driver: "local", Labels: v.Labels}
	if v.Lower != "" {
		if o, err = e.overlay(ctx, v, o); err != nil {
			return err
		}
	}
	return e.makeVolume(ctx, v, o)
}

func (e *stores) inspectVolume(ctx context.Context, name string) (volume.Volume, error) {
	v, err := get(ctx, e.conn, e.api.VolumeInspect, name)
	return v, about(err, "volume %q", name)
}

// makeVolume looks at what it got: the engine hands out a volume of the same
// name that another made meanwhile.
func (e *Engine) makeVolume(ctx context.Context, v sandbox.Volume, o volume.CreateOptions) error {
	var made volume.Volume
	err := e.change(ctx, short, func(ctx context.Context) (err error) {
		made, err = e.api.VolumeCreate(ctx, o)
		return err
	}, func(ctx context.Context) (_ bool, err error) {
		made, err = e.inspectVolume(ctx, v.Name)
		if errdefs.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return err
	}
	return sameVolume(made, v)
}

func sameVolume(there volume.Volume, want sandbox.Volume) error {
	if there.Labels[sandbox.LabelProject] != want.Labels[sandbox.LabelProject] {
		return fmt.Errorf("one of this name exists and is not this project's: remove it with `docker volume rm %s`", there.Name)
	}
	lower := ""
	if o := there.Options["o"]; o != "" {
		lower, _, _ = strings.Cut(strings.TrimPrefix(o, "lowerdir="), ",")
	}
	if lower != want.Lower || there.Labels[labelUpper] != want.Upper {
		return errors.New("one of this name exists and shows something else: remove it with `abl clean`")
	}
	return nil
}

// overlay makes the two directories that the kernel wants in Upper and words
// the mount for the engine's local driver.
func (e *Engine) overlay(ctx context.Context, v sandbox.Volume, o volume.CreateOptions) (volume.CreateOptions, error) {
	info, err := e.known(ctx)
	if err != nil {
		return o, err
	}
	if !info.Local {
		return o, fmt.Errorf("the engine at %s does not see this machine's files", info.Host)
	}
	upper, err := e.inspectVolume(ctx, v.Upper)
	if err != nil {
		return o, err
	}
	if err := overlayable(v.Lower, upper.Mountpoint); err != nil {
		return o, err
	}
	if err := e.layDirs(ctx, v); err != nil {
		return o, err
	}
	o.Labels = maps.Clone(v.Labels)
	o.Labels[labelUpper] = v.Upper
	o.DriverOpts = map[string]string{
		"type": "overlay", "device": "overlay",
		"o": fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,nosuid,nodev", v.Lower, path.Join(upper.Mountpoint, "u"), path.Join(upper.Mountpoint, "w")),
	}
	return o, nil
}

// overlayable refuses paths that the mount's option string cannot hold.
func overlayable(paths ...string) error {
	for _, p := range paths {
		if !clean(p) || strings.ContainsAny(p, `,:\`) {
			return fmt.Errorf("path %q: a copy-on-write view needs an absolute path without comma, colon and backslash", p)
		}
	}
	return nil
}
