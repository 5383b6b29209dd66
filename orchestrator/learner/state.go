// Package learner runs learning sessions: an agent writes a program again and again,
// and what each cycle teaches goes into the prompt of the next. After decides, Session
// does, and Containers makes the calls in an environment. No command line, exit code or
// terminal may be in it.
package learner

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/state"
	"abl/internal/wording"
	"abl/roles/retry"
)

// Step is where a session rests.
type Step string

// The steps of a cycle, in their order, and then the end of a session.
const (
	Generate  Step = "generate"
	Run       Step = "run"
	Review    Step = "review"
	Learnings Step = "learnings"
	Mistakes  Step = "mistakes"
	Improve   Step = "improve"
	Keep      Step = "keep" // memory.txt, mistakes.txt and prompts.md
	Finish    Step = "finish"
	Done      Step = "done"
)

// Bounds of a session.
const (
	MaxCycles     = 10
	DefaultCycles = 3
	CallTime      = 300 * time.Second // of one agent call
	RunTime       = 10 * time.Second  // of the program
	tries         = 2                 // of one agent call
)

// version is that of the state file.
const version = 1

// State is where a session is. It is saved after every step.
type State struct {
	Version int    `json:"version"`
	ID      string `json:"id"`      // of the project, on the engine
	Session int    `json:"session"` // counted from 1
	Task    string `json:"task"`
	Agent   string `json:"agent"`
	Model   string `json:"model"`
	Cycles  int    `json:"cycles"`
	Step    Step   `json:"step"`
	Cycle   int    `json:"cycle"`
	// Of the step's call; each has a name of its own.
	Attempt int `json:"attempt"`
	Failed  int `json:"failed"` // how many attempts the agent failed in
	// The last version in prompts.md when the cycle began.
	Book    int       `json:"book"`
	Log     []Cycle   `json:"log"`
	Started time.Time `json:"started"`

	// The provider or the engine is waited for.
	Outage *state.Outage `json:"outage,omitempty"`
	Note   string        `json:"note,omitempty"` // why
}

// Cycle is what is known of one.
type Cycle struct {
	Number   int         `json:"cycle"`
	Agent    string      `json:"agent"`
	Model    string      `json:"model"`
	OK       bool        `json:"ok"`
	Failure  string      `json:"failure,omitempty"`
	Said     string      `json:"said,omitempty"` // the author's own words, cut
	Ran      *Ran        `json:"run,omitempty"`
	Review   *CodeReview `json:"review,omitempty"`
	Learned  []string    `json:"learnings,omitempty"`
	Mistaken []string    `json:"mistakes,omitempty"`
	// Lessons that are not kept, and why.
	Dropped  []string `json:"dropped,omitempty"`
	Improved string   `json:"improved_prompt,omitempty"`
	// Of Learned, those that memory.txt did not have.
	Remembers int `json:"new_learnings"`
	Avoids    int `json:"new_mistakes"`
	// Under which the prompt of this cycle is archived.
	Version int      `json:"prompt_version"`
	Silent  []string `json:"unanswered,omitempty"`
}

// Ran is how the program did.
type Ran struct {
	OK bool `json:"ok"`
	// It was still running after RunTime, and was ended.
	Running bool   `json:"running"`
	Exit    int    `json:"exit"`
	Ports   string `json:"ports,omitempty"` // on which it listened, by spaces
	Output  string `json:"output,omitempty"`
	Reason  string `json:"reason,omitempty"` // why it is not OK
}

// Fresh is a new project.
func Fresh() State { return State{Version: version, ID: "learn-" + strings.ToLower(rand.Text()[:10])} }

// Begin is the state with a new session in it.
func (s State) Begin(task, agent, model string, cycles int, now time.Time) State {
	return State{
		Version: version, ID: s.ID, Session: s.Session + 1, Task: task, Agent: agent, Model: model, Cycles: cycles,
		Step: Generate, Cycle: 1, Attempt: 1, Started: now.UTC(), Log: []Cycle{{Number: 1, Agent: agent, Model: model}},
	}
}

// Last is the cycle that the session is in, or was in last, to be changed.
func (s State) Last() *Cycle { return &s.Log[len(s.Log)-1] }

