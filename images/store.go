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

// Status gives every image of this abl and whether the engine has it. Those
// that carry a program of abl's own are left out when that cannot be used, and
// the error says why.
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

// withOthers adds the sizes, and the other images of abl's that are there.
func withOthers(s seen, all []State) []State {
	current := map[string]bool{mirrorBase: true}
	for i, st := range all {
		if current[st.Ref] = true; st.Have {
			all[i].Size = s.sizes[st.Ref]
		}
	}
	for _, ref := range slices.Sorted(maps.Keys(s.labels)) {
		if l := s.labels[ref]; !current[ref] {
			all = append(all, State{Name: l[LabelImage], Ref: ref, Have: true, Origin: l[labelOrigin], Size: s.sizes[ref],
				Old: true})
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

// catalogue is base, tools and every agent's image, and of toolchains what is there with
// the agents on it, each once, and the images of agents of the user's own that are there.
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

// Save writes the images of the named agents, which hold what they stand on, as one archive
// that Load reads, and gives their references; unless any is named, all that are there, and
// base and the usual ones must be. It makes nothing. Of one image the engine's bytes are the
// same each time, of several their order is not.
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

// Load reads an archive that Save wrote, and gives the references it held.
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
		return names, fmt.Errorf("%w: the file holds no base of this abl: let the same abl write it with `abl images save`",
			sandbox.ErrNoImage)
	}
	return names, nil
}

// Remove takes images of abl's off the engine and gives what went: those of the named
// agents and languages, or every one. An image that a container uses stays and is in the error. One
// that others stand on loses its name, and goes with the last of these.
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
