package docker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"abl/internal/sandbox"
)

// ImageID gives the id of an image that the engine has; ok is false when it has none of this name.
func (e *stores) ImageID(ctx context.Context, ref string) (id string, ok bool, err error) {
	found, err := e.inspectImage(ctx, ref)
	if errdefs.IsNotFound(err) {
		return "", false, nil
	}
	return found.ID, err == nil, about(err, "cannot look for an image")
}

func (e *stores) inspectImage(ctx context.Context, ref string) (image.InspectResponse, error) {
	look := func(ctx context.Context, ref string) (image.InspectResponse, error) {
		return e.api.ImageInspect(ctx, ref)
	}
	found, err := get(ctx, e.conn, look, ref)
	return found, about(err, "image %q", ref)
}

// Pull takes an image from its registry, with the credentials of the user's Docker config, and
// returns it pinned, as name@digest. It waits as long as ctx lets it; progress gets a line whenever
// there is more of a layer.
func (e *stores) Pull(ctx context.Context, ref string, progress func(string)) (digest string, err error) {
	host, err := registryOf(ref)
	if err != nil {
		return "", fmt.Errorf("cannot pull image %q: %w", ref, err)
	}
	auth, why := e.logins.of(ctx, host) // without credentials the image may be public
	header, err := encoded(auth)
	if err == nil {
		err = e.work(ctx, progress, func(ctx context.Context) (io.ReadCloser, error) {
			return e.api.ImagePull(ctx, ref, image.PullOptions{RegistryAuth: header})
		})
	}
	if err != nil {
		return "", fmt.Errorf("cannot pull image %q: %w", ref, unauthorized(err, host, header != "", why))
	}
	found, err := e.inspectImage(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("cannot look at what was pulled: %w", err)
	}
	if len(found.RepoDigests) == 0 {
		return "", fmt.Errorf("cannot pin image %q: the engine knows no digest of it", ref)
	}
	return found.RepoDigests[0], nil
}

// Build builds the file Dockerfile of a tar archive, with the credentials of the user's Docker
// config for the images that it names. progress gets every line that the build prints.
func (e *stores) Build(ctx context.Context, tar io.Reader, b sandbox.ImageBuild, progress func(string)) error {
	o := build.ImageBuildOptions{
		Tags: []string{b.Ref}, BuildArgs: map[string]*string{}, NetworkMode: b.Network,
		Remove: true, ForceRemove: true, Version: build.BuilderV1,
	}
	for name, value := range b.Args {
		o.BuildArgs[name] = &value
	}
	if b.BuildKit && e.buildKit {
		return e.buildWithBuildKit(ctx, tar, o, progress)
	}
	known, why := e.logins.forImages(ctx, b.Images)
	o.AuthConfigs = known
	err := e.work(ctx, progress, func(ctx context.Context) (io.ReadCloser, error) {
		answer, err := e.api.ImageBuild(ctx, tar, o)
		return answer.Body, err
	})
	if err != nil {
		err = errors.Join(err, why)
	}
	return err
}

// buildWithBuildKit builds with BuildKit, which asks for credentials in a session.
func (e *stores) buildWithBuildKit(ctx context.Context, tar io.Reader, o build.ImageBuildOptions, progress func(string)) error {
	o.Version = build.BuilderBuildKit
	return e.once(ctx, endless, func(ctx context.Context) error {
		s, err := e.openSession(ctx)
		if err != nil {
			return err
		}
		o.SessionID = s.id
		answer, err := e.api.ImageBuild(ctx, tar, o)
		if err == nil {
			err = follow(answer.Body, progress)
		}
		why := s.close()
		if err != nil {
			err = errors.Join(err, why)
		}
		return err
	})
}

// ListImages gives the labels of every image that has the label, by each of
// its references, or by id where it has none.
func (e *stores) ListImages(ctx context.Context, label string) (map[string]map[string]string, error) {
	labelled := image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label))}
	found, err := get(ctx, e.conn, e.api.ImageList, labelled)
	return byReference(found), about(err, "cannot list images")
}

func byReference(found []image.Summary) map[string]map[string]string {
	all := map[string]map[string]string{}
	for _, im := range found {
		refs := slices.DeleteFunc(im.RepoTags, func(ref string) bool {
			return strings.HasPrefix(ref, "<none>")
		})
		if len(refs) == 0 {
			refs = []string{im.ID}
		}
		for _, ref := range refs {
			all[ref] = im.Labels
		}
	}
	return all
}

