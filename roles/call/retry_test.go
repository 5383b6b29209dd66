package call

import (
	"errors"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/state"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestPause(t *testing.T) {
	for _, c := range []struct {
		class  outcome.Outcome
		tries  int
		jitter float64
		want   time.Duration
	}{
		{outcome.RateLimited, 1, 0, 2 * time.Second},
		{outcome.Unavailable, 3, 0, 8 * time.Second},
		{outcome.Network, 8, 0, 256 * time.Second},
		{outcome.Unavailable, 9, 0, 5 * time.Minute},
		{outcome.Unavailable, 1 << 40, 0, 5 * time.Minute},
		{outcome.Unavailable, 2, 0.5, 5 * time.Second},
		{outcome.Quota, 1, 0, 5 * time.Minute},
		{outcome.Quota, 9, 0, time.Hour},
	} {
		if got := Pause(c.class, c.tries, c.jitter); got != c.want {
			t.Errorf("%s, call %d, jitter %v: got %s, want %s", c.class, c.tries, c.jitter, got, c.want)
		}
	}
}

// A clock that was set back does not prolong a wait.
func TestLeft(t *testing.T) {
	o := &state.Outage{WaitMS: 60_000, Until: noon.Add(time.Minute)}
	for now, want := range map[time.Time]time.Duration{
		noon: time.Minute, noon.Add(50 * time.Second): 10 * time.Second, noon.Add(time.Hour): 0, noon.Add(-time.Hour): time.Minute,
	} {
		if got := Left(o, now); got != want {
			t.Errorf("wait left at %s: got %s, want %s", now, got, want)
		}
	}
	if Left(nil, noon) != 0 || Left(&state.Outage{WaitMS: 5}, noon) != 0 {
		t.Errorf("wait without an outage and without an end: got %s and %s, want 0 for both",
			Left(nil, noon), Left(&state.Outage{WaitMS: 5}, noon))
	}
}

// A wait ends when its duration or its end time is reached, whichever is first.
func TestSleep(t *testing.T) {
	if err := Sleep(t.Context(), time.Hour, time.Now().Add(-time.Minute)); err != nil {
		t.Error(err)
	}
	if err := Sleep(t.Context(), time.Millisecond, time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

func TestAbsent(t *testing.T) {
	if err := error(Unavailable{Class: outcome.EngineGone}); !errors.Is(err, sandbox.ErrUnreachable) || errors.Is(err, ErrUnavailable) {
		t.Errorf("error of a lost engine: got %v, want %v and not %v", err, sandbox.ErrUnreachable, ErrUnavailable)
	}
}

// The error names the caller's own limit instead of the setting. If the provider requires a
// payment, it names no limit.
func TestWaitNamesItsLimit(t *testing.T) {
	w := Policy{Now: noon, Budget: time.Second, Bound: "an agent call has 5m0s"}
	_, err := Wait(&state.Outage{UsedMS: 90_000}, outcome.Fault{Class: outcome.Unavailable, What: "503"}, w)
	if want := "the provider is unavailable: 503; another wait of 2s does not fit, after 1m30s (an agent call has 5m0s); come back after 2026-03-01 12:00:02 UTC"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = Wait(&state.Outage{UsedMS: 90_000}, outcome.Fault{Class: outcome.Quota, What: "pay", Paid: true}, w)
	if want := "the provider requires a payment or a change of the account: pay"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestStops(t *testing.T) {
	for class, want := range map[outcome.Outcome]error{outcome.OverBudget: ErrBudget, outcome.Refused: ErrLogin, outcome.TooLarge: ErrAgent} {
		if err := Stops(outcome.Fault{Class: class, What: "why"}); !errors.Is(err, want) {
			t.Errorf("error of %s: got %v, want %v", class, err, want)
		}
	}
	if err := Stops(outcome.Fault{Class: outcome.TooLarge, Grown: true}); err != nil {
		t.Errorf("a prompt that became too long during a call: got %v, want none", err)
	}
	for _, class := range []outcome.Outcome{outcome.Done, outcome.Failed, outcome.Timeout, outcome.Unavailable, outcome.Interrupted} {
		if err := Stops(outcome.Fault{Class: class, What: "why"}); err != nil {
			t.Errorf("error of %s: got %v, want none", class, err)
		}
	}
}

// Without a route abl does not wait for the network. It still waits for the provider.
func TestWaitWithoutARoute(t *testing.T) {
	w := Policy{Now: noon, Budget: time.Hour, NoRoute: true}
	_, err := Wait(nil, outcome.Fault{Class: outcome.Network, What: "no such host"}, w)
	want := "the provider is unavailable: no request of this run reached the provider, so abl does not wait: no such host"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if o, err := Wait(nil, outcome.Fault{Class: outcome.Unavailable, What: "503"}, w); err != nil || o.WaitMS == 0 {
		t.Errorf("after a 503: got %+v, %v, want a wait", o, err)
	}
}
