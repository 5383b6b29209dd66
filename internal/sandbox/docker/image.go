package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"abl/internal/sandbox"
)

// ImageID gives the id of an image that the engine has; ok is false when it has none of this name.
func (e *images) ImageID(ctx context.Context, ref string) (id string, ok bool, err error) {
	var found image.InspectResponse
	err = e.do(ctx, short, func(ctx context.Context) (err error) {
		found, err = e.api.ImageInspect(ctx, ref)
		return err
	})
	switch {
	case errdefs.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("cannot look for image %q: %w", ref, err)
	}
	return found.ID, true, nil
}

// Pull takes an image from its registry and gives it pinned, as name@digest.
// It waits as long as ctx lets it; progress gets a line whenever a layer's state changes.
func (e *images) Pull(ctx context.Context, ref string, progress func(string)) (digest string, err error) {
	body, err := e.api.ImagePull(ctx, ref, image.PullOptions{})
	if err == nil {
		err = follow(body, progress)
	}
	if err != nil {
		return "", fmt.Errorf("cannot pull image %q: %w", ref, e.lost(ctx, err))
	}
	found, err := e.api.ImageInspect(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("cannot look at pulled image %q: %w", ref, e.lost(ctx, err))
	}
	if len(found.RepoDigests) == 0 {
		return "", fmt.Errorf("cannot pin image %q: the engine knows no digest of it", ref)
	}
	return found.RepoDigests[0], nil
}

// Build builds the file Dockerfile of a tar archive and names the result. It
// uses the classic builder, which every engine has without a plugin. network
// is a network mode for the steps, "" for the engine's own; progress gets
// every line that the build prints.
func (e *images) Build(ctx context.Context, tar io.Reader, ref, network string, args map[string]string, progress func(string)) error {
	given := map[string]*string{}
	for name, value := range args {
		given[name] = &value
	}
	answer, err := e.api.ImageBuild(ctx, tar, build.ImageBuildOptions{
		Tags: []string{ref}, BuildArgs: given, NetworkMode: network,
		Remove: true, ForceRemove: true, Version: build.BuilderV1,
	})
	if err == nil {
		err = follow(answer.Body, progress)
	}
	if err != nil {
		return e.lost(ctx, err)
	}
	return nil
}

// ListImages gives the labels of every image that has the label, by each of
// its references, or by id where it has none.
func (e *images) ListImages(ctx context.Context, label string) (map[string]map[string]string, error) {
	var found []image.Summary
	err := e.do(ctx, short, func(ctx context.Context) (err error) {
		found, err = e.api.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label))})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot list images: %w", err)
	}
	return byReference(found), nil
}

func byReference(found []image.Summary) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, im := range found {
		named := false
		for _, ref := range im.RepoTags {
			if !strings.HasPrefix(ref, "<none>") {
				all[ref], named = im.Labels, true
			}
		}
		if !named {
			all[im.ID] = im.Labels
		}
	}
	return all
}

// RemoveImage removes an image and the unnamed ones below it that nothing else
// needs. One that is not there is no error.
func (e *images) RemoveImage(ctx context.Context, ref string) error {
	err := e.change(ctx, long, func(ctx context.Context) error {
		_, err := e.api.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true})
		return err
	}, func(ctx context.Context) (bool, error) {
		_, there, err := e.ImageID(ctx, ref)
		return err == nil && !there, err
	})
	if err != nil && !errdefs.IsNotFound(err) {
		return fmt.Errorf("cannot remove image %q: %w", ref, err)
	}
	return nil
}

// SaveImages writes images as one archive that LoadImages reads.
func (e *images) SaveImages(ctx context.Context, w io.Writer, refs []string) error {
	body, err := e.api.ImageSave(ctx, refs)
	if err != nil {
		return fmt.Errorf("cannot save images: %w", e.lost(ctx, err))
	}
	_, err = io.Copy(w, body)
	if err := errors.Join(err, body.Close()); err != nil {
		return fmt.Errorf("cannot save images: %w", e.lost(ctx, err))
	}
	return nil
}

// LoadImages reads an archive of images and gives the references in it.
func (e *images) LoadImages(ctx context.Context, r io.Reader) ([]string, error) {
	answer, err := e.api.ImageLoad(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("cannot load images: %w", e.lost(ctx, err))
	}
	var refs []string
	err = follow(answer.Body, func(line string) {
		if ref, ok := strings.CutPrefix(line, "Loaded image: "); ok {
			refs = append(refs, ref)
		}
	})
	if err != nil {
		return refs, fmt.Errorf("cannot load images: %w", e.lost(ctx, err))
	}
	return refs, nil
}

// lost marks trouble on the way to the engine, in calls that may take any time and are not repeated.
func (e *conn) lost(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case transient(err):
		return fmt.Errorf("%w at %s: %w", sandbox.ErrUnreachable, e.host, err)
	}
	return err
}
