package docker

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types"
	"github.com/docker/docker/api/types/volume"

	"abl/internal/sandbox"
)

// labelUpper names the volume for the writes of a copy-on-write view, so that a sweep keeps or
// removes both.
const labelUpper = "abl.upper"

// labelLower lists the directories of a view, separated by colons.
const labelLower = "abl.lower"

// EnsureVolume creates a volume unless it exists. With Lower it is a copy-on-write view of these
// directories. That requires an engine on this machine, paths without comma, colon and backslash,
// and the volume Upper. The directories must not change while the view is in use.
func (e *Engine) EnsureVolume(ctx context.Context, v sandbox.Volume) (err error) {
	defer func() { err = about(err, "cannot create volume %q", v.Name) }()
	there, err := e.inspectVolume(ctx, v.Name)
	if err == nil {
		return sameVolume(there, v)
	}
	if !errdefs.IsNotFound(err) {
		return err
	}
	o := volume.CreateOptions{Name: v.Name, Driver: "local", Labels: v.Labels}
	if len(v.Lower) > 0 {
		if o, err = e.overlay(ctx, v, o); err != nil {
			return err
		}
	}
	made, err := get(ctx, e.conn, e.api.VolumeCreate, o) // returns an existing one
	if err != nil {
		return err
	}
	return sameVolume(made, v)
}

// Usage returns the disk usage of a volume in bytes. The engine measures it, so it includes files
// that other users cannot read.
func (e *Engine) Usage(ctx context.Context, name string) (bytes int64, err error) {
	e.measuring.Lock()
	defer e.measuring.Unlock()
	volumes := types.DiskUsageOptions{Types: []types.DiskUsageObject{types.VolumeObject}}
	all, err := get(ctx, e.conn, e.api.DiskUsage, volumes)
	if err != nil {
		return 0, about(err, "cannot measure volume %q", name)
	}
	for _, v := range all.Volumes {
		if v.Name == name && v.UsageData != nil && v.UsageData.Size >= 0 {
			return v.UsageData.Size, nil
		}
	}
	return 0, fmt.Errorf("cannot measure volume %q: the engine does not report its size", name)
}

func (e *stores) inspectVolume(ctx context.Context, name string) (volume.Volume, error) {
	v, err := get(ctx, e.conn, e.api.VolumeInspect, name)
	return v, about(err, "volume %q", name)
}

// sameVolume returns an error if an existing volume is not the wanted one.
func sameVolume(there volume.Volume, want sandbox.Volume) error {
	if there.Labels[sandbox.LabelProject] != want.Labels[sandbox.LabelProject] {
		return fmt.Errorf("it exists, but does not belong to this project: remove it with `docker volume rm %s`", there.Name)
	}
	if there.Labels[labelLower] != lowerOf(want) || there.Labels[labelUpper] != want.Upper {
		return errors.New("it exists, but with different directories: remove it with `abl clean`")
	}
	return nil
}

// overlay creates the two directories that the kernel needs in Upper and returns the options for
// the engine's local driver.
func (e *Engine) overlay(ctx context.Context, v sandbox.Volume, o volume.CreateOptions) (volume.CreateOptions, error) {
	info, err := e.Info(ctx)
	if err != nil {
		return o, err
	}
	if !info.Local {
		return o, fmt.Errorf("the engine at %s cannot access this machine's files", info.Host)
	}
	upper, err := e.inspectVolume(ctx, v.Upper)
	if err != nil {
		return o, err
	}
	if err := overlayable(append([]string{upper.Mountpoint}, v.Lower...)...); err != nil {
		return o, err
	}
	if err := e.layDirs(ctx, v); err != nil {
		return o, err
	}
	o.Labels = maps.Clone(v.Labels)
	o.Labels[labelUpper], o.Labels[labelLower] = v.Upper, lowerOf(v)
	o.DriverOpts = map[string]string{
		"type": "overlay", "device": "overlay",
		"o": fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s,nosuid,nodev",
			lowerOf(v), path.Join(upper.Mountpoint, "u"), path.Join(upper.Mountpoint, "w")),
	}
	return o, nil
}

// lowerOf returns the directories of a view in the format of overlayfs's option lowerdir.
func lowerOf(v sandbox.Volume) string { return strings.Join(v.Lower, ":") }

// overlayable rejects paths that the mount options cannot contain.
func overlayable(paths ...string) error {
	for _, p := range paths {
		if !clean(p) || strings.ContainsAny(p, `,:\`) {
			return fmt.Errorf("path %q: a copy-on-write view needs an absolute path without comma, colon and backslash", p)
		}
	}
	return nil
}

// layDirs creates u and w in the volume Upper. A view has the owner and the mode of u, so u gets
// those of the first directory. Only the engine can write to its volumes, so layDirs unpacks an
// archive through a container that never starts.
func (e *Engine) layDirs(ctx context.Context, v sandbox.Volume) (err error) {
	labels := maps.Clone(v.Labels)
	labels[sandbox.LabelKind] = "helper"
	desired := sandbox.ContainerConfig{
		Name:   v.Name + "-dirs",
		Image:  v.Image,
		Labels: labels,
		User:   "65534:65534",
		Argv:   []string{"none"},
		Limits: sandbox.Limits{
			Memory:   64 << 20,
			CPUs:     0.5,
			Pids:     32,
			OpenFile: 256,
		},
		Mounts: []sandbox.Mount{{What: sandbox.Scratch, Source: v.Upper, Target: "/upper"}},
	}
	if err := e.Remove(ctx, desired.Name); err != nil { // left by a killed abl
		return err
	}
	if _, err := e.Create(ctx, desired); err != nil {
		return err
	}
	proof, err := e.Prove(ctx, desired)
	if err == nil {
		err = proof.Err()
	}
	if err == nil {
		err = e.CopyIn(ctx, desired.Name, "/upper", func(w io.Writer) error { return overlayDirs(w, v.Lower[0]) })
	}
	return errors.Join(err, e.Remove(context.WithoutCancel(ctx), desired.Name))
}

func overlayDirs(to io.Writer, lower string) error {
	fi, err := os.Lstat(lower)
	if err != nil {
		return err
	}
	owner, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.IsDir() {
		return fmt.Errorf("%q is not a directory", lower)
	}
	w := tar.NewWriter(to)
	u := tar.Header{
		Typeflag: tar.TypeDir,
		Name:     "u/",
		Mode:     int64(fi.Mode().Perm()),
		Uid:      int(owner.Uid),
		Gid:      int(owner.Gid),
		ModTime:  fi.ModTime(),
	}
	work := tar.Header{
		Typeflag: tar.TypeDir,
		Name:     "w/",
		Mode:     0o700,
		ModTime:  fi.ModTime(),
	}
	return errors.Join(w.WriteHeader(&u), w.WriteHeader(&work), w.Close())
}
