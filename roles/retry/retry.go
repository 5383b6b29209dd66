// Package retry decides what comes of a call that did not end properly: which outcome
// stops the run, and how a transient failure of a provider or an engine is waited out.
// It is the same for everybody who makes calls, and makes none itself.
package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"abl/internal/outcome"
	"abl/internal/proc"
	"abl/internal/sandbox"
	"abl/internal/state"
)

// The errors that end a run.
var (
	// ErrAgent: an agent did not end properly, and neither when it was tried again.
	ErrAgent = errors.New("the agent failed")
	// ErrUnavailable: the provider limits the rate or does not answer.
	ErrUnavailable = errors.New("the provider is away")
	// ErrBudget: the gateway admitted no further request of a call.
	ErrBudget = errors.New("the budget is reached")
	// ErrLogin: the provider refuses the key.
	ErrLogin = errors.New("the provider refused the login")
	// ErrModel: the provider does not have the model.
	ErrModel = errors.New("there is no such model")
	// ErrDenied: the agent asks for what abl's own gateway lets nobody ask for.
	ErrDenied = errors.New("the agent asks for what it may not have")
	// ErrUnproven: the boundary of a call was not proven and its container ran.
	ErrUnproven = errors.New("a call was ended, since where it ran is not proven")
)

// stops are the ends that neither waiting nor repeating can mend.
var stops = map[outcome.Outcome]error{
	outcome.OverBudget: ErrBudget, outcome.Unproven: ErrUnproven, outcome.Refused: ErrLogin, outcome.NoModel: ErrModel, outcome.Denied: ErrDenied,
	outcome.TooLarge: fmt.Errorf("%w: the prompt is longer than the model takes", ErrAgent),
}

// Stops returns the error of an end after which neither waiting nor repeating helps, nil
// for any other. A prompt that became too long during a call is short again in the next one.
func Stops(end outcome.Fault) error {
	if err := stops[end.Class]; err != nil && !end.Grown {
		return fmt.Errorf("%w: %s", err, end.What)
	}
	return nil
}

// Policy is what a decision about a transient failure needs besides the failure itself.
type Policy struct {
	Now    time.Time
	Jitter float64       // from 0 up to 1, so that many abl do not come back at once
	Budget time.Duration // how much of an outage is waited out
	Bound  string        // what sets the budget, for the person; "" is loop.outage_budget
	// No request of this run reached the provider, so that nothing is known to pass by waiting.
	NoRoute bool
}

// Unavailable says that a run ends since what it waited for did not come back in time.
type Unavailable struct {
	Class  outcome.Outcome
	Why    string
	Waited time.Duration // in this outage, the calls that failed included
	Next   time.Duration // the wait that there was no more room for
	Bound  string        // what ended the waiting, "" when there was none to end
	Person bool          // no waiting helps: somebody has to pay, or to change something
	Route  bool          // no request of the run reached the provider
	Back   time.Time     // when it makes sense to come back; zero when nobody knows
}

