package sandboxtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"abl/internal/sandbox"
)

// feeds is the number of writes to a container that its script may leave unread.
const feeds = 64

// Feed writes data to the standard input of a running container.
func (e *Engine) Feed(ctx context.Context, name string, data []byte) error {
	return e.call("Feed", name, func() error {
		b, err := e.find(name)
		switch {
		case err == nil && !b.Stdin:
			err = errors.New("it was created without a standard input")
		case err == nil && b.status.State != sandbox.Running:
			err = errors.New("it does not run")
		}
		if err != nil {
			return about(err, "cannot write to container %q", name)
		}
		if listens(b.ContainerConfig) {
			b.print(fmt.Sprintf("%s word %d\n", bytes.TrimSpace(data), e.Arrived))
			return nil
		}
		select {
		case b.fed <- slices.Clone(data):
			return nil
		default:
			return errors.New("internal error: a script does not read its input")
		}
	})
}

// Fed returns the channel with a container's standard input.
func (e *Engine) Fed(name string) <-chan []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.containers[name]; ok {
		return b.fed
	}
	return nil
}
