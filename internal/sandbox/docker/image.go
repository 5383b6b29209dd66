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

// ImageID returns the id of an image. It returns false if the engine does not have the image.
func (e *stores) ImageID(ctx context.Context, ref string) (id string, ok bool, err error) {
	found, err := e.inspectImage(ctx, ref)
	if errdefs.IsNotFound(err) {
		return "", false, nil
	}
	return found.ID, err == nil, about(err, "cannot inspect an image")
}

func (e *stores) inspectImage(ctx context.Context, ref string) (image.InspectResponse, error) {
	look := func(ctx context.Context, ref string) (image.InspectResponse, error) {
		return e.api.ImageInspect(ctx, ref)
	}
	found, err := get(ctx, e.conn, look, ref)
	return found, about(err, "image %q", ref)
}

// Pull pulls an image with the credentials of the user's Docker config and returns it as
// name@digest. progress is called for each progress report. ctx limits the time.
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
		return "", fmt.Errorf("cannot inspect the pulled image: %w", err)
	}
	if len(found.RepoDigests) == 0 {
		return "", fmt.Errorf("cannot pin image %q: the engine reports no digest", ref)
	}
	return found.RepoDigests[0], nil
}

// Build builds the Dockerfile of a tar archive with the credentials of the user's Docker config.
// progress is called for each line of output.
func (e *stores) Build(ctx context.Context, tar io.Reader, b sandbox.ImageBuild, progress func(string)) error {
	o := build.ImageBuildOptions{
		Tags:        []string{b.Ref},
		BuildArgs:   map[string]*string{},
		NetworkMode: b.Network,
		Remove:      true,
		ForceRemove: true,
		Version:     build.BuilderV1,
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

// buildWithBuildKit builds with BuildKit, which requests credentials in a session.
func (e *stores) buildWithBuildKit(ctx context.Context, tar io.Reader, o build.ImageBuildOptions,
	progress func(string)) error {
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

// ListImages returns the labels and the sizes in bytes of all images with a label, by reference or,
// for untagged images, by id.
func (e *stores) ListImages(ctx context.Context,
	label string) (labels map[string]map[string]string, sizes map[string]int64, err error) {
	labelled := image.ListOptions{Filters: filters.NewArgs(filters.Arg("label", label))}
	found, err := get(ctx, e.conn, e.api.ImageList, labelled)
	labels, sizes = byReference(found)
	return labels, sizes, about(err, "cannot list images")
}

// byReference returns the labels and the size of each image by each of its references, or by id if
// it has none.
func byReference(found []image.Summary) (map[string]map[string]string, map[string]int64) {
	labels, sizes := map[string]map[string]string{}, map[string]int64{}
	for _, im := range found {
		refs := slices.DeleteFunc(im.RepoTags, func(ref string) bool {
			return strings.HasPrefix(ref, "<none>")
		})
		if len(refs) == 0 {
			refs = []string{im.ID}
		}
		for _, ref := range refs {
			labels[ref], sizes[ref] = im.Labels, im.Size
		}
	}
	return labels, sizes
}

// RemoveImage removes an image and its unused untagged parents. A missing image is not an error.
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

// SaveImages writes images as one archive for LoadImages.
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

// LoadImages loads an archive of images and returns their references.
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

// work sends a request for an image without a time limit other than ctx, and passes the engine's
// lines on.
func (e *stores) work(ctx context.Context, progress func(string),
	start func(context.Context) (io.ReadCloser, error)) error {
	return e.once(ctx, endless, func(ctx context.Context) error {
		body, err := start(ctx)
		if err != nil {
			return err
		}
		return follow(body, progress)
	})
}

// message is a JSON document that an engine sends during an image request. Classic builds use
// Stream, BuildKit Aux, pulls and loads Status.
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

// follow reads an engine's messages to the end and passes each line to progress. The engine sends
// its HTTP status before it begins, so a failure is one of the messages. follow returns it.
func follow(body io.ReadCloser, progress func(string)) (err error) {
	defer func() { err = errors.Join(err, body.Close()) }()
	say := func(line string) {
		if line != "" && progress != nil {
			progress(line)
		}
	}
	in := json.NewDecoder(body)
	steps := trace{say: say, steps: map[string]*vertex{}}
	var rest string // an incomplete line
	for {
		var m message
		switch err := in.Decode(&m); {
		case errors.Is(err, io.EOF):
			say(rest)
			return nil
		case err != nil:
			return fmt.Errorf("cannot read the engine's response: %w", err)
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
		// Progress bars use carriage returns.
		lines := strings.Split(strings.ReplaceAll(rest+m.Stream, "\r", "\n"), "\n")
		for _, line := range lines[:len(lines)-1] {
			say(line)
		}
		rest = lines[len(lines)-1]
		if len(rest) >= longLine {
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

// longLine is the maximum length of a line in bytes. Longer ones are split.
const longLine = 64 << 10
