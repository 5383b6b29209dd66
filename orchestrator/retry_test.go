package orchestrator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/roles"
	"abl/roles/call"
)

// TestRetryDecisions checks the decision after each of several ends of calls.
func TestRetryDecisions(t *testing.T) {
	type end struct {
		class outcome.Outcome
		retry time.Duration // the wait that the provider requests, may be 0
		paid  bool
		want  string
	}
	for _, c := range []struct {
		name   string
		budget time.Duration
		models int
		ends   []end
	}{
		{"waits double during an outage", time.Hour, 1, []end{
			{outcome.Unavailable, 0, false, "waits 2s, 3s used, model 0"},
			{outcome.Unavailable, 0, false, "waits 4s, 8s used, model 0"},
			{outcome.Network, 0, false, "waits 8s, 17s used, model 0"},
		}},
		{"the provider's own word counts where it is longer", time.Hour, 1, []end{
			{outcome.RateLimited, 30 * time.Second, false, "waits 30s, 31s used, model 0"},
			{outcome.RateLimited, time.Second, false, "waits 4s, 36s used, model 0"},
		}},
		{"the budget ends it", 10 * time.Second, 1, []end{
			{outcome.RateLimited, 0, false, "waits 2s, 3s used, model 0"},
			{outcome.RateLimited, 0, false, "waits 4s, 8s used, model 0"},
			{outcome.RateLimited, 0, false, "the provider is unavailable: why; another wait of 8s does not fit, after 9s (loop.outage_budget is 10s); come back after 2026-03-01 12:00:08 UTC"},
		}},
		{"a time beyond the budget ends it at once", time.Hour, 1, []end{
			{outcome.Quota, 20 * time.Hour, false, "the provider is unavailable: why; another wait of 20h0m0s does not fit, after 1s (loop.outage_budget is 1h0m0s); come back after 2026-03-02 08:00:00 UTC"},
		}},
		{"no budget", 0, 1, []end{{outcome.Unavailable, 0, false, "the provider is unavailable: why; come back after 2026-03-01 12:00:02 UTC"}}},
		{"payment required", time.Hour, 1, []end{{outcome.Quota, 0, true, "the provider requires a payment or a change of the account: why"}}},
		{"the engine", 0, 1, []end{{outcome.EngineGone, 0, false, "engine not reachable: why; come back after 2026-03-01 12:00:02 UTC"}}},
		{"a chain is gone through before abl waits, and begins again", time.Hour, 3, []end{
			{outcome.Quota, 0, false, "waits 0s, 1s used, model 1"},
			{outcome.Unavailable, 0, false, "waits 0s, 2s used, model 2"},
			{outcome.Quota, 0, false, "waits 20m0s, 20m3s used, model 0"},
			{outcome.Quota, 0, false, "waits 0s, 20m4s used, model 1"},
		}},
		{"a chain has the answer to a lack of money, too", time.Hour, 2, []end{
			{outcome.Quota, 0, true, "waits 0s, 1s used, model 1"},
			{outcome.Quota, 0, true, "the provider requires a payment or a change of the account: why"},
		}},
		{"another model is as far away", time.Hour, 2, []end{
			{outcome.Network, 0, false, "waits 2s, 3s used, model 0"},
			{outcome.RateLimited, 0, false, "waits 4s, 8s used, model 0"},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := state.Phase{Status: state.Building}
			for i, e := range c.ends {
				h := Happened{Class: e.class, Reason: "why", Paid: e.paid, Took: time.Second, Retry: Retry{call.Policy{Now: noon, Budget: c.budget}, c.models}}
				if e.retry > 0 {
					h.Back = noon.Add(e.retry)
				}
				var err error
				if p, err = ended(p, state.Built, h); err != nil {
					t.Fatal(err)
				}
				p, err = committed(p, Happened{Retry: h.Retry})
				got := fmt.Sprint(err)
				if err == nil {
					got = fmt.Sprintf("waits %s, %s used, model %d", call.Left(p.Outage, noon), time.Duration(p.Outage.UsedMS)*time.Millisecond, p.Fallback["builder"])
				} else if wrapped := errors.Is(err, call.ErrUnavailable) != (e.class == outcome.EngineGone); !wrapped || p.Outage != nil || p.Fallback["builder"] > 0 {
					t.Errorf("end %d: got %v, %+v, want %v (for the engine another), no outage, no fallback",
						i+1, err, p, call.ErrUnavailable)
				}
				if got != e.want {
					t.Errorf("end %d: got %s, want %s", i+1, got, e.want)
				}
				if p.Tries > 0 || p.Iteration > 0 {
					t.Errorf("end %d: got %d tries, iteration %d, want 0, 0", i+1, p.Tries, p.Iteration)
				}
			}
		})
	}
}

