package images

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/internal/toolchain"
)

// Status returns all images of this version of abl and whether the engine has them. If abl-cmd or
// abl-gateway cannot be used, it omits the images with that program and returns the error.
func (m *Maker) Status(ctx context.Context) ([]State, error) {
	s, err := m.look(ctx)
	if err != nil {
		return nil, err
	}
	all := catalogue(s)
	file, helperErr := m.read(helper.HelperCmd, s.arch)
	if helperErr == nil {
		tops := []recipe{holderRecipe(file).sealed(s.arch)}
		for _, below := range all[1:] {
			tops = append(tops, runRecipe(below, file).sealed(s.arch))
		}
		all = append(all, tops...)
	}
	gateway, gatewayErr := m.read(helper.Gateway, s.arch)
	if gatewayErr == nil {
		all = append(all, gatewayRecipe(gateway).sealed(s.arch))
	}
	_, origin, known := s.base()
	var out []State
	for _, r := range all {
		st := State{Name: r.name, Origin: origin}
		bare := r.name == holderImage || r.name == gatewayImage
		if bare {
			st.Origin = ""
		}
		if known || bare {
			_, st.Have = s.labels[r.ref]
			st.Ref = r.ref
		}
		out = append(out, st)
	}
	if err := errors.Join(helperErr, gatewayErr); err != nil { // which images are old is unknown
		return out, err
	}
	return withOthers(s, out), nil
}

// withOthers adds sizes, and abl's other images on the engine.
func withOthers(s seen, all []State) []State {
	current := map[string]bool{mirrorBase: true}
	for i, st := range all {
		current[st.Ref] = true
		if st.Have {
			all[i].Size = s.sizes[st.Ref]
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(s.labels)) {
		if l := s.labels[ref]; !current[ref] {
			all = append(all, State{
				Name:   l[LabelImage],
				Ref:    ref,
				Have:   true,
				Origin: l[labelOrigin],
				Size:   s.sizes[ref],
				Old:    true,
			})
		}
	}
	return all
}

// Prune deletes the images that this version of abl does not make for any project, except those in
// used, and returns their references.
func (m *Maker) Prune(ctx context.Context, used map[string]bool) (gone []string, err error) {
	all, err := m.Status(ctx)
	if err != nil {
		return nil, err
	}
	for _, st := range all {
		if !st.Old || used[st.Ref] {
			continue
		}
		if rerr := m.Engine.RemoveImage(ctx, st.Ref); rerr != nil {
			err = errors.Join(err, rerr)
		} else {
			gone = append(gone, st.Ref)
		}
	}
	return gone, err
}

// catalogue returns the base, the tools and all agents' images, and those images of toolchains, and
// of agents on them, that the engine has.
func catalogue(s seen) []recipe {
	c, _ := layersFor(s, Want{Agent: Tools})
	for _, ref := range slices.Sorted(maps.Keys(s.labels)) {
		if name := s.labels[ref][LabelImage]; toolchain.Named(name) {
			c = append(c, recipe{name: name, ref: ref})
		}
	}
	for i, on := range slices.Clone(c[1:]) {
		for _, agent := range Agents() {
			if agent == Tools {
				continue
			}
			r := agentRecipe(agent, "", on.ref, s.arch)
			if _, have := s.labels[r.ref]; have || i == 0 {
				c = append(c, r)
			}
		}
	}
	return c
}

// Save writes the images of the named agents, with their bases, as an archive for Load, and returns
// their references. Without names it writes all images, and fails if the base or a usual one is
// missing. It builds no image. The bytes of one image are the same each time; the order of several
// is not.
func (m *Maker) Save(ctx context.Context, w io.Writer, named ...string) ([]string, error) {
	s, err := m.look(ctx)
	if err != nil {
		return nil, err
	}
	wanted := named
	if len(named) == 0 {
		wanted = append(Usual(), "base")
	}
	var refs, missing []string
	for _, r := range catalogue(s) {
		needed := slices.Contains(wanted, r.name)
		switch _, ok := s.labels[r.ref]; {
		case ok && (needed || len(named) == 0):
			refs = append(refs, r.ref)
		case !ok && needed:
			missing = append(missing, r.name)
		}
	}
	if len(missing) > 0 {
		first := strings.TrimSpace("abl images build " + strings.Join(named, " "))
		return nil, fmt.Errorf("%w: %s: run `%s` first", sandbox.ErrNoImage, strings.Join(missing, ", "), first)
	}
	if err := m.Engine.SaveImages(ctx, w, refs); err != nil {
		return nil, err
	}
	return refs, nil
}

// Load reads an archive that Save wrote, and returns the references of its images.
func (m *Maker) Load(ctx context.Context, r io.Reader) ([]string, error) {
	names, err := m.Engine.LoadImages(ctx, r)
	if err != nil {
		return names, err
	}
	s, err := m.look(ctx)
	if err != nil {
		return names, err
	}
	if _, _, ok := s.base(); !ok {
		return names, fmt.Errorf("%w: the file has no base image of this version of abl: "+
			"write it with `abl images save` of the same version", sandbox.ErrNoImage)
	}
	return names, nil
}

// Remove removes abl's images of the named agents and languages, or all, and returns their
// references. The error names images that a container uses; they stay. An image that is the base of
// others loses its name, and the engine removes it with the last of them.
func (m *Maker) Remove(ctx context.Context, named ...string) ([]string, error) {
	all, _, err := m.Engine.ListImages(ctx, LabelImage)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(all, func(_ string, labels map[string]string) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(labels[LabelImage], runPrefix), "-")
		return len(named) > 0 && !slices.Contains(named, name)
	})
	var gone []string
	var failed []error
	for _, ref := range slices.Sorted(maps.Keys(all)) {
		if err := m.Engine.RemoveImage(ctx, ref); err != nil {
			failed = append(failed, err)
		} else {
			gone = append(gone, ref)
		}
	}
	return gone, errors.Join(failed...)
}
