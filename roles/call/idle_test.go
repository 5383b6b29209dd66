package call

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/testing/rolestest"
	"abl/roles"
)

func TestWorked(t *testing.T) {
	load := func(cpu time.Duration, net int64) *sandbox.Load { return &sandbox.Load{CPU: cpu, Net: net} }
	for _, c := range []struct {
		name    string
		was, is *sandbox.Load
		want    bool
	}{
		{"nothing", load(time.Second, 0), load(time.Second, 0), false},
		{"a-runtime-that-looks-after-itself", load(1, 0), load(400*time.Millisecond, 0), false},
		{"a-build", load(1, 0), load(501*time.Millisecond, 0), true},
		{"traffic", load(1, 10_000), load(1, 30_000), true},
		{"a-connection-that-is-kept-open", load(1, 10_000), load(1, 10_200), false},
		{"an-engine-that-does-not-measure", load(0, 0), load(0, 0), true},
		{"unknown", nil, nil, false},
		{"the-first-measurement", nil, load(time.Second, 10_000), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := worked(c.was, c.is, 10*time.Second); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

// If abl was stopped, or its machine slept, that time does not count as idle time of the call.
func TestAbsenceIsNotIdleness(t *testing.T) {
	q := &idleTimer{limit: time.Minute, last: time.Now().Add(-time.Hour), load: func() *sandbox.Load { return &sandbox.Load{CPU: 1} }}
	for look := 1; look <= minChecks; look++ {
		q.at = time.Now().Add(-time.Minute) // as if it were time for another
		if got := q.expired(0); got != (look == minChecks) {
			t.Errorf("expired at look %d: got %t, want %t", look, got, look == minChecks)
		}
	}
	q.at = time.Now().Add(-time.Minute)
	if q.expired(1) {
		t.Error("expired after new output: got true, want false")
	}
}

// A call that prints nothing but works is not idle, however long it takes. When it stops working, it
// is.
func TestSilentWorkIsNotIdle(t *testing.T) {
	var looks atomic.Int64
	enough := make(chan struct{})
	const times = 12 // far more than needed to call it idle
	r := newRig(t, func(b sandbox.ContainerConfig) sandbox.Exit {
		<-enough
		rolestest.Prints(b, "end")
		return sandbox.Exit{}
	})
	r.runner.Idle = 400 * time.Millisecond
	r.Engine.Busy = func(string) sandbox.Load {
		n := looks.Add(1)
		if n == times {
			close(enough)
		}
		return sandbox.Load{CPU: time.Duration(n) * time.Hour}
	}
	if o := r.run(); o.Class != outcome.Done || looks.Load() < times {
		t.Errorf("busy call: got %s after %d looks, want %s after at least %d",
			show(o), looks.Load(), outcome.Done, times)
	}

	r = newRig(t, func(sandbox.ContainerConfig) sandbox.Exit { <-t.Context().Done(); return sandbox.Exit{} })
	r.runner.Idle = 400 * time.Millisecond
	if o := r.run(); o.Class != outcome.Idle {
		t.Errorf("got %s, want %s", show(o), outcome.Idle)
	}
}

// pinging is a gate whose provider sends a ping before each check.
type pinging struct {
	roles.Gate
	looks atomic.Int64
}

func (g *pinging) Open(context.Context, string, string, time.Time) ([]string, error) { return nil, nil }
func (g *pinging) Close(context.Context, string) (roles.Traffic, error)              { return roles.Traffic{}, nil }
func (g *pinging) Used() *roles.Used                                                 { return &roles.Used{Signs: g.looks.Add(1)} }

// A model that only sends pings for longer than the limit is not idle.
func TestPingsAreNotIdle(t *testing.T) {
	const times = 12
	enough := make(chan struct{})
	r := newRig(t, func(b sandbox.ContainerConfig) sandbox.Exit {
		<-enough
		rolestest.Prints(b, "end")
		return sandbox.Exit{}
	})
	r.runner.Idle = 400 * time.Millisecond
	var checks atomic.Int64
	r.Engine.Busy = func(string) sandbox.Load {
		if checks.Add(1) == times {
			close(enough)
		}
		return sandbox.Load{CPU: 1}
	}
	r.job.Gate = &pinging{}
	if o := r.run(); o.Class != outcome.Done || checks.Load() < times {
		t.Errorf("got %s after %d checks, want %s after %d or more", show(o), checks.Load(), outcome.Done, times)
	}
}
