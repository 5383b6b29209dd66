package state

import "time"

// Kind names what happened.
type Kind string

// The kinds, in the order in which a phase usually meets them.
const (
	PhaseStart Kind = "phase_start" // a round begins or goes on
	Note       Kind = "note"        // a sentence for the person
	CallStart  Kind = "call_start"
	CallResume Kind = "call_resume" // a call that was still running is attached to
	Action     Kind = "action"      // the agent's last action, from its own output: unverified words
	Running    Kind = "running"     // what the call has used so far
	CallEnd    Kind = "call_end"
	Wait       Kind = "wait" // the provider or the engine is waited for
	Usage      Kind = "usage"
	Commit     Kind = "commit"
	Preparing  Kind = "preparing" // the dependencies of the source are brought
	Prepared   Kind = "prepared"
	AppStart   Kind = "app_start"
	AppReady   Kind = "app_ready"
	AppFailed  Kind = "app_failed"
	Progress   Kind = "progress" // what goes on this moment, since Time: for the status line alone
	Verdict    Kind = "verdict"
	Outcome    Kind = "outcome" // the last one
)

// Event is one fact. Fields that do not apply are absent from its JSON form.
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
	Evidence  string    `json:"evidence,omitempty"` // what the class rests on: who says so, and what
	Until     time.Time `json:"until,omitzero"`     // when it makes sense to ask the provider again
	Verdict   string    `json:"verdict,omitempty"`  // pass, fail, unverified
	Hash      string    `json:"commit,omitempty"`
	Subject   string    `json:"subject,omitempty"`
	Text      string    `json:"text,omitempty"`
	Output    string    `json:"output,omitempty"`   // the last lines that the app, or app.prepare, printed before it failed
	Tokens    *int64    `json:"tokens,omitempty"`   // total of one usage row; absent when unknown
	CostUSD   string    `json:"cost_usd,omitempty"` // of that row, as in the ledger: dollars, or unknown
	AtLeast   bool      `json:"at_least,omitempty"` // tokens and cost are lower bounds
	MS        int64     `json:"ms,omitempty"`
	Exit      *int      `json:"exit,omitempty"`
	Weak      bool      `json:"weak_network,omitempty"` // the engine's networks are not proven, and the person allowed that
}

// Sink takes events. It must not block for long and must not fail the run:
// what is shown never decides what is done.
type Sink interface{ Emit(Event) }

// Func is a Sink made of a function.
type Func func(Event)

// Emit calls f.
func (f Func) Emit(e Event) { f(e) }

// Discard drops every event.
var Discard Sink = Func(func(Event) {})
