package roles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/roles/agent"
)

// Record is the directory with the input, the output and the outcome of one call. abl never
// removes it.
type Record struct{ Dir string }

// In returns the directory that the container sees read-only.
func (r Record) In() string { return filepath.Join(r.Dir, "in") }

// Stdout returns the file for the agent's standard output.
func (r Record) Stdout() string { return filepath.Join(r.Dir, "stdout") }

// Stderr returns the file for the agent's standard error.
func (r Record) Stderr() string { return filepath.Join(r.Dir, "stderr") }

// Outcome is how a call ended. It is on disk before the call's container is removed.
type Outcome struct {
	Key     string          `json:"key"`
	Role    string          `json:"role"`
	Agent   string          `json:"agent"`
	Model   string          `json:"model"`
	Effort  string          `json:"effort,omitempty"` // "" for the CLI's own default
	Session string          `json:"session"`
	Class   outcome.Outcome `json:"class"`
	// One sentence if the class is not done.
	Reason   string        `json:"reason,omitempty"`
	Evidence Evidence      `json:"evidence,omitzero"`
	Exit     int           `json:"exit"`
	Started  time.Time     `json:"started"`
	Ended    time.Time     `json:"ended"`
	Duration int64         `json:"duration_ms"`
	Usage    []agent.Usage `json:"usage,omitempty"`
	Source   string        `json:"source,omitempty"` // who counted: gateway or cli
	// The agent's own figures if the gateway counted.
	Claimed []agent.Usage `json:"claimed,omitempty"`
	// The budget's message if it ended the call.
	Over     string   `json:"over,omitempty"`
	Charged  *Charged `json:"charged,omitempty"` // what the budgets counted
	Requests int64    `json:"requests"`          // -1 if unknown
	// The provider's finish reason of the last complete answer.
	Finish string `json:"finish,omitempty"`
	Report string `json:"report,omitempty"`
	Output int64  `json:"output_bytes"`
	// The ports on which it listened at the end of its Job.Limit.
	Ports string `json:"ports,omitempty"`
}

// Intent contains the parameters of a call. It is written before the container is created.
type Intent struct {
	Key       string    `json:"key"`
	Container string    `json:"box"`
	Image     string    `json:"image"`
	Agent     string    `json:"agent"`
	Model     string    `json:"model"`
	Effort    string    `json:"effort,omitempty"`
	Session   string    `json:"session"`
	Begun     time.Time `json:"begun"`
	// Reports that existed before the call, name → modification time in ns.
	Reports map[string]int64 `json:"reports"`
}

// Outcome reads how the call ended. ok is false if it has not ended.
func (r Record) Outcome() (Outcome, bool, error) { return Read[Outcome](r, outcomeFile) }

// SaveOutcome writes the outcome durably.
func (r Record) SaveOutcome(o Outcome) error { return r.Write(outcomeFile, o) }

// SaveIntent writes the call's parameters durably.
func (r Record) SaveIntent(i Intent) error { return r.Write(intentFile, i) }

// Intent reads the call's parameters. ok is false if the call has not begun.
func (r Record) Intent() (Intent, bool, error) { return Read[Intent](r, intentFile) }

// Stop records that abl is about to stop the call's container, and why. A reason recorded
// earlier is kept. Without the record, an abl that is killed right afterwards would take its own
// stop for the agent's failure.
func (r Record) Stop(why Stopped) error {
	if already, err := r.Stopped(); err != nil || already.Class != "" {
		return err
	}
	return r.Write(stoppedFile, why)
}

// Stopped is why abl stopped a call's container; Class is "" if it did not.
type Stopped struct {
	Class  outcome.Outcome `json:"class"`
	Reason string          `json:"reason,omitempty"` // more than the class says
}

// Stopped reads why abl stopped the container. A damaged file means a lost call, never success.
func (r Record) Stopped() (Stopped, error) {
	why, _, err := Read[Stopped](r, stoppedFile)
	if damaged, is := errors.AsType[*Damaged](err); is {
		return Stopped{outcome.Lost, "abl stopped it, and the reason is lost: " + damaged.What}, nil
	}
	return why, err
}

