package learner

import (
	"fmt"
	"strings"

	"abl/orchestrator/learner/answer"
	"abl/orchestrator/learner/lesson"
	"abl/orchestrator/learner/promptbook"
	"abl/orchestrator/learner/review"
)

// Class is how a call to an agent ended.
type Class string

// The classes that decide; any other is a failure of the agent.
const (
	Answered    Class = "done"
	TimedOut    Class = "timeout"
	Interrupted Class = "interrupted"
)

// Happened is what came of a step.
type Happened struct {
	Class   Class
	Reason  string // why it is not Answered
	SpentMS int64
	Text    string // the answer
	Ran     *Ran   // of Run
	Kept    Kept   // of Keep
}

// Kept is what Keep wrote.
type Kept struct {
	Remembers, Avoids int
	Version           int
}

// maxSaid bounds an author's words in the prompts that follow, in runes.
const maxSaid = 2000

// After is the state after a step. A cycle in which the agent or the program
// failed has no review and no learnings: what can be learned from it are its
// mistakes, and a better prompt.
func After(s State, h Happened) State {
	s.Log = append([]Cycle(nil), s.Log...)
	switch s.Step {
	case Generate, Review, Learnings, Mistakes, Improve:
		return afterCall(s, h)
	case Run:
		return afterRun(s, h)
	case Keep:
		c := s.at()
		c.Remembers, c.Avoids, c.Version = h.Kept.Remembers, h.Kept.Avoids, h.Kept.Version
		if s.Cycle >= s.Cycles {
			return s.to(Finish)
		}
		s.Cycle++
		s.Book = c.Version
		s.Log = append(s.Log, Cycle{Number: s.Cycle, Agent: s.Agent, Model: s.Model})
		return s.to(Generate)
	case Finish:
		return s.to(Done)
	}
	return s
}

// at is the running cycle, to be changed.
func (s State) at() *Cycle { return &s.Log[len(s.Log)-1] }

func (s State) to(step Step) State {
	s.Step, s.Attempt, s.Failed, s.SpentMS = step, 1, 0, 0
	return s
}

// afterCall goes on from a call to the agent. One that a person stopped is made
// anew and takes nothing of the time; one that failed is made once more while
// there is time.
func afterCall(s State, h Happened) State {
	if h.Class == Interrupted {
		s.Attempt++
		return s
	}
	s.SpentMS += h.SpentMS
	if h.Class != Answered {
		s.Failed++
		if h.Class != TimedOut && s.Failed < tries && s.SpentMS < CallTime.Milliseconds() {
			s.Attempt++
			return s
		}
		if s.Step != Generate {
			c := s.at()
			c.Silent = append(c.Silent, fmt.Sprintf("%s: %s", s.Step, h.Reason))
		}
		h.Text = ""
	}
	return s.take(h)
}

// take reads the answer of a call that ended.
func (s State) take(h Happened) State {
	c := s.at()
	switch s.Step {
	case Generate:
		c.Said = answer.Cut(strings.TrimSpace(h.Text), maxSaid)
		if h.Class != Answered {
			c.Failure = "the agent failed: " + h.Reason
			return s.failed()
		}
		return s.to(Run)
	case Review:
		if h.Class == Answered {
			r := review.Parse(h.Text)
			c.Review = &r
		}
		return s.to(Learnings)
	case Learnings:
		c.Learned = c.lessons(lesson.Learning, h.Text)
		return s.to(Mistakes)
	case Mistakes:
		c.Mistaken = c.lessons(lesson.Mistake, h.Text)
		return s.to(Improve)
	case Improve:
		c.Improved = promptbook.Improved(h.Text)
		return s.to(Keep)
	}
	return s
}

func (c *Cycle) lessons(kind lesson.Kind, text string) []string {
	found := lesson.Parse(kind, text)
	for _, d := range found.Dropped {
		c.Dropped = append(c.Dropped, fmt.Sprintf("%s (%s)", d.Text, d.Why))
	}
	return found.Items
}

func afterRun(s State, h Happened) State {
	if h.Class == Interrupted {
		s.Attempt++
		return s
	}
	c := s.at()
	c.Ran = h.Ran
	switch {
	case h.Ran == nil:
		c.Failure = "the program failed"
	case !h.Ran.OK:
		c.Failure = "the program failed: " + h.Ran.Reason
	case !strings.Contains(h.Ran.Output, s.Expect):
		c.Failure = fmt.Sprintf("the program failed: its output lacks %q", answer.Cut(s.Expect, maxExpect))
	case s.Plain:
		c.OK = true
		return s.to(Done)
	default:
		c.OK = true
		return s.to(Review)
	}
	return s.failed()
}

// maxExpect bounds what is quoted of an expected output, in runes.
const maxExpect = 80

// failed goes on from a cycle without a program that runs.
func (s State) failed() State {
	switch {
	case !s.Plain:
		return s.to(Mistakes)
	case s.Cycle >= s.Cycles:
		return s.to(Done)
	}
	s.Cycle++
	s.Log = append(s.Log, Cycle{Number: s.Cycle, Agent: s.Agent, Model: s.Model})
	return s.to(Generate)
}
