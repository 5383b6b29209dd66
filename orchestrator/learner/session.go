package learner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"abl/internal/testing/failpoint"
	"abl/roles"
	"abl/roles/fate"
)

// Asker asks an agent.
type Asker interface {
	Ask(context.Context, Ask) (Answer, error)
}

// Ask is one call to an agent. Asked again under the same key, an agent that
// answered is not asked twice.
type Ask struct {
	Key     string
	Step    Step
	Session int
	Cycle   int
	Attempt int
	Agent   string
	Model   string
	Prompt  string
	Dir     string        // the cycle's folder: all that the agent sees
	Limit   time.Duration // of this attempt
	Begin   func() error  // done before the call begins, not when it goes on
}

// Answer is how a call ended.
type Answer struct {
	Class   roles.Class
	Reason  string
	Back    time.Time // when the provider wants to be asked again
	Paid    bool      // no waiting helps
	Text    string    // the agent's last words
	SpentMS int64
}

// Trier runs a program that an agent wrote.
type Trier interface {
	Try(context.Context, Trial) (Ran, error)
}

// Trial is one run.
type Trial struct {
	Key     string
	Session int
	Cycle   int
	Dir     string
}

// ErrInterrupted says that a person stopped a program's run.
var ErrInterrupted = errors.New("the run was interrupted")

// Teller tells a person how it goes.
type Teller interface {
	Cycle(s State)            // one begins, or goes on
	Step(s State, asked bool) // likewise; asked is whether an agent is asked
	Wait(until time.Time, why string)
	Note(text string)                // something worth knowing
	Report(c Cycle)                  // a cycle ended
	Answered(s State, reason string) // an agent ended; reason is why it failed, "" when it did not
}

// Session plays a session to its end.
type Session struct {
	Home    Home
	Agent   Asker
	Program Trier
	Tell    Teller
	Hosts   []string            // that an author can reach besides the model
	Clean   func(string) string // takes secrets and control characters out of what an agent wrote
	Now     func() time.Time
	Jitter  func() float64 // from 0 up to 1
	Budget  time.Duration  // loop.outage_budget
	Sleep   func(context.Context, time.Duration, time.Time) error
}

// Play goes on from s until the session is done. What is done is saved, whatever
// ends it.
func (x *Session) Play(ctx context.Context, s State) (State, error) {
	told := 0
	for s.Step != Done {
		if err := ctx.Err(); err != nil {
			return s, err
		}
		if told != s.Cycle && s.Step != Finish {
			x.Tell.Cycle(s)
			told = s.Cycle
		}
		if err := x.waitOut(ctx, s); err != nil {
			return s, err
		}
		h, err := x.act(ctx, s)
		if err != nil {
			return s, err
		}
		h.Weather = fate.Weather{Now: x.Now(), Jitter: x.Jitter(), Budget: x.Budget}
		next, stop := After(s, h)
		if err := next.Save(x.Home); err != nil {
			return s, err
		}
		failpoint.Here("learn.saved")
		if stop != nil {
			return next, stop
		}
		if s.Step == Keep {
			x.Tell.Report(next.Log[s.Cycle-1])
		}
		s = next
	}
	return s, nil
}

// waitOut waits, before a call, until it makes sense to make it.
func (x *Session) waitOut(ctx context.Context, s State) error {
	wait := fate.Left(s.Outage, x.Now())
	if wait <= 0 {
		return nil
	}
	until := x.Now().Add(wait)
	x.Tell.Wait(until, fate.Words(s.Outage, s.Note, min(x.Budget, CallTime)))
	return x.Sleep(ctx, wait, until)
}

// act does one step.
func (x *Session) act(ctx context.Context, s State) (Happened, error) {
	switch s.Step {
	case Run:
		x.Tell.Step(s, false)
		ran, err := x.try(ctx, s)
		if errors.Is(err, ErrInterrupted) {
			return Happened{Class: roles.Interrupted}, nil
		}
		return Happened{Ran: &ran}, err
	case Weigh:
		kept, err := x.Home.weigh(s.Last())
		return Happened{Kept: kept}, err
	case Keep:
		kept, err := x.Home.keep(s, x.Now())
		return Happened{Kept: kept}, err
	case Finish:
		return Happened{}, x.finish(s)
	}
	x.Tell.Step(s, true)
	h, err := x.ask(ctx, s)
	if err == nil {
		x.Tell.Answered(s, h.Reason)
	}
	return h, err
}

// ask makes the call that the session is at, and keeps the answer as it came.
func (x *Session) ask(ctx context.Context, s State) (Happened, error) {
	k, err := x.Home.known()
	if err != nil {
		return Happened{}, err
	}
	a := Ask{
		Key: s.Key(), Step: s.Step, Session: s.Session, Cycle: s.Cycle, Attempt: s.Attempt, Agent: s.Last().Agent, Model: s.Last().Model, Dir: x.Home.Cycle(s.Cycle),
		Limit: CallTime - time.Duration(s.SpentMS)*time.Millisecond, Begin: func() error { return nil },
	}
	if s.Step == Generate {
		a.Prompt = enhanced(k, s.Task, x.Hosts)
		a.Begin = func() error { return x.Home.clear(s.Cycle) }
	} else {
		a.Prompt = question(s, k.Prompt)
	}
	a.Prompt = x.Clean(a.Prompt)
	answer, err := x.Agent.Ask(ctx, a)
	if err != nil {
		return Happened{}, err
	}
	answer.Text, answer.Reason = x.Clean(answer.Text), x.Clean(answer.Reason)
	if answer.Class == roles.Interrupted && ctx.Err() == nil {
		answer.Class = "stopped" // by somebody else: an attempt that failed
	}
	err = x.store(s, a.Prompt, answer)
	return Happened{Class: answer.Class, Reason: answer.Reason, Back: answer.Back, Paid: answer.Paid, SpentMS: answer.SpentMS, Text: answer.Text}, err
}

// store keeps an answer beside the program.
func (x *Session) store(s State, prompt string, a Answer) error {
	text := a.Text
	if a.Class != roles.Done {
		text = strings.TrimRight(text, "\n") + fmt.Sprintf("\n[no answer: %s: %s]\n", a.Class, a.Reason)
	}
	files := map[Step]string{Generate: outputFile, Review: reviewFile, Learnings: learningsFile, Mistakes: cycleMistakes, Improve: improvedFile}
	err := x.Home.note(s.Cycle, files[s.Step], text)
	if s.Step == Generate {
		err = errors.Join(x.Home.note(s.Cycle, promptFile, prompt), err)
	}
	if err != nil {
		return fmt.Errorf("cannot keep an answer: %w", err)
	}
	return nil
}

// try runs the program, when there is one.
func (x *Session) try(ctx context.Context, s State) (Ran, error) {
	if why := x.Home.hasRun(s.Cycle); why != "" {
		return Ran{Reason: why}, nil
	}
	ran, err := x.Program.Try(ctx, Trial{Key: s.Key(), Session: s.Session, Cycle: s.Cycle, Dir: x.Home.Cycle(s.Cycle)})
	ran.Output, ran.Reason = x.Clean(ran.Output), x.Clean(ran.Reason)
	return ran, err
}

// finish makes code/ of the last cycle that succeeded.
func (x *Session) finish(s State) error {
	best := s.Best()
	if best == 0 {
		return nil
	}
	left, err := x.Home.publish(best)
	for _, what := range left {
		x.Tell.Note(x.Home.Rel(x.Home.Code()) + " lacks " + x.Clean(what))
	}
	return err
}
