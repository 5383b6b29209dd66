package proc

import (
	"context"
	"time"
)

// Pause waits for d, or until ctx ends: then the error is why it did.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
