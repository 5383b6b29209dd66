package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"abl/internal/sandbox"
)

// emptyImage has nothing in it. A box of it is never started; it only lets the
// engine, which owns its volumes' directories, unpack into one.
const emptyImage = "abl-empty:1"

// layDirs makes u and w in the volume Upper. The root of a merged view has the
// owner and mode of u, so u takes those of Lower.
func (e *Engine) layDirs(ctx context.Context, v sandbox.Volume) (err error) {
	dirs, err := overlayDirs(v.Lower)
	if err != nil {
		return err
	}
	if err := e.ensureEmptyImage(ctx); err != nil {
		return err
	}
	labels := maps.Clone(v.Labels)
	labels[sandbox.LabelKind] = "helper"
	box := sandbox.Box{
		Name: v.Name + "-dirs", Image: emptyImage, Labels: labels, User: "65534:65534", Argv: []string{"none"},
		Limits: sandbox.Limits{Memory: 64 << 20, CPUs: 0.5, Pids: 32, OpenFile: 256},
		Mounts: []sandbox.Mount{{What: sandbox.Scratch, Source: v.Upper, Target: "/upper"}},
	}
	if err := e.Remove(ctx, box.Name); err != nil { // an abl that was killed here left it
		return err
	}
	if _, err := e.Create(ctx, box); err != nil {
		return err
	}
	proof, err := e.Prove(ctx, box)
	if err == nil {
		err = proof.Err()
	}
	if err == nil {
		err = e.CopyIn(ctx, box.Name, "/upper", dirs)
	}
	return errors.Join(err, e.Remove(context.WithoutCancel(ctx), box.Name))
}

func overlayDirs(lower string) (io.Reader, error) {
	fi, err := os.Lstat(lower)
	if err != nil {
		return nil, err
	}
	owner, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || !fi.IsDir() {
		return nil, fmt.Errorf("%q is not a directory", lower)
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	err = errors.Join(
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "u/", Mode: int64(fi.Mode().Perm()), Uid: int(owner.Uid), Gid: int(owner.Gid), ModTime: fi.ModTime()}),
		w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: "w/", Mode: 0o700, ModTime: fi.ModTime()}),
		w.Close())
	return &out, err
}

func (e *images) ensureEmptyImage(ctx context.Context) error {
	err := e.do(ctx, short, func(ctx context.Context) error {
		_, err := e.api.ImageInspect(ctx, emptyImage)
		if errdefs.IsNotFound(err) {
			return e.importEmpty(ctx)
		}
		return err
	})
	return about(err, "cannot make image %q", emptyImage)
}

func (e *images) importEmpty(ctx context.Context) error {
	var none bytes.Buffer
	if err := tar.NewWriter(&none).Close(); err != nil {
		return err
	}
	progress, err := e.api.ImageImport(ctx, image.ImportSource{Source: &none, SourceName: "-"}, emptyImage,
		image.ImportOptions{Changes: []string{"LABEL " + sandbox.LabelKind + "=image"}})
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, progress)
	return errors.Join(err, progress.Close())
}
