package state

import "time"

// Kind names what happened.
type Kind string

// The kinds, in the order in which a phase usually meets them.
const (
	PhaseStart Kind = "phase_start" // a round begins or resumes
	Note       Kind = "note"        // a message for the user
	CallStart  Kind = "call_start"
	CallResume Kind = "call_resume" // abl reattaches to a running call
	Action     Kind = "action"      // an agent's output, unverified, or a request to the model if it prints nothing
	Running    Kind = "running"     // usage of the running call
	CallEnd    Kind = "call_end"
	Wait       Kind = "wait" // abl waits for the provider or the engine
	Usage      Kind = "usage"
	Commit     Kind = "commit"
	Preparing  Kind = "preparing" // app.prepare installs the dependencies
	Prepared   Kind = "prepared"
	AppStart   Kind = "app_start"
	AppReady   Kind = "app_ready"
	AppFailed  Kind = "app_failed"
	Progress   Kind = "progress" // the current activity, since Time: for the status line only
	Verdict    Kind = "verdict"
	Outcome    Kind = "outcome" // the last event of a run
)

// Event is one event of a run. Its JSON form omits fields that do not apply.
type Event struct {
	Time      time.Time `json:"time"` // UTC
	Kind      Kind      `json:"event"`
	Phase     int       `json:"phase,omitempty"`
	Round     int       `json:"round,omitempty"`
	Iteration int       `json:"iteration,omitempty"`
	Step      int       `json:"step,omitempty"`
	Role      string    `json:"role,omitempty"`
	Call      string    `json:"call,omitempty"` // <call>.<attempt>
	Agent     string    `json:"agent,omitempty"`
	Model     string    `json:"model,omitempty"`
	Class     string    `json:"class,omitempty"`    // how a call ended
	Evidence  string    `json:"evidence,omitempty"` // the source of the class and its text
	Until     time.Time `json:"until,omitzero"`     // when to ask the provider again
	Verdict   string    `json:"verdict,omitempty"`  // pass, fail, unverified
	Hash      string    `json:"commit,omitempty"`
	Subject   string    `json:"subject,omitempty"`
	Text      string    `json:"text,omitempty"`
	Output    string    `json:"output,omitempty"`   // the last lines of the app or app.prepare before it failed
	Tokens    *int64    `json:"tokens,omitempty"`   // total of one usage row; absent when unknown
	CostUSD   string    `json:"cost_usd,omitempty"` // of that row, as in the ledger: dollars, or unknown
	AtLeast   bool      `json:"at_least,omitempty"` // tokens and cost are lower bounds
	MS        int64     `json:"ms,omitempty"`
	Exit      *int      `json:"exit,omitempty"`
	// Weak is set if abl could not verify the engine's networks and the user allowed that.
	Weak bool `json:"weak_network,omitempty"`
}

// Sink receives events. Emit must not block for long. It returns no error, because a failing
// display must not fail the run.
type Sink interface{ Emit(Event) }

// Func is a Sink made of a function.
type Func func(Event)

// Emit calls f.
func (f Func) Emit(e Event) { f(e) }

// Discard drops every event.
var Discard Sink = Func(func(Event) {})
