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

// Ensure gives the reference of the image a box runs, its helper on top, and
// makes what of it is missing. It wraps sandbox.ErrNoImage when the image is
// missing and cannot be made, ErrHelper and ErrDockerfile for what the user has to fix.
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
	// Without a base it is not known what the rest is called.
	if missing := plan(s, c); len(missing) == len(c) && s.foreign == "" {
		if err := m.allowed(missing); err != nil {
			return "", err
		}
		ref, labels, err := m.makeBase(ctx, s)
		if err != nil {
			return "", err
		}
		// A base that is not the one remembered makes what stood on the old one stale.
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
	if _, err := m.Engine.Pull(ctx, ref, func(line string) { m.Tell(begun, ref+": "+clean(line)) }); err != nil {
		return "", fmt.Errorf("%w: %s: %w", sandbox.ErrNoImage, ref, err)
	}
	if id, ok, err = m.Engine.ImageID(ctx, ref); err == nil && !ok {
		err = fmt.Errorf("%w: %s is missing after it was pulled", sandbox.ErrNoImage, ref)
	}
	return id, err
}

// Holder gives the reference of the image that holds namespaces.
func (m *Maker) Holder(ctx context.Context) (string, error) {
	return m.alone(ctx, helper.HelperCmd, holderRecipe)
}

// Gateway gives the reference of the image of the sidecar that stands between a
// role and the providers. Only who asks for it needs the gateway's program.
func (m *Maker) Gateway(ctx context.Context) (string, error) {
	return m.alone(ctx, helper.Gateway, gatewayRecipe)
}

// alone gives an image that holds one of abl's programs and stands on nothing.
func (m *Maker) alone(ctx context.Context, program string, of func(entry) recipe) (string, error) {
	s, file, err := m.lookWith(ctx, program)
	if err != nil {
		return "", err
	}
	return m.makeAll(ctx, s, []recipe{of(file).sealed(s.arch)})
}

// plan goes from the wanted image down to the first one that the engine has,
// and gives what has to be made from there up. The chain is ordered from the
// base upwards; each stands on the one before it.
func plan(s seen, chain []recipe) []recipe {
	for i, r := range slices.Backward(chain) {
		if _, have := s.labels[r.ref]; have {
			return chain[i+1:]
		}
	}
	return chain
}

// downloads reports whether an image of the chain is missing that cannot be made without a network.
func downloads(s seen, c []recipe) bool {
	return slices.ContainsFunc(plan(s, c), func(r recipe) bool { return r.network })
}

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

// look asks the engine what it is and which of abl's images it has.
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
		// What a build left behind inherits the labels of its parent and has no name.
		if strings.HasPrefix(ref, "abl/") && l[labelStage] == "" {
			s.labels[ref] = l
		}
	}
	return s, nil
}

// goArch turns what a kernel calls its machine into Go's word.
func goArch(arch string) string {
	return cmp.Or(map[string]string{"x86_64": "amd64", "aarch64": "arm64"}[arch], arch)
}

// lookWith is look, and a program of abl's for the engine.
func (m *Maker) lookWith(ctx context.Context, program string) (seen, entry, error) {
	s, err := m.look(ctx)
	if err != nil {
		return s, entry{}, err
	}
	file, err := m.read(program, s.arch)
	return s, file, err
}

// Tell says what goes on this moment, since when, to whoever follows that.
func (m *Maker) Tell(since time.Time, what string) {
	if m.Progress != nil {
		m.Progress(since, what)
	}
}

func (m *Maker) say(format string, args ...any) {
	if m.Out != nil {
		m.Out(fmt.Sprintf(format, args...))
	}
}
