package retry

import (
	"context"
	"time"
)

// Sleep waits for d by this process's own clock, and no longer than until the
// wall clock says: the one stands still while the machine sleeps, and the other
// may be set.
func Sleep(ctx context.Context, d time.Duration, until time.Time) error {
	const look = time.Second
	until = until.Round(0) // from here on by the wall clock alone
	end := time.NewTimer(d)
	defer end.Stop()
	tick := time.NewTicker(look)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return nil
		case <-tick.C:
			if !time.Now().Round(0).Before(until) {
				return nil
			}
		}
	}
}
