package orchestrator

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"time"

	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/testing/failpoint"
	"abl/roles/call"
)

// Retry configures the reaction to a transient failure.
type Retry struct {
	call.Policy
	Models int // number of models in the role's chain
}

// afterTransient continues after a transient failure: with the next model of the chain if that may
// help, else with a wait.
func afterTransient(p state.Phase, role, why string, class outcome.Outcome, w Retry) (_ state.Phase, err error) {
	if fallsBack(class) && p.Fallback[role]+1 < w.Models {
		p.Fallback = with(p.Fallback, role, p.Fallback[role]+1)
		p.Outage = call.Tried(p.Outage, class, w.Now)
		return p, nil
	}
	p.Fallback = with(p.Fallback, role, 0) // after the last model, begin with the first again
	p.Outage, err = call.Wait(p.Outage, outcome.Fault{Class: class, What: why, Back: p.Back, Paid: p.NeedsPerson},
		w.Policy)
	return p, err
}

// fallsBack reports whether another model may succeed where this one failed.
func fallsBack(c outcome.Outcome) bool { return c == outcome.Quota || c == outcome.Unavailable }

// with returns a copy of m in which key has the value n. 0 deletes the key.
func with(m map[string]int, key string, n int) map[string]int {
	m = maps.Clone(m)
	if n == 0 {
		delete(m, key)
		return m
	}
	if m == nil {
		m = map[string]int{}
	}
	m[key] = n
	return m
}

// Outages configures how a loop waits for a provider or an engine.
type Outages struct {
	Budget time.Duration  // loop.outage_budget: longest outage
	Models map[string]int // number of models in each role's chain
	Sleep  func(context.Context, time.Duration, time.Time) error
	Now    func() time.Time // nil for time.Now
}

func (o Outages) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// retry returns the current Retry for a role.
func (l *Loop) retry(p *state.Phase) Retry {
	policy := call.Policy{
		Now:     l.Outages.now(),
		Jitter:  rand.Float64(),
		Budget:  l.Outages.Budget,
		NoRoute: l.noRoute,
	}
	return Retry{policy, l.Outages.Models[roleAt(p.Status)]}
}

// waitOut waits before a call until the outage's wait is over. It reports if another model of the
// chain is used.
func (l *Loop) waitOut(ctx context.Context, step Step, p *state.Phase) error {
	if step != Build && step != Verify || p.Outage == nil {
		return nil
	}
	role := roleAt(p.Status)
	if n := p.Fallback[role]; n > 0 && p.Outage.Until.IsZero() {
		text := fmt.Sprintf("abl uses model %d of %d in models.%s: %s", n+1, l.Outages.Models[role], role, p.Note)
		l.emit(p, state.Event{Kind: state.Note, Role: role, Class: p.Outage.Class, Text: text})
	}
	now := l.Outages.now()
	wait := call.Left(p.Outage, now)
	if wait <= 0 {
		return nil
	}
	until := now.Add(wait)
	l.emit(p, state.Event{
		Kind:  state.Wait,
		Role:  role,
		Class: p.Outage.Class,
		Until: until.UTC().Truncate(time.Second),
		MS:    wait.Milliseconds(),
		Text:  call.Words(p.Outage, p.Note, l.Outages.Budget),
	})
	failpoint.Here("outage.waiting")
	sleep := l.Outages.Sleep
	if sleep == nil {
		sleep = call.Sleep
	}
	return causeOf(ctx, sleep(ctx, wait, until))
}
