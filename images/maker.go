package images

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// Ensure returns the reference of the wanted image and builds the parts that are missing. Errors
// wrap sandbox.ErrNoImage if an image cannot be built, and ErrHelper or ErrDockerfile if the user
// must fix something.
func (m *Maker) Ensure(ctx context.Context, want Want) (string, error) {
	var s seen
	var file entry
	var c []recipe
	look := func() (err error) {
		s, file, err = m.lookWith(ctx, helper.HelperCmd)
		if err == nil && isForeign(want.Agent) {
			s.foreign, err = m.foreign(ctx, want.Agent)
		}
		if err == nil {
			c, err = chain(s, want, file)
		}
		return err
	}
	err := m.fromArchive(ctx, func() (bool, error) {
		err := look()
		return err == nil && downloads(s, c), err
	})
	if err == nil {
		err = look()
	}
	if err != nil {
		return "", err
	}
	// The names of the images depend on the base.
	if missing := plan(s, c); len(missing) == len(c) && s.foreign == "" {
		if err := m.allowed(missing); err != nil {
			return "", err
		}
		ref, labels, err := m.makeBase(ctx, s)
		if err != nil {
			return "", err
		}
		// Images on an older base are stale.
		s.labels = map[string]map[string]string{ref: labels}
		if c, err = chain(s, want, file); err != nil {
			return "", err
		}
	}
	return m.makeAll(ctx, s, c)
}

// foreign returns the id of an image of a registry, and pulls it if the engine lacks it.
func (m *Maker) foreign(ctx context.Context, ref string) (id string, err error) {
	id, ok, err := m.Engine.ImageID(ctx, ref)
	if ok || err != nil {
		return id, err
	}
	if m.Offline {
		return "", fmt.Errorf("%w: %s, and abl is offline: run `docker pull %[2]s` once with a network", sandbox.ErrNoImage,
			ref)
	}
	m.say("%s: pulling", ref)
	begun := time.Now()
	if _, err := m.Engine.Pull(ctx, ref, func(line string) { m.Report(begun, ref+": "+clean(line)) }); err != nil {
		return "", fmt.Errorf("%w: %s: %w", sandbox.ErrNoImage, ref, err)
	}
	if id, ok, err = m.Engine.ImageID(ctx, ref); err == nil && !ok {
		err = fmt.Errorf("%w: %s is missing after it was pulled", sandbox.ErrNoImage, ref)
	}
	return id, err
}

// Holder returns the reference of the holder's image and builds it if it is missing.
func (m *Maker) Holder(ctx context.Context) (string, error) {
	return m.alone(ctx, helper.HelperCmd, holderRecipe)
}

// Gateway returns the reference of the gateway's image and builds it if it is missing.
func (m *Maker) Gateway(ctx context.Context) (string, error) {
	return m.alone(ctx, helper.Gateway, gatewayRecipe)
}

// alone returns the reference of an image without a base that contains one of abl's programs.
func (m *Maker) alone(ctx context.Context, program string, of func(entry) recipe) (string, error) {
	s, file, err := m.lookWith(ctx, program)
	if err != nil {
		return "", err
	}
	return m.makeAll(ctx, s, []recipe{of(file).sealed(s.arch)})
}

// plan returns the images of a chain to build: those after the last one that the engine has. A
// chain begins with the base; each image is based on the one before it.
func plan(s seen, chain []recipe) []recipe {
	for i, r := range slices.Backward(chain) {
		if _, have := s.labels[r.ref]; have {
			return chain[i+1:]
		}
	}
	return chain
}

// downloads reports whether building the missing images of a chain needs a network.
func downloads(s seen, c []recipe) bool {
	return slices.ContainsFunc(plan(s, c), func(r recipe) bool { return r.network })
}

// makeAll builds the missing images of a chain and returns the reference of the last one.
func (m *Maker) makeAll(ctx context.Context, s seen, c []recipe) (string, error) {
	missing := plan(s, c)
	if err := m.allowed(missing); err != nil {
		return "", err
	}
	for _, r := range missing {
		if err := m.build(ctx, r, r.labels()); err != nil {
			return "", err
		}
	}
	if m.Used != nil {
		var refs []string
		for _, r := range c {
			refs = append(refs, r.ref)
		}
		m.Used(refs)
	}
	return c[len(c)-1].ref, nil
}

// allowed refuses a plan that needs a network with Offline.
func (m *Maker) allowed(missing []recipe) error {
	for _, r := range missing {
		if m.Offline && r.network {
			return fmt.Errorf("%w: %s, and abl is offline: run `abl images load FILE` with a file that `abl images save` wrote, "+
				"or `abl images build` once with a network", sandbox.ErrNoImage, r.ref)
		}
	}
	return nil
}

// look returns the engine's architecture and abl's images on it.
func (m *Maker) look(ctx context.Context) (seen, error) {
	info, err := m.Engine.Info(ctx)
	if err != nil {
		return seen{}, err
	}
	arch := goArch(info.Arch)
	if npmArch[arch] == "" {
		return seen{}, fmt.Errorf("cannot make images for engine architecture %q: want amd64 or arm64", arch)
	}
	all, sizes, err := m.Engine.ListImages(ctx, LabelImage)
	if err != nil {
		return seen{}, err
	}
	s := seen{arch: arch, recipe: baseRecipe(arch).inputs, labels: map[string]map[string]string{}, sizes: sizes}
	for ref, l := range all {
		// Leftovers of builds inherit the labels of their parents, but have no name.
		if strings.HasPrefix(ref, "abl/") && l[labelStage] == "" {
			s.labels[ref] = l
		}
	}
	return s, nil
}

// goArch converts a kernel's name of an architecture to Go's.
func goArch(arch string) string {
	return cmp.Or(map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[arch], arch)
}

// lookWith calls look, and reads a program for the engine.
func (m *Maker) lookWith(ctx context.Context, program string) (seen, entry, error) {
	s, err := m.look(ctx)
	if err != nil {
		return s, entry{}, err
	}
	file, err := m.read(program, s.arch)
	return s, file, err
}

// Report reports the current step and its start as progress.
func (m *Maker) Report(since time.Time, what string) {
	if m.Progress != nil {
		m.Progress(since, what)
	}
}

func (m *Maker) say(format string, args ...any) {
	if m.Out != nil {
		m.Out(fmt.Sprintf(format, args...))
	}
}
