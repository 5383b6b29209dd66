package images

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// seen is what an engine has, as far as planning needs it.
type seen struct {
	arch   string
	labels map[string]map[string]string // by reference
	recipe string                       // hash of how this abl makes a base
}

// base finds the base to build upon: the one that is there, or the one that
// something still there was built upon. A base out of a registry goes first.
func (s seen) base() (ref, origin string, ok bool) {
	for _, name := range slices.Sorted(maps.Keys(s.labels)) {
		l := s.labels[name]
		if l[labelRecipe] != s.recipe || l[labelBase] == "" {
			continue
		}
		if !ok || origin == fromMirror && l[labelOrigin] != fromMirror {
			ref, origin, ok = l[labelBase], l[labelOrigin], true
		}
	}
	return ref, origin, ok
}

// mirrorBase is Debian's minimal system as scripts/base.sh imports it, and
// fromMirror the origin of a base upon it.
const (
	mirrorBase = "abl/debian:" + suite
	fromMirror = "debootstrap"
)

// baseRecipe is what this abl does to make a base; where it comes from is
// added when it is known.
func baseRecipe(arch string) recipe {
	args := map[string]string{"registry": registryBase, "suite": suite}
	return recipe{name: "base", network: true, args: args, files: embedded("base")}.sealed(arch)
}

// standing gives the chain from the base, one known by reference or one still to be
// made, up to an agent's image, without the helper.
func standing(s seen, agent string) ([]recipe, error) {
	base := baseRecipe(s.arch)
	if ref, _, ok := s.base(); ok {
		base.ref = ref
	}
	tools := toolsRecipe(base.ref, s.arch)
	if agent == Tools {
		return []recipe{base, tools}, nil
	}
	if Version(agent) == "" {
		return nil, fmt.Errorf("cannot make an image for agent %q: abl has one for %s", agent, strings.Join(Agents(), ", "))
	}
	return []recipe{base, tools, agentRecipe(agent, tools.ref, s.arch)}, nil
}

// chain is everything that a want stands on, from the base up to the helper's layer.
func chain(s seen, want Want, helper entry) ([]recipe, error) {
	c, err := standing(s, want.Agent)
	if err != nil {
		return nil, err
	}
	if want.Dockerfile != "" {
		r, err := projectRecipe(want.Dockerfile, c[len(c)-1].ref)
		if err != nil {
			return nil, err
		}
		c = append(c, r.sealed(s.arch))
	}
	return append(c, runRecipe(c[len(c)-1], helper).sealed(s.arch)), nil
}

// labels are what an image of this recipe carries beside what it inherits.
func (r recipe) labels() map[string]string {
	return map[string]string{LabelImage: r.name, LabelInputs: r.inputs}
}

// labelLine is the Dockerfile instruction that sets labels. Names and values
// are abl's own words, digests and hashes, so that %q quotes as Dockerfiles do.
func labelLine(labels map[string]string) string {
	line := "LABEL"
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		line += fmt.Sprintf(" %s=%q", k, labels[k])
	}
	return line
}
