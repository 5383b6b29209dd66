package sandboxtest

import (
	"context"
	"errors"
	"slices"

	"abl/internal/sandbox"
)

// feeds is how much a box may be fed before its script takes any of it.
const feeds = 64

// Feed brings data to the standard input of a running box.
func (e *Engine) Feed(ctx context.Context, name string, data []byte) error {
	return e.call("Feed", name, func() error {
		b, err := e.find(name)
		switch {
		case err == nil && !b.Stdin:
			err = errors.New("it was made without a standard input")
		case err == nil && b.status.State != sandbox.Running:
			err = errors.New("it does not run")
		}
		if err != nil {
			return about(err, "cannot feed box %q", name)
		}
		select {
		case b.fed <- slices.Clone(data):
			return nil
		default:
			return errors.New("internal error: a script takes nothing of what it is fed")
		}
	})
}

// Fed is what a box's script reads of its standard input.
func (e *Engine) Fed(name string) <-chan []byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.boxes[name]; ok {
		return b.fed
	}
	return nil
}