// Best is the last cycle that succeeded, 0 for none.
func (s State) Best() int {
	for _, c := range slices.Backward(s.Log) {
		if c.OK {
			return c.Number
		}
	}
	return 0
}

// Key names the call that the session is at.
func (s State) Key() string {
	return fmt.Sprintf("s%d-c%d-%s.%d", s.Session, s.Cycle, s.Step, s.Attempt)
}

// stateFile is where a project keeps its state.
const stateFile = ".abl/learn.json"

// Load reads a project's state; one that was never begun is Fresh.
func Load(h Home) (s State, err error) {
	data, err := hostfs.Read(h.Root, stateFile, 16<<20)
	if errors.Is(err, hostfs.ErrAbsent) {
		return Fresh(), nil
	}
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	_, known := phases[s.Step]
	switch {
	case err != nil:
	case s.Version > version:
		err = fmt.Errorf("it has version %d, and this abl knows %d", s.Version, version)
	case !idForm.MatchString(s.ID), s.Session > 0 && (!known || s.Cycle < 1 || len(s.Log) != s.Cycle):
		err = errors.New("it is damaged") // no step would lead out of it
	}
	if err != nil {
		err = fmt.Errorf("cannot use %s: %w; update abl, or move it away to begin anew with what was learned", h.Rel(h.path(stateFile)), err)
	}
	return s, err
}

// idForm is that of an ID: it is part of names and labels on the engine.
var idForm = regexp.MustCompile(`^learn-[a-z0-9]{10}$`)

// Save keeps it.
func (s State) Save(h Home) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = hostfs.Write(h.path(stateFile), append(data, '\n'), perm)
	}
	return err
}

// Happened is what came of a step.
type Happened struct {
	Class  outcome.Outcome
	Reason string // why it is not done
	// When the provider wants to be asked again; zero when it does not say.
	Back    time.Time
	Paid    bool // no waiting helps
	Grown   bool // the prompt became too long during the call
	Unheard bool // no request of the call reached the provider
	SpentMS int64
	Text    string // the answer
	Ran     *Ran   // of Run
	Version int    // of Keep: under which the prompt is archived

	// Of Improve: new lessons, counted before they are written.
	Remembers, Avoids int
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
	case h.Class == outcome.Interrupted: // by a person: it is made anew, and counts as no try
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

// at opens an attempt before which nothing was tried.
func (s State) at(step Step, attempt int) State {
	s.Step, s.Attempt, s.Failed, s.Outage, s.Note = step, attempt, 0, nil, ""
	return s
}

// afterCall goes on from a call to the agent. A transient failure is waited out; what no
// repetition can mend ends the run; any other failure is tried once more.
func afterCall(s State, h Happened, w retry.Policy) (State, error) {
	if h.Class.Transient() {
		return s.waitOut(h, w)
	}
	if err := retry.Stops(outcome.Fault{Class: h.Class, What: h.Reason, Grown: h.Grown}); err != nil {
		// Under a name of its own, once somebody has done something about it.
		return s.at(s.Step, s.Attempt+1), err
	}
	s.Outage = nil
	if h.Class == outcome.Done {
		return s.take(h), nil
	}
	s.Failed++
	if h.Class != outcome.Timeout && s.Failed < tries {
		s.Attempt++
		return s, nil
	}
	if c := s.Last(); s.Step != Generate {
		c.Silent = append(c.Silent, fmt.Sprintf("%s: %s", s.Step, h.Reason))
	}
	h.Text = ""
	return s.take(h), nil
}

// waitOut goes on after a call that a transient failure ended.
func (s State) waitOut(h Happened, w retry.Policy) (State, error) {
	s.Outage = retry.Charged(s.Outage, h.Class, time.Duration(h.SpentMS)*time.Millisecond, w.Now)
	o, err := retry.Wait(s.Outage, outcome.Fault{Class: h.Class, What: h.Reason, Back: h.Back, Paid: h.Paid}, w)
	if err != nil {
		return s.at(s.Step, s.Attempt+1), err
	}
	s.Attempt++
	s.Outage, s.Note = o, h.Reason
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
