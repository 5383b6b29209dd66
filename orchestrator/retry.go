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
	"abl/roles/retry"
)

// Retry is what a decision about a transient failure needs besides the phase itself.
type Retry struct {
	retry.Policy
	Models int // in the role's chain
}

// afterTransient goes on after a call that a transient failure ended: with the next model of the
// chain where that may help, else after a wait.
func afterTransient(p state.Phase, role, why string, class outcome.Outcome, w Retry) (_ state.Phase, err error) {
	if fallsBack(class) && p.Fallback[role]+1 < w.Models {
		p.Fallback = with(p.Fallback, role, p.Fallback[role]+1)
		p.Outage = retry.Tried(p.Outage, class, w.Now)
		return p, nil
	}
	p.Fallback = with(p.Fallback, role, 0) // once around: the first is the one that the person wants
	p.Outage, err = retry.Wait(p.Outage, outcome.Fault{Class: class, What: why, Back: p.Back, Paid: p.NeedsPerson}, w.Policy)
	return p, err
}

// fallsBack is whether another model may answer where this one does not.
func fallsBack(c outcome.Outcome) bool { return c == outcome.Quota || c == outcome.Unavailable }

// with is a copy of m in which key has n; 0 takes it out.
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

// Outages say how a loop lives through a provider's or an engine's absence.
type Outages struct {
	Budget time.Duration  // loop.outage_budget: how long one may last
	Models map[string]int // length of each role's chain of models
	Sleep  func(context.Context, time.Duration, time.Time) error
	Now    func() time.Time // nil: time.Now
}

func (o Outages) now() time.Time {
	if o.Now != nil {
		return o.Now()
	}
	return time.Now()
}

// retry is what a decision about a transient failure needs now.
func (l *Loop) retry(p *state.Phase) Retry {
	return Retry{retry.Policy{Now: l.Outages.now(), Jitter: rand.Float64(), Budget: l.Outages.Budget, NoRoute: l.noRoute}, l.Outages.Models[roleAt(p.Status)]}
}

// waitOut waits, before a call, until it makes sense to make it, and says which model is
// tried in the place of another.
func (l *Loop) waitOut(ctx context.Context, step Step, p *state.Phase) error {
	if step != Build && step != Verify || p.Outage == nil {
		return nil
	}
	role := roleAt(p.Status)
	if n := p.Fallback[role]; n > 0 && p.Outage.Until.IsZero() {
		text := fmt.Sprintf("model %d of %d in models.%s is tried: %s", n+1, l.Outages.Models[role], role, p.Note)
		l.emit(p, state.Event{Kind: state.Note, Role: role, Class: p.Outage.Class, Text: text})
	}
	now := l.Outages.now()
	wait := retry.Left(p.Outage, now)
	if wait <= 0 {
		return nil
	}
	until := now.Add(wait)
	l.emit(p, state.Event{
		Kind: state.Wait, Role: role, Class: p.Outage.Class, Until: until.UTC().Truncate(time.Second), MS: wait.Milliseconds(),
		Text: retry.Words(p.Outage, p.Note, l.Outages.Budget),
	})
	failpoint.Here("outage.waiting")
	sleep := l.Outages.Sleep
	if sleep == nil {
		sleep = retry.Sleep
	}
	return because(ctx, sleep(ctx, wait, until))
}
