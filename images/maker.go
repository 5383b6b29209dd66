package images

import (
	"context"
	"fmt"
	"strings"

	"abl/internal/sandbox"
)

// Ensure gives the reference of the image a box runs, its helper on top, and
// makes what of it is missing. It wraps sandbox.ErrNoImage when the image is
// missing and cannot be made, ErrHelper and ErrDockerfile for a person's to mend.
func (m *Maker) Ensure(ctx context.Context, want Want) (string, error) {
	s, helper, err := m.lookWithHelper(ctx)
	if err != nil {
		return "", err
	}
	s, err = m.ensureBase(ctx, s, want, helper)
	if err != nil {
		return "", err
	}
	c, err := chain(s, want, helper)
	if err != nil {
		return "", err
	}
	return m.makeAll(ctx, s, c)
}

// Holder gives the reference of the image that holds namespaces and scratch volumes.
func (m *Maker) Holder(ctx context.Context) (string, error) {
	s, helper, err := m.lookWithHelper(ctx)
	if err != nil {
		return "", err
	}
	r, err := holderRecipe(helper)
	if err != nil {
		return "", err
	}
	return m.makeAll(ctx, s, []recipe{r.sealed(s.arch)})
}

// Gateway gives the reference of the image of the sidecar that stands between a
// role and the providers. Only who asks for it needs the gateway's program.
func (m *Maker) Gateway(ctx context.Context) (string, error) {
	s, err := m.look(ctx)
	if err != nil {
		return "", err
	}
	gateway, err := m.read(m.gatewayProgram(), s.arch)
	if err != nil {
		return "", err
	}
	r, err := gatewayRecipe(gateway)
	if err != nil {
		return "", err
	}
	return m.makeAll(ctx, s, []recipe{r.sealed(s.arch)})
}

// ensureBase makes the base when the want cannot do without: only then is it
// known what the rest is called.
func (m *Maker) ensureBase(ctx context.Context, s seen, want Want, helper entry) (seen, error) {
	c, err := chain(s, want, helper)
	if err != nil {
		return s, err
	}
	steps := plan(s.refs(), c...)
	if len(steps) < len(c) {
		return s, nil
	}
	if err := m.allowed(steps); err != nil {
		return s, err
	}
	ref, labels, err := m.makeBase(ctx, s)
	if err != nil {
		return s, err
	}
	// A base that is not the one remembered makes what stood on the old one stale.
	s.labels = map[string]map[string]string{ref: labels}
	return s, nil
}

func (m *Maker) makeAll(ctx context.Context, s seen, c []recipe) (string, error) {
	steps := plan(s.refs(), c...)
	if err := m.allowed(steps); err != nil {
		return "", err
	}
	for _, st := range steps {
		if err := m.build(ctx, st.recipe, nil); err != nil {
			return "", err
		}
	}
	return c[len(c)-1].ref, nil
}

// allowed refuses a plan that needs a network abl was told to do without.
func (m *Maker) allowed(steps []step) error {
	if !m.Offline {
		return nil
	}
	for _, st := range steps {
		if st.recipe.network {
			return fmt.Errorf("%w: %s, and abl is offline: run `abl images load FILE` with a file that `abl images save` wrote, or `abl images build` once with a network", sandbox.ErrNoImage, st.recipe.ref)
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
	base, err := baseRecipe(arch)
	if err != nil {
		return seen{}, err
	}
	all, err := m.Engine.ListImages(ctx, LabelImage)
	if err != nil {
		return seen{}, err
	}
	s := seen{arch: arch, recipe: base.inputs, labels: map[string]map[string]string{}}
	for ref, l := range all {
		// What a build left behind inherits the labels of its parent and has no name.
		if strings.HasPrefix(ref, "abl/") && l[labelStage] == "" {
			s.labels[ref] = l
		}
	}
	return s, nil
}

func (m *Maker) lookWithHelper(ctx context.Context) (seen, entry, error) {
	s, err := m.look(ctx)
	if err != nil {
		return s, entry{}, err
	}
	helper, err := m.helper(s.arch)
	return s, helper, err
}

// goArch turns what a kernel calls its machine into Go's word.
func goArch(arch string) string {
	switch arch {
	case "x86_64":
		return "amd64"
	case "aarch64":
		return "arm64"
	}
	return arch
}

func (m *Maker) say(format string, args ...any) {
	if m.Out != nil {
		m.Out(fmt.Sprintf(format, args...))
	}
}

func (m *Maker) env(name string) string {
	if m.Env == nil {
		return ""
	}
	return m.Env(name)
}
