package images

import (
	"context"
	"errors"
	"fmt"
	"time"

	"abl/internal/redact"
	"abl/internal/sandbox"
)

// How long a registry may stay silent. One that cannot be reached at all is
// given up soon; a slow one is not, as long as something moves.
const (
	firstSign = 15 * time.Second
	nextSign  = time.Minute
)

var errSilent = errors.New("no sign of life from the registry")

// makeBase stands on the registry's Debian where a registry answers, and else on the
// one that scripts/base.sh imported.
func (m *Maker) makeBase(ctx context.Context, s seen) (ref string, labels map[string]string, err error) {
	r := baseRecipe(s.arch)
	origin, err := m.pull(ctx)
	r.parent = origin
	if _, imported := s.labels[mirrorBase]; err != nil && imported && ctx.Err() == nil {
		m.say("base: no registry answers; standing on %s", mirrorBase)
		r.parent, origin, err = mirrorBase, fromMirror, nil
	}
	if err != nil {
		return "", nil, noBase(ctx, err)
	}
	r = r.sealed(s.arch)
	labels = r.labels()
	// What stands upon it inherits where it came from.
	labels[labelBase], labels[labelRecipe], labels[labelOrigin] = r.ref, s.recipe, origin
	return r.ref, labels, m.build(ctx, r, labels)
}

func noBase(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return fmt.Errorf("%w: no base image: no registry answers (%s); do one of these: `abl images load FILE` with a file that `abl images save` wrote elsewhere; let the engine reach a registry (its own proxy or mirror setting); run scripts/base.sh of abl's repository as root on Debian or Ubuntu, which makes a base",
		sandbox.ErrNoImage, redact.Line(err.Error()))
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
