package sandboxtest

import (
	"context"
	"time"

	"abl/internal/sandbox"
)

// Load returns the result of Busy. Without Busy a container is idle.
func (e *Engine) Load(_ context.Context, name string) (load sandbox.Load, err error) {
	err = e.call("Load", name, func() error {
		if _, err := e.find(name); err != nil {
			return about(err, "cannot measure container %q", name)
		}
		if load.CPU = time.Millisecond; e.Busy != nil { // used by its start
			load = e.Busy(name)
		}
		return nil
	})
	return load, err
}
