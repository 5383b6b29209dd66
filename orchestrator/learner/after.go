package learner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"abl/internal/outcome"
	"abl/internal/wording"
	"abl/roles/retry"
)

// Happened is what came of a step.
type Happened struct {
	Class   outcome.Outcome
	Reason  string    // why it is not done
	Back    time.Time // when the provider wants to be asked again; zero when it does not say
	Paid    bool      // no waiting helps
	SpentMS int64
	Text    string // the answer
	Ran     *Ran   // of Run
	Version int    // of Keep: under which the prompt is archived

	Remembers, Avoids int // of Improve: new lessons, counted before they are written
}

// maxSaid bounds an author's words in the prompts that follow, in runes.
const maxSaid = 2000

// After is the state after a step. A cycle in which the agent or the program
// failed has no review and no learnings: what can be learned from it are its
// mistakes, and a better prompt. The error says that the run ends here; the state
// returned with it is where the next run takes up.
func After(s State, h Happened, w retry.Policy) (State, error) {
	s.Log = slices.Clone(s.Log)
	c := s.Last()
	switch {
	case h.Class == outcome.Interrupted: // by a person: it is made anew, and takes nothing of the time
		s.Attempt++
		return s, nil
	case phases[s.Step].file != "":
		return afterCall(s, h, w)
	case s.Step == Run:
		c.Ran, c.OK = h.Ran, h.Ran.OK
		if !c.OK {
			c.Failure = "the program failed: " + h.Ran.Reason
			return s.to(Mistakes), nil
		}
	case s.Step == Keep:
		c.Version, s.Book = h.Version, h.Version
		if s.Cycle >= s.Cycles {
			return s.to(Finish), nil
		}
		s.Cycle++
		s.Log = append(s.Log, Cycle{Number: s.Cycle, Agent: s.Agent, Model: s.Model})
		return s.to(Generate), nil
	case phases[s.Step].next == "":
		return s, fmt.Errorf("internal error: nothing comes after %q", s.Step)
	}
	return s.to(phases[s.Step].next), nil
}

// to is the state at the beginning of a step.
func (s State) to(step Step) State { return s.at(step, 1) }

// at opens an attempt that has all the time of a call.
func (s State) at(step Step, attempt int) State {
	s.Step, s.Attempt, s.Failed, s.SpentMS, s.Outage, s.Note = step, attempt, 0, 0, nil, ""
	return s
}

// afterCall goes on from a call to the agent. A transient failure is waited out while there
// is time; what no repetition can mend ends the run; any other failure is tried once more.
func afterCall(s State, h Happened, w retry.Policy) (State, error) {
	s.SpentMS += h.SpentMS
	if h.Class.Transient() {
		return s.waitOut(h, w)
	}
	if err := retry.Stops(h.Class, h.Reason); err != nil {
		return s.at(s.Step, s.Attempt+1), err // under a name of its own, once somebody has done something about it
	}
	s.Outage = nil
	if h.Class == outcome.Done {
		return s.take(h), nil
	}
	s.Failed++
	if h.Class != outcome.Timeout && s.Failed < tries && s.SpentMS < CallTime.Milliseconds() {
		s.Attempt++
		return s, nil
	}
	if c := s.Last(); s.Step != Generate {
		c.Silent = append(c.Silent, fmt.Sprintf("%s: %s", s.Step, h.Reason))
	}
	h.Text = ""
	return s.take(h), nil
}

// waitOut goes on after a call that a transient failure ended. The waits are part of the
// time that a call has: one that would leave none ends the run.
func (s State) waitOut(h Happened, w retry.Policy) (State, error) {
	s.Outage = retry.Charged(s.Outage, h.Class, time.Duration(h.SpentMS)*time.Millisecond, w.Now)
	room := CallTime - leastCall - time.Duration(s.SpentMS)*time.Millisecond
	if most := time.Duration(s.Outage.UsedMS)*time.Millisecond + room; most < w.Budget {
		w.Budget, w.Bound = most, fmt.Sprintf("a call may take %s, retries included", CallTime)
	}
	o, err := retry.Wait(s.Outage, outcome.Fault{Class: h.Class, What: h.Reason, Back: h.Back, Paid: h.Paid}, w)
	if err != nil {
		return s.at(s.Step, s.Attempt+1), err
	}
	s.Attempt++
	s.Outage, s.Note = o, h.Reason
	s.SpentMS += o.WaitMS
	return s, nil
}

// take reads the answer of a call that ended.
func (s State) take(h Happened) State {
	c := s.Last()
	switch s.Step {
	case Generate:
		c.Said = wording.Cut(strings.TrimSpace(h.Text), maxSaid)
		if h.Class != outcome.Done {
			c.Failure = "the agent failed: " + h.Reason
			return s.to(Mistakes)
		}
	case Review:
		if h.Class == outcome.Done {
			r := ParseReview(h.Text)
			c.Review = &r
		}
	case Learnings:
		c.Learned = c.lessons(LabelLearning, h.Text)
	case Mistakes:
		c.Mistaken = c.lessons(LabelMistake, h.Text)
	case Improve:
		c.Improved, c.Remembers, c.Avoids = Improved(h.Text), h.Remembers, h.Avoids
	}
	return s.to(phases[s.Step].next)
}

func (c *Cycle) lessons(kind string, text string) []string {
	found := ParseLessons(kind, text)
	for _, d := range found.Dropped {
		c.Dropped = append(c.Dropped, fmt.Sprintf("%s (%s)", d.Text, d.Why))
	}
	return found.Items
}