// The files of a record.
const (
	intentFile  = "intent.json"
	outcomeFile = "outcome.json"
	stoppedFile = "stopped.json"

	FindingFile    = "finding.json"    // the verdict over the call
	RegressionFile = "regression.json" // the results of earlier phases' tests before it
	HistoryFile    = "history.json"    // the head of the role's repository before it
	FoundFile      = "swept.json"      // the files that a sweep found after it
)

// Read reads a file of a record. ok is false if the file is missing. The error is a *Damaged if
// the file is not in the form that abl writes.
func Read[T any](r Record, name string) (v T, ok bool, err error) {
	ok, err = readJSON(filepath.Join(r.Dir, name), &v)
	return v, ok, err
}

// Write writes a file of the record durably. It creates the record's directory.
func (r Record) Write(name string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	safe := redact.Whole(string(data)) // the same JSON, with control characters escaped
	if err = os.MkdirAll(r.Dir, 0o755); err == nil {
		err = hostfs.Write(filepath.Join(r.Dir, name), []byte(safe+"\n"), 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot write the record of a call: %w", err)
	}
	return nil
}

// Started reports whether the call's container was started, or is about to be.
func (r Record) Started() bool {
	_, err := os.Lstat(filepath.Join(r.Dir, "started"))
	return err == nil
}

func (r Record) MarkStarted() error {
	return hostfs.Write(filepath.Join(r.Dir, "started"), nil, 0o644)
}

// Unmark removes the marks of a container that never ran.
func (r Record) Unmark() error { return r.Forget("started", stoppedFile) }

// Forget removes files of the record. Missing files are ignored.
func (r Record) Forget(names ...string) error {
	for _, name := range names {
		if err := os.Remove(filepath.Join(r.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot change the record of a call: %w", err)
		}
	}
	return nil
}

// Boundary is the proof that a container has the properties that abl asked for.
type Boundary struct {
	Container string    `json:"box"`
	At        time.Time `json:"at"`
	// The failed checks of the network, which the user allowed.
	Weak string `json:"weak_network,omitempty"`
	// The engine's record of the container, before its start.
	Made sandbox.Proof `json:"made"`
	// The findings of its first program, before any other program started.
	Inside  sandbox.Proof `json:"inside"`
	ProbeMS int64         `json:"probe_ms"` // duration of that check
	// abl was killed during the check, so that the listener on the engine's machine was not asked.
	Unheard bool `json:"unheard,omitempty"`
	// Why the container was not allowed to continue.
	Failed string `json:"failed,omitempty"`
}

// BoundaryFile is its name in a record.
const BoundaryFile = "boundary.json"

// Boundary reads the proof of a call's container. ok is false without a proof.
func (r Record) Boundary() (Boundary, bool, error) { return Read[Boundary](r, BoundaryFile) }

// App returns the record of the app that ran for the call.
func (r Record) App() Record { return Record{Dir: filepath.Join(r.Dir, "app")} }

// Output returns the file with the app's output in a record of an app.
func (r Record) Output() string { return filepath.Join(r.Dir, "app.log") }

// Evidence is the basis of an outcome.
type Evidence struct {
	From Witness `json:"from"`
	What string  `json:"what"` // its statement, in one sentence
	// When the provider accepts requests again.
	Back time.Time `json:"back,omitzero"`
	// Waiting does not help: the user has to pay or to change a setting.
	Paid bool `json:"needs_person,omitempty"`
	// The prompt became too long during the call, so the next call may succeed.
	Grown bool `json:"grown,omitempty"`
}

// Witness is the source of an outcome.
type Witness string

// The witnesses, the most reliable one first.
const (
	ByAbl     Witness = "abl"     // abl's own actions on the call
	ByGateway Witness = "gateway" // the gateway's log
	ByAgent   Witness = "agent"   // the CLI's own last record
	ByEngine  Witness = "engine"  // the engine's flags
	ByExit    Witness = "exit"    // the exit code, or the signal
)

// String returns the evidence in one line, "" without a witness.
func (e Evidence) String() string {
	if e.From == "" {
		return ""
	}
	return string(e.From) + ": " + e.What
}
