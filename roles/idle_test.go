package roles

import (
	"sync/atomic"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/internal/sandbox"
)

func TestWorked(t *testing.T) {
	load := func(cpu time.Duration, net int64) sandbox.Load { return sandbox.Load{CPU: cpu, Net: net} }
	for _, c := range []struct {
		name    string
		was, is []sandbox.Load
		want    bool
	}{
		{"nothing", []sandbox.Load{load(time.Second, 0)}, []sandbox.Load{load(time.Second, 0)}, false},
		{"a-runtime-that-looks-after-itself", []sandbox.Load{load(0, 0)}, []sandbox.Load{load(400*time.Millisecond, 0)}, false},
		{"a-build", []sandbox.Load{load(0, 0)}, []sandbox.Load{load(500*time.Millisecond, 0)}, true},
		{"an-answer-that-comes-in", []sandbox.Load{load(1, 0), load(0, 10_000)}, []sandbox.Load{load(1, 0), load(0, 30_000)}, true},
		{"a-connection-that-is-kept-open", []sandbox.Load{load(1, 0), load(0, 10_000)}, []sandbox.Load{load(1, 0), load(0, 10_200)}, false},
		{"an-engine-that-does-not-measure", []sandbox.Load{load(0, 0)}, []sandbox.Load{load(0, 0)}, true},
		{"nobody-knows", nil, nil, false},
		{"the-gate-is-gone", []sandbox.Load{load(1, 0), load(0, 10_000)}, []sandbox.Load{load(1, 0)}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := worked(c.was, c.is, 10*time.Second); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}

// An abl that was stopped itself, or slept with its machine, does not take its own
// absence for the call's.
func TestAbsenceIsNotIdleness(t *testing.T) {
	q := &idleTimer{limit: time.Minute, last: time.Now().Add(-time.Hour), load: func() []sandbox.Load { return []sandbox.Load{{CPU: 1}} }}
	for look := 1; look <= minChecks; look++ {
		q.at = time.Now().Add(-time.Minute) // as if it were time for another
		if got := q.expired(0); got != (look == minChecks) {
			t.Errorf("look %d: %t", look, got)
		}
	}
	q.at = time.Now().Add(-time.Minute)
	if q.expired(1) {
		t.Error("it has printed something")
	}
}

// A call that prints nothing and works is not idle, however long it takes; as soon
// as it stops working it is.
func TestSilentWorkIsNotIdle(t *testing.T) {
	var looks atomic.Int64
	enough := make(chan struct{})
	const times = 12 // far more than it takes to call a call idle
	r := newRig(t, func(b sandbox.Box) sandbox.Exit {
		<-enough
		prints(b, "end")
		return sandbox.Exit{}
	})
	r.runner.Idle = 400 * time.Millisecond
	r.engine.Busy = func(string) sandbox.Load {
		n := looks.Add(1)
		if n == times {
			close(enough)
		}
		return sandbox.Load{CPU: time.Duration(n) * time.Hour}
	}
	if o := r.run(); o.Class != outcome.Done || looks.Load() < times {
		t.Errorf("%s after %d looks", show(o), looks.Load())
	}

	r = newRig(t, func(sandbox.Box) sandbox.Exit { <-t.Context().Done(); return sandbox.Exit{} })
	r.runner.Idle = 400 * time.Millisecond
	if o := r.run(); o.Class != outcome.Idle {
		t.Errorf("got %s, want %s", show(o), outcome.Idle)
	}
}
