package sidecar

import (
	"context"
	"errors"
	"time"

	"abl/internal/gateway"
	"abl/internal/sandbox"
)

// watchEvery is how often a running gateway's log is looked at.
const watchEvery = 5 * time.Second

// Bound gives the gateway new bounds for its call. One that has ended has no use
// for them.
func (s Sidecar) Bound(ctx context.Context, b gateway.Budget) error {
	st, err := s.Engine.Status(ctx, s.Name)
	if errors.Is(err, sandbox.ErrNotFound) || err == nil && st.State != sandbox.Running {
		return nil
	}
	if err != nil {
		return err
	}
	return s.feed(ctx, gateway.Command{Budget: &b})
}

// Watch shows what the gateway's log holds while it runs, each time all of it, until
// ctx ends. What cannot be read now is read at the end.
func (s Sidecar) Watch(ctx context.Context, look func([]gateway.Entry)) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if entries, err := s.log(ctx); err == nil {
			look(entries)
		}
	}
}

// Nearly are the words of a log about budgets that are nearly spent.
func Nearly(entries []gateway.Entry) (all []string) {
	for _, e := range entries {
		if e.Kind == gateway.Nearly {
			all = append(all, e.Reason)
		}
	}
	return all
}
