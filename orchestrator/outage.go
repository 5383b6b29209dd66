package orchestrator

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"abl/orchestrator/sandbox"
	"abl/orchestrator/state"
	"abl/roles"
)

// Weather is what a decision about an outage needs besides the phase itself.
type Weather struct {
	Now    time.Time
	Jitter float64       // from 0 up to 1, so that many abl do not come back at once
	Budget time.Duration // loop.outage_budget
	Models int           // in the role's chain
}

// Absent says that a run ends since what it waited for did not come back in time.
type Absent struct {
	Class  roles.Class
	Why    string
	Waited time.Duration // in this outage, the calls that failed included
	Budget time.Duration // loop.outage_budget
	Person bool          // no waiting helps: somebody has to pay, or to change something
	Back   time.Time     // when it makes sense to come back; zero when nobody knows
}

func (a Absent) Error() string {
	if a.Person {
		return "the provider wants somebody to pay, or to change something in its account: " + a.Why
	}
	text := fmt.Sprintf("%v: %s", a.Unwrap(), a.Why)
	if a.Waited >= time.Second {
		text += fmt.Sprintf("; %s of waiting are over", a.Waited.Round(time.Second))
		if a.Budget > 0 {
			text += fmt.Sprintf(" (loop.outage_budget is %s)", a.Budget)
		}
	}
	if !a.Back.IsZero() {
		text += "; come back after " + a.Back.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	return text
}

// Unwrap is ErrAway, or the engine's own word for it.
func (a Absent) Unwrap() error {
	if a.Class == roles.EngineGone {
		return sandbox.ErrUnreachable
	}
	return ErrAway
}

// weathered goes on after a call that the weather ended: with the next model of the
// chain where that may help, else after a wait, unless the outage budget or the
// provider's own word says that the person had better come back.
func weathered(p state.Phase, role, why string, class roles.Class, w Weather) (state.Phase, error) {
	back := p.Back
	if fallsBack(class) && p.Fallback[role]+1 < w.Models {
		p.Fallback = with(p.Fallback, role, p.Fallback[role]+1)
		p.Outage = tried(p.Outage, class, w.Now)
		return p, nil
	}
	o := tried(p.Outage, class, w.Now)
	p.Fallback = with(p.Fallback, role, 0) // once around: the first is the one that the person wants
	wait := pause(class, o.Tries, w)
	if ask := back.Sub(w.Now); !back.IsZero() && ask > wait {
		wait = ask + time.Duration(w.Jitter*float64(min(ask/10, 30*time.Second)))
	}
	used := time.Duration(o.UsedMS) * time.Millisecond
	if p.NeedsPerson || used+wait > w.Budget {
		p.Outage = nil // whoever runs it again has a reason to
		if p.NeedsPerson {
			return p, Absent{Class: class, Why: why, Person: true}
		}
		return p, Absent{Class: class, Why: why, Waited: used, Budget: w.Budget, Back: w.Now.Add(wait)}
	}
	o.WaitMS, o.Until = wait.Milliseconds(), w.Now.Add(wait).UTC()
	o.UsedMS += o.WaitMS
	p.Outage = o
	return p, nil
}

// tried is an outage with one more call that it ended.
func tried(was *state.Outage, class roles.Class, now time.Time) *state.Outage {
	o := state.Outage{Since: now.UTC()}
	if was != nil {
		o = *was
	}
	o.Class, o.Until, o.WaitMS = string(class), time.Time{}, 0
	o.Tries++
	return &o
}

// charged is an outage to whose budget a call that it ended counts as well.
func charged(was *state.Outage, class roles.Class, took time.Duration, now time.Time) *state.Outage {
	o := state.Outage{Since: now.UTC(), Class: string(class)}
	if was != nil {
		o = *was
	}
	o.UsedMS += took.Milliseconds()
	return &o
}

// fallsBack is whether another model may answer where this one does not.
func fallsBack(c roles.Class) bool { return c == roles.Quota || c == roles.Away }

// pause is how long is waited after a number of calls in a row: the first time
// shortly, for most trouble is short, then twice as long each time.
func pause(c roles.Class, tries int, w Weather) time.Duration {
	first, most := 2*time.Second, 5*time.Minute
	if c == roles.Quota { // which is filled up by the hour or the day
		first, most = 5*time.Minute, time.Hour
	}
	d := most
	if shift := tries - 1; shift < 10 {
		d = min(first<<shift, most)
	}
	return d + time.Duration(w.Jitter*float64(d)/2)
}

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

// left is how much of a wait remains. What the clock says is believed as far as
// it shortens the wait: a clock that was set back must not prolong it.
func left(o *state.Outage, now time.Time) time.Duration {
	if o == nil || o.Until.IsZero() {
		return 0
	}
	return max(min(o.Until.Sub(now), time.Duration(o.WaitMS)*time.Millisecond), 0)
}

// waitingFor says what is waited for.
func waitingFor(o *state.Outage) string {
	what := map[roles.Class]string{
		roles.Limited: "the provider limits the rate", roles.Quota: "the provider's quota is used up",
		roles.Network: "there is no connection with the provider", roles.EngineGone: "the engine was stopped",
	}[roles.Class(o.Class)]
	return cmp.Or(what, "the provider is in trouble")
}
