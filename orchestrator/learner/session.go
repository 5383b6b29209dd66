package learner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/testing/failpoint"
	"abl/internal/wording"
	"abl/roles"
	"abl/roles/retry"
)

// Caller makes the calls of a session. Made again under the same key, a call that has
// ended is not made twice.
type Caller interface {
	Ask(context.Context, Call) (Happened, error) // asks an agent
	Try(context.Context, Call) (Happened, error) // runs the program that it wrote
}

// Call is that of a state.
type Call struct {
	State
	Prompt string
	Dir    string // the cycle's folder: all that can be seen
}

// Session plays a session to its end.
type Session struct {
	Home   Home
	Calls  Caller
	Tell   func(text string)      // shows whole lines to a person
	Hosts  []string               // that an author can reach besides the model
	Admit  func(key string) error // asked whether a new call may be paid
	Clean  func(string) string    // takes secrets and control characters out of what an agent wrote
	Policy func() retry.Policy    // of this moment
	Sleep  func(context.Context, time.Duration, time.Time) error
}

// Play goes on from s until the session is done. What is done is saved, whatever
// ends it.
func (x *Session) Play(ctx context.Context, s State) (State, error) {
	for told := 0; s.Step != Done; {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		if told != s.Cycle && s.Step != Finish {
			x.Tell(cycleText(s))
			told = s.Cycle
		}
		if err := x.waitOut(ctx, s); err != nil {
			return s, err
		}
		h, err := x.act(ctx, s)
		if err != nil {
			return s, err
		}
		next, stop := After(s, h, x.Policy())
		if err := next.Save(x.Home); err != nil {
			return s, err
		}
		failpoint.Here("learn.saved")
		if stop != nil {
			return next, stop
		}
		if s.Step == Keep {
			x.Tell(reportText(next.Log[s.Cycle-1]))
		}
		s = next
	}
	return s, nil
}

// note tells something worth knowing.
func (x *Session) note(text string) { x.Tell("  " + wording.OneLine(text) + "\n") }

// waitOut waits, before a call, until it makes sense to make it.
func (x *Session) waitOut(ctx context.Context, s State) error {
	w := x.Policy()
	wait := retry.Left(s.Outage, w.Now)
	if wait <= 0 {
		return nil
	}
	until := w.Now.Add(wait)
	why := retry.Words(s.Outage, s.Note, min(w.Budget, CallTime))
	x.note(fmt.Sprintf("waits until %s UTC: %s", until.UTC().Format(time.TimeOnly), why))
	return x.Sleep(ctx, wait, until)
}

// act does one step.
func (x *Session) act(ctx context.Context, s State) (h Happened, err error) {
	if phases[s.Step].told != "" {
		x.Tell(stepText(s))
	}
	switch s.Step {
	case Run:
		return x.try(ctx, s)
	case Keep:
		h.Version, err = x.Home.keep(s, x.Policy().Now)
	case Finish:
		if best := s.Best(); best > 0 {
			var left []string
			left, err = x.Home.publish(best)
			for _, what := range left {
				x.note(x.Home.Rel(x.Home.Code()) + " lacks " + x.Clean(what))
			}
		}
	default:
		if h, err = x.ask(ctx, s); err == nil && h.Reason != "" {
			x.note("no answer: " + h.Reason)
		}
	}
	return h, err
}

// ask asks the agent, and keeps the answer as it came.
func (x *Session) ask(ctx context.Context, s State) (h Happened, err error) {
	a := Call{State: s, Dir: x.Home.Cycle(s.Cycle)}
	if a.Prompt, err = x.Home.prompt(s, x.Hosts); err != nil {
		return h, err
	}
	a.Prompt = x.Clean(a.Prompt)
	rec := roles.Record{Dir: x.Home.Project().Call(s.Key())}
	_, ended, err := rec.Outcome()
	if err == nil && !ended && !rec.Started() { // it does not go on, it begins
		if err = x.Admit(s.Key()); err == nil && s.Step == Generate {
			err = errors.Join(hostfs.Remove(x.Home.Root, filepath.Base(a.Dir)), os.MkdirAll(a.Dir, 0o755))
		}
	}
	if err != nil {
		return h, err
	}
	if h, err = x.Calls.Ask(ctx, a); err == nil && s.Step == Improve {
		h.Remembers, h.Avoids, err = x.Home.teach(s.Last(), false)
	}
	if err != nil {
		return h, err
	}
	h.Text, h.Reason = x.Clean(h.Text), x.Clean(h.Reason)
	if h.Class == outcome.Interrupted && ctx.Err() == nil {
		h.Class = "stopped" // by somebody else: an attempt that failed
	}
	text := h.Text
	if h.Class != outcome.Done {
		text = strings.TrimRight(text, "\n") + fmt.Sprintf("\n[no answer: %s: %s]\n", h.Class, h.Reason)
	}
	err = x.Home.note(s.Cycle, phases[s.Step].file, text)
	if s.Step == Generate {
		err = errors.Join(err, x.Home.note(s.Cycle, promptFile, a.Prompt))
	}
	return h, err
}

// try runs the program, when there is one.
func (x *Session) try(ctx context.Context, s State) (h Happened, err error) {
	f, err := hostfs.Open(x.Home.Cycle(s.Cycle), runFile)
	if errors.Is(err, hostfs.ErrAbsent) {
		err = errors.New("there is no " + runFile)
	}
	if err != nil {
		return Happened{Ran: &Ran{Reason: err.Error()}}, nil
	}
	f.Close()
	if h, err = x.Calls.Try(ctx, Call{State: s, Dir: x.Home.Cycle(s.Cycle)}); h.Ran != nil {
		h.Ran.Output, h.Ran.Reason = x.Clean(h.Ran.Output), x.Clean(h.Ran.Reason)
	}
	return h, err
}
