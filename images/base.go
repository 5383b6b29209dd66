package images

import (
	"context"
	"errors"
	"fmt"
	"time"

	"abl/internal/sandbox"
)

// How long a registry may stay silent. One that cannot be reached at all is
// given up soon; a slow one is not, as long as something moves.
const (
	firstSign = 15 * time.Second
	nextSign  = time.Minute
)

var errSilent = errors.New("no sign of life from the registry")

// makeBase takes the registry's base where one answers, and makes one out of
// Debian's mirror where none does.
func (m *Maker) makeBase(ctx context.Context, s seen) (ref string, labels map[string]string, err error) {
	digest, pullErr := m.pull(ctx)
	if ctx.Err() != nil {
		return "", nil, ctx.Err()
	}
	if pullErr == nil {
		return m.registryBase(ctx, s, digest)
	}
	m.say("base: no %s from a registry (%s)", registryBase, visible(pullErr.Error()))
	if why := m.cannotBootstrap(s.arch); why != nil {
		return "", nil, fmt.Errorf("%w: no base image: no registry answers (%s) and %w; do one of these: `abl images load FILE` with a file that `abl images save` wrote elsewhere; let the engine reach a registry (its own proxy or mirror setting); run abl as root on Debian or Ubuntu, where it makes the base itself",
			sandbox.ErrNoImage, visible(pullErr.Error()), why)
	}
	return m.mirrorBase(ctx, s)
}

// pull gives up on a registry that shows no sign of life.
func (m *Maker) pull(ctx context.Context) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(firstSign, func() { cancel(errSilent) })
	defer watch.Stop()
	m.say("base: pulling %s", registryBase)
	last := ""
	digest, err := m.Engine.Pull(ctx, registryBase, func(line string) {
		watch.Reset(nextSign)
		if line != last {
			m.say("base: %s", clean(line))
		}
		last = line
	})
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return "", errSilent
	}
	return digest, err
}

// registryBase puts abl's labels on what was pulled, pinned by its digest.
func (m *Maker) registryBase(ctx context.Context, s seen, digest string) (string, map[string]string, error) {
	r, err := baseRecipe(s.arch)
	if err != nil {
		return "", nil, err
	}
	r.parent = digest
	r = r.sealed(s.arch)
	labels := baseLabels(s, r, digest)
	return r.ref, labels, m.build(ctx, r, labels)
}

// baseLabels are a base's own; what stands upon it inherits where it came from.
func baseLabels(s seen, r recipe, origin string) map[string]string {
	l := r.labels()
	l[labelBase], l[labelRecipe], l[labelOrigin] = r.ref, s.recipe, origin
	return l
}