// failingProvider returns a world whose provider fails three times. It records waits instead of sleeping.
func failingProvider(t *testing.T) *world {
	away := play{class: outcome.Unavailable, took: time.Second, said: roles.Evidence{From: roles.ByGateway, What: "x"}}
	w := newWorld(t, map[string]play{
		"p1-build-1.1": away, "p1-build-1.2": {class: outcome.RateLimited}, "p1-build-1.3": good, "p1-verify-1.1": away, "p1-verify-1.2": good,
	})
	w.outages = Outages{Budget: time.Hour, Models: map[string]int{"builder": 1, "verifier": 1}, Sleep: func(_ context.Context, d time.Duration, _ time.Time) error {
		w.waits = append(w.waits, d)
		return nil
	}}
	return w
}

// Faults of the provider cause waits and use no iteration. The work of each call is committed, and
// each is in the ledger.
func TestFaultsAreWaitedOut(t *testing.T) {
	w := failingProvider(t)
	if err := w.after(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = `passed round 1 iteration 1 step 1 call p1-verify-1.2 verdict pass
history 1.1 step 1 pass 0 p1-build-1.3 p1-verify-1.2
record 1.1 step 1 pass passed p1-build-1.3 p1-verify-1.2, p1-build-1.1 away, p1-build-1.2 rate, p1-build-1.3 done, p1-verify-1.1 away, p1-verify-1.2 done
src phase1/build/step-1 p1-build-1.1
src phase1/build/step-1.2 p1-build-1.2
src phase1/build/step-1.3 p1-build-1.3
tests phase1/verify/step-1 p1-verify-1.1
tests phase1/verify/step-1.2 p1-verify-1.2
calls p1-build-1.1 p1-build-1.2 p1-build-1.3 p1-verify-1.1 p1-verify-1.2
`
	if got := w.print(); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(w.waits) != 3 || len(w.rows) != 5 {
		t.Errorf("waits and rows of the ledger: got %v and %d, want 3 and 5", w.waits, len(w.rows))
	}
	waits := 0
	for _, e := range w.events {
		if e.Kind == state.Wait {
			waits++
			if e.Until.IsZero() || e.MS <= 0 || e.Class == "" || !strings.Contains(e.Text, "of 1h0m0s)") {
				t.Errorf("wait: got %+v, want its end, duration, class and budget", e)
			}
		}
	}
	if waits != 3 {
		t.Errorf("reported waits: got %d, want 3", waits)
	}
	var f state.File
	if err := json.Unmarshal(w.disk, &f); err != nil || f.Phases["1"].Outage != nil {
		t.Errorf("outage after its end: got %+v, %v, want none", f.Phases["1"].Outage, err)
	}
}

// After a kill during a wait, abl waits for the rest, and knows the used part of the budget.
func TestKilledWhileItWaits(t *testing.T) {
	w := failingProvider(t)
	sleep := w.outages.Sleep
	w.outages.Sleep = func(context.Context, time.Duration, time.Time) error { return errDied }
	if err := w.after(t.Context()); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	var f state.File
	if err := json.Unmarshal(w.disk, &f); err != nil {
		t.Fatal(err)
	}
	o := f.Phases["1"].Outage
	if o == nil || o.Tries != 1 || o.UsedMS < 3000 || o.UsedMS > 4000 || o.WaitMS < 2000 {
		t.Fatalf("outage: got %+v, want one try, 3s to 4s used, at least 2s to wait", o)
	}
	w.outages.Sleep = sleep
	if err := w.after(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(w.waits) != 3 || w.waits[0] > time.Duration(o.WaitMS)*time.Millisecond || w.waits[1] < 4*time.Second {
		t.Errorf("waits: got %v, want 3, the first at most %dms, the second at least 4s", w.waits, o.WaitMS)
	}
}

// If the user does not want to wait, the state stays as it was.
func TestInterruptedWhileItWaits(t *testing.T) {
	w := failingProvider(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	w.outages.Sleep = func(ctx context.Context, d time.Duration, until time.Time) error {
		cancel(errHangup)
		return call.Sleep(ctx, d, until)
	}
	if _, err := w.loop().Run(ctx); !errors.Is(err, errHangup) {
		t.Errorf("end: got %v, want %v", err, errHangup)
	}
	if got := w.print(); !strings.HasPrefix(got, "building round 1 iteration 1 step 1 call p1-build-1.2 ") {
		t.Errorf("state: got\n%s\nwant building and call p1-build-1.2", got)
	}
}
