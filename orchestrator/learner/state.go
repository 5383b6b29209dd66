// Package learner runs learning sessions: an agent writes a program in several cycles, and the
// lessons of each cycle go into the prompt of the next. After decides, Session acts, and Containers
// makes the calls. The package does not depend on the command line, exit codes or a terminal.
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
	"abl/roles/call"
)

// Step is the state of a session.
type Step string

// The steps of a cycle in their order, and then those of the end of a session.
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

// Limits of a session.
const (
	MaxCycles     = 10
	DefaultCycles = 3
	CallTime      = 300 * time.Second // of one agent call
	RunTime       = 10 * time.Second  // of the program
	tries         = 2                 // of one agent call
)

// version is the version of the state file.
const version = 1

// State is the state of a session. It is saved after every step.
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
	// Number of the step's call; each attempt has its own key.
	Attempt int `json:"attempt"`
	Failed  int `json:"failed"` // number of attempts in which the agent failed
	// The last version in prompts.md when the cycle began.
	Book    int       `json:"book"`
	Log     []Cycle   `json:"log"`
	Started time.Time `json:"started"`

	// Set while the session waits for the provider or the engine.
	Outage *state.Outage `json:"outage,omitempty"`
	Note   string        `json:"note,omitempty"` // why
}

// Cycle is the result of one cycle.
type Cycle struct {
	Number   int         `json:"cycle"`
	Agent    string      `json:"agent"`
	Model    string      `json:"model"`
	OK       bool        `json:"ok"`
	Failure  string      `json:"failure,omitempty"`
	Said     string      `json:"said,omitempty"` // the author's message, cut
	Ran      *Ran        `json:"run,omitempty"`
	Review   *CodeReview `json:"review,omitempty"`
	Learned  []string    `json:"learnings,omitempty"`
	Mistaken []string    `json:"mistakes,omitempty"`
	// Lessons that were dropped, and why.
	Dropped  []string `json:"dropped,omitempty"`
	Improved string   `json:"improved_prompt,omitempty"`
	// How many of Learned are new in memory.txt.
	Remembers int `json:"new_learnings"`
	Avoids    int `json:"new_mistakes"`
	// The version under which the prompt of this cycle is archived.
	Version int      `json:"prompt_version"`
	Silent  []string `json:"unanswered,omitempty"`
}

// Ran is the result of running the program.
type Ran struct {
	OK bool `json:"ok"`
	// It was still running after RunTime, and abl ended it.
	Running bool   `json:"running"`
	Exit    int    `json:"exit"`
	Ports   string `json:"ports,omitempty"` // on which it listened, separated by spaces
	Output  string `json:"output,omitempty"`
	Reason  string `json:"reason,omitempty"` // why it is not OK
}

// Fresh returns the state of a new project.
func Fresh() State { return State{Version: version, ID: "learn-" + strings.ToLower(rand.Text()[:10])} }

// Begin returns the state with a new session.
func (s State) Begin(task, agent, model string, cycles int, now time.Time) State {
	return State{
		Version: version,
		ID:      s.ID,
		Session: s.Session + 1,
		Task:    task,
		Agent:   agent,
		Model:   model,
		Cycles:  cycles,
		Step:    Generate,
		Cycle:   1,
		Attempt: 1,
		Started: now.UTC(),
		Log:     []Cycle{{Number: 1, Agent: agent, Model: model}},
	}
}

// Last returns the last cycle, which may be changed.
func (s State) Last() *Cycle { return &s.Log[len(s.Log)-1] }

// Best returns the last cycle that succeeded, or 0.
func (s State) Best() int {
	for _, c := range slices.Backward(s.Log) {
		if c.OK {
			return c.Number
		}
	}
	return 0
}

// Key returns the key of the current call.
func (s State) Key() string {
	return fmt.Sprintf("s%d-c%d-%s.%d", s.Session, s.Cycle, s.Step, s.Attempt)
}

// stateFile is the path of a project's state.
const stateFile = ".abl/learn.json"

