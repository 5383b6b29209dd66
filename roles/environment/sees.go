package environment

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/internal/helper"
	"abl/internal/sandbox"
	"abl/roles"
)

// ErrElsewhere means that an engine does not see the project's files.
var ErrElsewhere = errors.New("the engine does not see the project's files where abl sees them")

// sees proves that an engine sees a directory under the path at which abl
// sees it: it is asked for a box that mounts a file there whose name nobody can
// have guessed. An engine refuses that for a file that it does not find. abl in a
// container that was handed the engine's socket needs this, or one beside a remote
// engine that shares its files.
func sees(ctx context.Context, boxes *roles.Boxes, dir string) error {
	name := filepath.Join(dir, "nonce.tmp-"+rand.Text())
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		return fmt.Errorf("cannot try whether the engine sees the project: %w", err)
	}
	defer os.Remove(name)
	box := boxes.Tool("sees", boxes.Labels("helper", "", "", time.Now().Add(time.Minute)), "none")
	box.Mounts = []sandbox.Mount{{What: sandbox.CallIn, Source: name, Target: helper.In, ReadOnly: true}}
	if err := boxes.Engine.Remove(ctx, box.Name); err != nil {
		return err
	}
	_, err := boxes.Engine.Create(ctx, box)
	switch {
	case err == nil:
		return boxes.Engine.Remove(context.WithoutCancel(ctx), box.Name)
	case errors.Is(err, sandbox.ErrUnreachable), errors.Is(err, sandbox.ErrNoImage), ctx.Err() != nil:
		return err
	}
	return fmt.Errorf("%w: %q (%w)", ErrElsewhere, dir, err)
}