// RemoveImage removes an image and the unnamed ones below it that nothing else
// needs. One that is not there is no error.
func (e *stores) RemoveImage(ctx context.Context, ref string) error {
	err := e.do(ctx, long, func(ctx context.Context) error {
		_, err := e.api.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true})
		return err
	})
	if errdefs.IsNotFound(err) {
		return nil
	}
	return about(err, "cannot remove image %q", ref)
}

// SaveImages writes images as one archive that LoadImages reads.
func (e *stores) SaveImages(ctx context.Context, w io.Writer, refs []string) error {
	err := e.once(ctx, endless, func(ctx context.Context) error {
		body, err := e.api.ImageSave(ctx, refs)
		if err != nil {
			return err
		}
		_, err = io.Copy(w, body)
		return errors.Join(err, body.Close())
	})
	return about(err, "cannot save images")
}

// LoadImages reads an archive of images and gives the references in it.
func (e *stores) LoadImages(ctx context.Context, r io.Reader) (refs []string, err error) {
	loaded := func(line string) {
		if ref, ok := strings.CutPrefix(line, "Loaded image: "); ok {
			refs = append(refs, ref)
		}
	}
	err = e.work(ctx, loaded, func(ctx context.Context) (io.ReadCloser, error) {
		answer, err := e.api.ImageLoad(ctx, r)
		return answer.Body, err
	})
	return refs, about(err, "cannot load images")
}

// work has an engine work on an image, as long as ctx lets it, and hands on its lines.
func (e *stores) work(ctx context.Context, progress func(string), start func(context.Context) (io.ReadCloser, error)) error {
	return e.once(ctx, endless, func(ctx context.Context) error {
		body, err := start(ctx)
		if err != nil {
			return err
		}
		return follow(body, progress)
	})
}

// message is one of the JSON documents an engine sends while it works on an
// image. Classic builds speak in Stream, BuildKit in Aux, pulls and loads in Status.
type message struct {
	Stream string                           `json:"stream"`
	Status string                           `json:"status"`
	ID     string                           `json:"id"`
	Error  string                           `json:"error"`
	Bytes  struct{ Current, Total float64 } `json:"progressDetail"`
	Detail struct {
		Message string `json:"message"`
	} `json:"errorDetail"`
	Aux json.RawMessage `json:"aux"`
}

// follow reads an engine's messages to their end, hands on each line and
// gives the error the engine reports: the HTTP status said OK long before.
func follow(body io.ReadCloser, progress func(string)) (err error) {
	defer func() { err = errors.Join(err, body.Close()) }()
	say := func(line string) {
		if line != "" && progress != nil {
			progress(line)
		}
	}
	in, steps := json.NewDecoder(body), trace{say: say, steps: map[string]*vertex{}}
	var rest string // a line whose end has not come yet
	for {
		var m message
		switch err := in.Decode(&m); {
		case errors.Is(err, io.EOF):
			say(rest)
			return nil
		case err != nil:
			return fmt.Errorf("cannot read the engine's answer: %w", err)
		}
		if fault := cmp.Or(m.Detail.Message, m.Error); fault != "" {
			say(rest)
			return errors.New(fault)
		}
		if m.ID == traceID {
			if err := steps.read(m.Aux); err != nil {
				return fmt.Errorf("cannot read BuildKit's report: %w", err)
			}
			continue
		}
		// A program that draws a bar returns to its line's start.
		lines := strings.Split(strings.ReplaceAll(rest+m.Stream, "\r", "\n"), "\n")
		for _, line := range lines[:len(lines)-1] {
			say(line)
		}
		if rest = lines[len(lines)-1]; len(rest) >= longLine {
			say(rest)
			rest = ""
		}
		if m.Bytes.Total > 0 {
			m.Status += fmt.Sprintf(" %.1f of %.1f MB", m.Bytes.Current/1e6, m.Bytes.Total/1e6)
		}
		if m.Status != "" {
			say(strings.TrimPrefix(m.ID+": "+m.Status, ": "))
		}
	}
}

// longLine bounds what is kept of a line that does not end, in bytes.
const longLine = 64 << 10
