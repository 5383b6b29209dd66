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
	"abl/internal/state"
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
	CallTime      = 300 * time.Second // of one agent call, retries included
	RunTime       = 10 * time.Second  // of the program
	tries         = 2                 // of one agent call
	leastCall     = 10 * time.Second  // in less no agent answers
)

// version is that of the state file.
const version = 1

// State is where a session is. It is saved after every step.
type State struct {
	Version int       `json:"version"`
	ID      string    `json:"id"`      // of the project, on the engine
	Session int       `json:"session"` // counted from 1
	Task    string    `json:"task"`
	Agent   string    `json:"agent"`
	Model   string    `json:"model"`
	Cycles  int       `json:"cycles"`
	Step    Step      `json:"step"`
	Cycle   int       `json:"cycle"`
	Attempt int       `json:"attempt"`  // of the step's call; each has a name of its own
	Failed  int       `json:"failed"`   // how many attempts the agent failed in
	SpentMS int64     `json:"spent_ms"` // by attempts so far, and by the waits between them
	Book    int       `json:"book"`     // the last version in prompts.md when the cycle began
	Log     []Cycle   `json:"log"`
	Started time.Time `json:"started"`

	Outage *state.Outage `json:"outage,omitempty"` // the provider or the engine is waited for
	Note   string        `json:"note,omitempty"`   // why
}

// Cycle is what is known of one.
type Cycle struct {
	Number    int         `json:"cycle"`
	Agent     string      `json:"agent"`
	Model     string      `json:"model"`
	OK        bool        `json:"ok"`
	Failure   string      `json:"failure,omitempty"`
	Said      string      `json:"said,omitempty"` // the author's own words, cut
	Ran       *Ran        `json:"run,omitempty"`
	Review    *CodeReview `json:"review,omitempty"`
	Learned   []string    `json:"learnings,omitempty"`
	Mistaken  []string    `json:"mistakes,omitempty"`
	Dropped   []string    `json:"dropped,omitempty"` // lessons that are not kept, and why
	Improved  string      `json:"improved_prompt,omitempty"`
	Remembers int         `json:"new_learnings"` // of Learned, those that memory.txt did not have
	Avoids    int         `json:"new_mistakes"`
	Version   int         `json:"prompt_version"` // under which the prompt of this cycle is archived
	Silent    []string    `json:"unanswered,omitempty"`
}

// Ran is how the program did.
type Ran struct {
	OK      bool   `json:"ok"`
	Running bool   `json:"running"` // it was still running after RunTime, and was ended
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
	known := slices.Contains([]Step{Generate, Run, Review, Learnings, Mistakes, Improve, Keep, Finish, Done}, s.Step)
	switch {
	case err != nil:
	case s.Version > version:
		return s, fmt.Errorf("cannot read %s: it has version %d, this abl knows %d: update abl", h.Rel(h.path(stateFile)), s.Version, version)
	case !idForm.MatchString(s.ID), s.Session > 0 && (!known || s.Cycle < 1 || max(s.Cycle, s.Cycles) > MaxCycles || len(s.Log) != s.Cycle):
		err = errors.New("it is damaged") // no step would lead out of it
	}
	if err != nil {
		err = fmt.Errorf("cannot use %s: %w; move it away to begin anew with what was learned", h.Rel(h.path(stateFile)), err)
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
