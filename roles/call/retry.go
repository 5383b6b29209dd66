package call

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
	// ErrAgent: an agent failed, and failed again when the call was repeated.
	ErrAgent = errors.New("the agent failed")
	// ErrUnavailable: the provider limits the rate or does not respond.
	ErrUnavailable = errors.New("the provider is unavailable")
	// ErrBudget: the gateway refused another request of a call.
	ErrBudget = errors.New("the budget is reached")
	// ErrLogin: the provider refuses the key.
	ErrLogin = errors.New("the provider refused the login")
	// ErrModel: the provider does not have the model.
	ErrModel = errors.New("there is no such model")
	// ErrDenied: the agent sent requests that abl's gateway always refuses.
	ErrDenied = errors.New("the agent sent a request that is not allowed")
	// ErrUnproven: the boundary of a call was not proven and its container ran.
	ErrUnproven = errors.New("a call was stopped because the isolation of its container is not proven")
)

// stops are the outcomes for which neither waiting nor repeating helps.
var stops = map[outcome.Outcome]error{
	outcome.OverBudget: ErrBudget,
	outcome.Unproven:   ErrUnproven,
	outcome.Refused:    ErrLogin,
	outcome.NoModel:    ErrModel,
	outcome.Denied:     ErrDenied,
	outcome.TooLarge:   fmt.Errorf("%w: the prompt is longer than the model accepts", ErrAgent),
}

// Stops returns the error of an outcome for which neither waiting nor repeating helps, nil for any
// other. A prompt that became too long during a call is shorter in the next one.
func Stops(end outcome.Fault) error {
	if err := stops[end.Class]; err != nil && !end.Grown {
		return fmt.Errorf("%w: %s", err, end.What)
	}
	return nil
}

// Policy configures the reaction to a transient failure.
type Policy struct {
	Now    time.Time
	Jitter float64       // from 0 up to 1, so that many abl do not retry at the same time
	Budget time.Duration // longest outage to wait for
	Bound  string        // what sets the budget, for messages; "" is loop.outage_budget
	// No request of this run reached the provider, so that nothing is known to pass by waiting.
	NoRoute bool
}

// Unavailable is the error of a run that waited too long for a provider or an engine.
type Unavailable struct {
	Class     outcome.Outcome
	Why       string
	Waited    time.Duration // in this outage, including the failed calls
	Next      time.Duration // the next wait, which does not fit into the budget
	Bound     string        // what limits the waiting, "" if abl does not wait
	NeedsUser bool          // waiting does not help: the user has to pay or to change a setting
	Route     bool          // no request of the run reached the provider
	Back      time.Time     // when to run again; zero if unknown
}

func (a Unavailable) Error() string {
	if a.NeedsUser {
		return "the provider requires a payment or a change of the account: " + a.Why
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

// Unwrap returns ErrUnavailable or, for an engine, sandbox.ErrUnreachable.
func (a Unavailable) Unwrap() error {
	if a.Class == outcome.EngineGone {
		return sandbox.ErrUnreachable
	}
	return ErrUnavailable
}

// Wait returns the outage after another call that a transient failure ended, with the next wait. It
// returns an Unavailable if the wait exceeds the budget or waiting does not help. A later run
// starts with a new budget.
func Wait(was *state.Outage, end outcome.Fault, w Policy) (*state.Outage, error) {
	o := Tried(was, end.Class, w.Now)
	wait := Pause(end.Class, o.Tries, w.Jitter)
	if ask := end.Back.Sub(w.Now); !end.Back.IsZero() && ask > wait {
		wait = ask + time.Duration(w.Jitter*float64(min(ask/10, 30*time.Second)))
	}
	used := time.Duration(o.UsedMS) * time.Millisecond
	switch {
	case end.Paid:
		return nil, Unavailable{Class: end.Class, Why: end.What, NeedsUser: true}
	case w.NoRoute && end.Class == outcome.Network:
		return nil, Unavailable{Class: end.Class, Why: end.What, Route: true, Back: w.Now.Add(wait)}
	case used+wait > w.Budget:
		if w.Bound == "" && w.Budget > 0 {
			w.Bound = fmt.Sprintf("loop.outage_budget is %s", w.Budget)
		}
		return nil, Unavailable{
			Class:  end.Class,
			Why:    end.What,
			Waited: used,
			Next:   wait,
			Bound:  w.Bound,
			Back:   w.Now.Add(wait),
		}
	}
	o.WaitMS, o.Until = wait.Milliseconds(), w.Now.Add(wait).UTC()
	o.UsedMS += o.WaitMS
	return o, nil
}

// begun returns a copy of an outage, or a new one.
func begun(was *state.Outage, class outcome.Outcome, now time.Time) state.Outage {
	if was != nil {
		return *was
	}
	return state.Outage{Since: now.UTC(), Class: string(class)}
}

// Tried returns the outage after one more failed call.
func Tried(was *state.Outage, class outcome.Outcome, now time.Time) *state.Outage {
	o := begun(was, class, now)
	o.Class, o.Until, o.WaitMS = string(class), time.Time{}, 0
	o.Tries++
	return &o
}

// Charged returns the outage with the duration of a failed call counted towards its budget.
func Charged(was *state.Outage, class outcome.Outcome, took time.Duration, now time.Time) *state.Outage {
	o := begun(was, class, now)
	o.UsedMS += took.Milliseconds()
	return &o
}

// Pause returns how long to wait after a number of failed calls in a row: a short time at first,
// because most outages are short, and twice as long each time.
func Pause(c outcome.Outcome, tries int, jitter float64) time.Duration {
	first, most := 2*time.Second, 5*time.Minute
	if c == outcome.Quota { // quotas are renewed by the hour or the day
		first, most = 5*time.Minute, time.Hour
	}
	d := most
	if shift := tries - 1; shift < 10 {
		d = min(first<<shift, most)
	}
	return d + time.Duration(jitter*float64(d)/2)
}

// Left returns how much of a wait remains. The clock can shorten the wait but not prolong it,
// because it may have been set back.
func Left(o *state.Outage, now time.Time) time.Duration {
	if o == nil || o.Until.IsZero() {
		return 0
	}
	return max(min(o.Until.Sub(now), time.Duration(o.WaitMS)*time.Millisecond), 0)
}

// waitedFor describes the reasons for waiting.
var waitedFor = map[outcome.Outcome]string{
	outcome.RateLimited: "the provider limits the rate",
	outcome.Quota:       "the provider's quota is used up",
	outcome.Network:     "the provider cannot be reached",
	outcome.EngineGone:  "the engine was stopped",
}

// Words returns the message about a wait: its reason, and how long it has lasted.
func Words(o *state.Outage, why string, budget time.Duration) string {
	what := cmp.Or(waitedFor[outcome.Outcome(o.Class)], "the provider is failing")
	used := time.Duration(o.UsedMS) * time.Millisecond
	return fmt.Sprintf("%s: %s (call %d in a row, %s of %s)", what, why, o.Tries, used.Round(time.Second), budget)
}

// Sleep waits for d, but no longer than until the wall clock shows until. The process's own clock
// does not advance while the machine sleeps, and the wall clock may be set.
func Sleep(ctx context.Context, d time.Duration, until time.Time) error {
	end := time.Now().Add(d)
	until = until.Round(0) // use only the wall clock
	for left := d; left > 0; left = min(time.Until(end), until.Sub(time.Now().Round(0))) {
		if err := proc.Pause(ctx, min(left, time.Second)); err != nil {
			return err
		}
	}
	return nil
}