// Load reads a project's state. It returns Fresh for a new project.
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
		err = fmt.Errorf("it has version %d, but this abl supports version %d", s.Version, version)
	case !idForm.MatchString(s.ID), s.Session > 0 && (!known || s.Cycle < 1 || len(s.Log) != s.Cycle):
		err = errors.New("it is damaged") // no step could follow
	}
	if err != nil {
		err = fmt.Errorf("cannot use %s: %w; update abl, or move the file away to start again with the lessons so far",
			h.Rel(h.path(stateFile)), err)
	}
	return s, err
}

// idForm matches an ID, which is part of names and labels on the engine.
var idForm = regexp.MustCompile(`^learn-[a-z0-9]{10}$`)

// Save writes the state.
func (s State) Save(h Home) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err == nil {
		err = hostfs.Write(h.path(stateFile), append(data, '\n'), perm)
	}
	return err
}

// Happened is the result of a step.
type Happened struct {
	outcome.Fault      // Class is Done if the step succeeded
	Unheard       bool // no request of the call reached the provider
	SpentMS       int64
	Text          string // the answer
	Ran           *Ran   // of Run
	Version       int    // of Keep: the version under which the prompt is archived

	// Of Improve: new lessons, counted before they are written.
	Remembers, Avoids int
}

// maxSaid is the largest length of an author's message in later prompts, in characters.
const maxSaid = 2000

// After returns the state after a step. A cycle in which the agent or the program failed has no
// review and no learnings, only mistakes and a better prompt. An error means that the run ends. The
// returned state is where the next run continues.
func After(s State, h Happened, w call.Policy) (State, error) {
	s.Log = slices.Clone(s.Log)
	c := s.Last()
	switch {
	case h.Class == outcome.Interrupted: // it is repeated, and does not count as a failure
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
		return s, fmt.Errorf("internal error: no step follows %q", s.Step)
	}
	return s.to(phases[s.Step].next), nil
}

// to returns the state at the beginning of a step.
func (s State) to(step Step) State { return s.at(step, 1) }

// at returns the state at the first try of a step.
func (s State) at(step Step, attempt int) State {
	s.Step, s.Attempt, s.Failed, s.Outage, s.Note = step, attempt, 0, nil, ""
	return s
}

// afterCall continues after a call to the agent. It waits after a transient failure, ends the run if
// repeating does not help, and repeats the call once after any other failure.
func afterCall(s State, h Happened, w call.Policy) (State, error) {
	if h.Class.Transient() {
		return s.waitOut(h, w)
	}
	if err := call.Stops(h.Fault); err != nil {
		// Under another key, for when the user has fixed the cause.
		return s.at(s.Step, s.Attempt+1), err
	}
	s.Outage = nil
	if h.Class == outcome.Done {
		return s.withAnswer(h), nil
	}
	s.Failed++
	if h.Class != outcome.Timeout && s.Failed < tries {
		s.Attempt++
		return s, nil
	}
	if c := s.Last(); s.Step != Generate {
		c.Silent = append(c.Silent, fmt.Sprintf("%s: %s", s.Step, h.What))
	}
	h.Text = ""
	return s.withAnswer(h), nil
}

// waitOut continues after a transient failure.
func (s State) waitOut(h Happened, w call.Policy) (State, error) {
	s.Outage = call.Charged(s.Outage, h.Class, time.Duration(h.SpentMS)*time.Millisecond, w.Now)
	o, err := call.Wait(s.Outage, h.Fault, w)
	if err != nil {
		return s.at(s.Step, s.Attempt+1), err
	}
	s.Attempt++
	s.Outage, s.Note = o, h.What
	return s, nil
}

// withAnswer returns the state with the answer of an ended call.
func (s State) withAnswer(h Happened) State {
	c := s.Last()
	switch s.Step {
	case Generate:
		c.Said = wording.Cut(strings.TrimSpace(h.Text), maxSaid)
		if h.Class != outcome.Done {
			c.Failure = "the agent failed: " + h.What
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