func (a Unavailable) Error() string {
	if a.Person {
		return "the provider wants somebody to pay, or to change something in its account: " + a.Why
	}
	if a.Route {
		return fmt.Sprintf("%v: no request of this run reached the provider, so abl does not wait: %s", a.Unwrap(), a.Why)
	}
	text := fmt.Sprintf("%v: %s", a.Unwrap(), a.Why)
	if a.Bound != "" {
		text += fmt.Sprintf("; another wait of %s does not fit", a.Next.Round(time.Second))
		if a.Waited >= time.Second {
			text += fmt.Sprintf(", after %s", a.Waited.Round(time.Second))
		}
		text += " (" + a.Bound + ")"
	}
	if !a.Back.IsZero() {
		text += "; come back after " + a.Back.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	return text
}

// Unwrap is ErrUnavailable, or the engine's own word for it.
func (a Unavailable) Unwrap() error {
	if a.Class == outcome.EngineGone {
		return sandbox.ErrUnreachable
	}
	return ErrUnavailable
}

// Wait goes on with an outage after another call that a transient failure ended: with a
// wait, unless the budget or the provider's own word says that the person had
// better come back. Then whoever runs it again begins with a budget of their own.
func Wait(was *state.Outage, end outcome.Fault, w Policy) (*state.Outage, error) {
	o := Tried(was, end.Class, w.Now)
	wait := Pause(end.Class, o.Tries, w.Jitter)
	if ask := end.Back.Sub(w.Now); !end.Back.IsZero() && ask > wait {
		wait = ask + time.Duration(w.Jitter*float64(min(ask/10, 30*time.Second)))
	}
	used := time.Duration(o.UsedMS) * time.Millisecond
	switch {
	case end.Paid:
		return nil, Unavailable{Class: end.Class, Why: end.What, Person: true}
	case w.NoRoute && end.Class == outcome.Network:
		return nil, Unavailable{Class: end.Class, Why: end.What, Route: true, Back: w.Now.Add(wait)}
	case used+wait > w.Budget:
		if w.Bound == "" && w.Budget > 0 {
			w.Bound = fmt.Sprintf("loop.outage_budget is %s", w.Budget)
		}
		return nil, Unavailable{Class: end.Class, Why: end.What, Waited: used, Next: wait, Bound: w.Bound, Back: w.Now.Add(wait)}
	}
	o.WaitMS, o.Until = wait.Milliseconds(), w.Now.Add(wait).UTC()
	o.UsedMS += o.WaitMS
	return o, nil
}

// begun is a copy of an outage, or one that begins now.
func begun(was *state.Outage, class outcome.Outcome, now time.Time) state.Outage {
	if was != nil {
		return *was
	}
	return state.Outage{Since: now.UTC(), Class: string(class)}
}

// Tried is an outage with one more call that it ended.
func Tried(was *state.Outage, class outcome.Outcome, now time.Time) *state.Outage {
	o := begun(was, class, now)
	o.Class, o.Until, o.WaitMS = string(class), time.Time{}, 0
	o.Tries++
	return &o
}

// Charged is an outage to whose budget a call that it ended counts as well.
func Charged(was *state.Outage, class outcome.Outcome, took time.Duration, now time.Time) *state.Outage {
	o := begun(was, class, now)
	o.UsedMS += took.Milliseconds()
	return &o
}

// Pause is how long is waited after a number of calls in a row: the first time
// shortly, for most trouble is short, then twice as long each time.
func Pause(c outcome.Outcome, tries int, jitter float64) time.Duration {
	first, most := 2*time.Second, 5*time.Minute
	if c == outcome.Quota { // which is filled up by the hour or the day
		first, most = 5*time.Minute, time.Hour
	}
	d := most
	if shift := tries - 1; shift < 10 {
		d = min(first<<shift, most)
	}
	return d + time.Duration(jitter*float64(d)/2)
}

// Left is how much of a wait remains. What the clock says is believed as far as
// it shortens the wait: a clock that was set back must not prolong it.
func Left(o *state.Outage, now time.Time) time.Duration {
	if o == nil || o.Until.IsZero() {
		return 0
	}
	return max(min(o.Until.Sub(now), time.Duration(o.WaitMS)*time.Millisecond), 0)
}

// waitedFor is what is waited for, in words.
var waitedFor = map[outcome.Outcome]string{
	outcome.RateLimited: "the provider limits the rate", outcome.Quota: "the provider's quota is used up",
	outcome.Network: "there is no connection with the provider", outcome.EngineGone: "the engine was stopped",
}

// Words say what is waited for, and since when in vain.
func Words(o *state.Outage, why string, budget time.Duration) string {
	what := cmp.Or(waitedFor[outcome.Outcome(o.Class)], "the provider is in trouble")
	used := time.Duration(o.UsedMS) * time.Millisecond
	return fmt.Sprintf("%s: %s (call %d in a row, %s of %s)", what, why, o.Tries, used.Round(time.Second), budget)
}

// Sleep waits for d by this process's own clock, and no longer than until the
// wall clock says: the one stands still while the machine sleeps, and the other
// may be set.
func Sleep(ctx context.Context, d time.Duration, until time.Time) error {
	end := time.Now().Add(d)
	until = until.Round(0) // from here on by the wall clock alone
	for left := d; left > 0; left = min(time.Until(end), until.Sub(time.Now().Round(0))) {
		if err := proc.Pause(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
	return nil
}
