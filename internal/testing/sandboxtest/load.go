package sandboxtest

import (
	"context"
	"time"

	"abl/internal/sandbox"
)

// Load asks Busy; without it a box does nothing.
func (e *Engine) Load(_ context.Context, name string) (load sandbox.Load, err error) {
	err = e.call("Load", name, func() error {
		if _, err := e.find(name); err != nil {
			return about(err, "cannot measure box %q", name)
		}
		if load.CPU = time.Millisecond; e.Busy != nil { // its start
			load = e.Busy(name)
		}
		return nil
	})
	return load, err
}
