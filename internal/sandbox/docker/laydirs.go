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

	"abl/internal/sandbox"
)

// layDirs makes u and w in the volume Upper. The root of a merged view has the
// owner and mode of u, so u takes those of Lower. The engine owns its volumes'
// directories and unpacks into one by way of a box, which is never started.
func (e *Engine) layDirs(ctx context.Context, v sandbox.Volume) (err error) {
	dirs, err := overlayDirs(v.Lower)
	if err != nil {
		return err
	}
	labels := maps.Clone(v.Labels)
	labels[sandbox.LabelKind] = "helper"
	box := sandbox.Box{
		Name: v.Name + "-dirs", Image: v.Image, Labels: labels, User: "65534:65534", Argv: []string{"none"},
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
