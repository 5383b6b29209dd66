package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
)

// Container is one container on an engine. Callers use its methods in this order: Create or Make,
// Start, FirstLine, Remove.
type Container struct {
	Engine Engine
	ContainerConfig
	Expected *ContainerConfig // what the engine must report, nil for ContainerConfig
}

// ErrKilled means that something other than abl ended a container, such as the engine's own
// end. The result of such a container proves nothing, and abl can repeat it.
var ErrKilled = errors.New("a container was ended from outside")

// maxLine is the maximum size of a container's first line in bytes.
const maxLine = 256 << 10

// Create creates the container. The caller compares it with what the engine must report.
func (c Container) Create(ctx context.Context) error {
	_, err := c.Engine.Create(ctx, c.ContainerConfig)
	return HolderEnded(ctx, c.Engine, c.Reach.Join, err)
}

// Make creates the container and compares it with what the engine must report. It removes a container that
// differs. It is for containers in which no program checks the boundary from inside.
func (c Container) Make(ctx context.Context) error {
	if err := c.Create(ctx); err != nil {
		return err
	}
	expected := &c.ContainerConfig
	if c.Expected != nil {
		expected = c.Expected
	}
	proof, err := c.Engine.Prove(ctx, *expected)
	if err == nil {
		err = proof.Err()
	}
	if err = HolderEnded(ctx, c.Engine, c.Reach.Join, err); err != nil {
		return errors.Join(fmt.Errorf("container %q: %w", c.Name, err), c.Remove(context.WithoutCancel(ctx)))
	}
	return nil
}

// Replace removes an earlier container of this name and makes a new one.
func (c Container) Replace(ctx context.Context) error {
	if err := c.Remove(ctx); err != nil {
		return err
	}
	return c.Make(ctx)
}

// Start starts the container.
func (c Container) Start(ctx context.Context) error { return c.Engine.Start(ctx, c.Name) }

// FirstLine waits for the first line of one of abl's own programs, which it prints when it is
// ready. It fails if the program ends before.
func (c Container) FirstLine(ctx context.Context) ([]byte, error) {
	line, err := c.Engine.Head(ctx, c.Name, maxLine)
	if err == nil && !bytes.HasSuffix(line, []byte("\n")) {
		err = fmt.Errorf("%s ended before it was ready: %q", c.Name, line)
	}
	return line, err
}

// Remove ends the container and removes it. A missing container is not an error.
func (c Container) Remove(ctx context.Context) error { return c.Engine.Remove(ctx, c.Name) }

// HolderEnded returns an ErrKilled if err may be caused by the end of a network's holder, and err
// otherwise. The ErrKilled contains the text of err.
func HolderEnded(ctx context.Context, engine Engine, holder string, err error) error {
	if err == nil || holder == "" || errors.Is(err, ErrKilled) || errors.Is(err, context.Canceled) ||
		!Gone(context.WithoutCancel(ctx), engine, holder) {
		return err
	}
	return fmt.Errorf("%w: %s (%v)", ErrKilled, holder, err) //nolint:errorlint // callers must not find err in it
}

// Gone reports whether a container does not exist or does not run.
func Gone(ctx context.Context, engine Engine, name string) bool {
	st, err := engine.Status(ctx, name)
	return errors.Is(err, ErrNotFound) || err == nil && st.State != Running
}
