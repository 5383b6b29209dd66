package roles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"abl/internal/hostfs"
	"abl/internal/outcome"
	"abl/internal/redact"
	"abl/internal/sandbox"
	"abl/roles/agent"
)

// Record is the directory in which one call keeps what it was given, what it
// printed and how it ended. It is never removed by abl.
type Record struct{ Dir string }

// In is the directory that the box sees read-only.
func (r Record) In() string { return filepath.Join(r.Dir, "in") }

// Stdout takes the agent's standard output.
func (r Record) Stdout() string { return filepath.Join(r.Dir, "stdout") }

// Stderr takes the agent's standard error.
func (r Record) Stderr() string { return filepath.Join(r.Dir, "stderr") }

// Outcome is how a call ended; it is on disk before its box is removed.
type Outcome struct {
	Key      string          `json:"key"`
	Role     string          `json:"role"`
	Agent    string          `json:"agent"`
	Model    string          `json:"model"`
	Session  string          `json:"session"`
	Class    outcome.Outcome `json:"class"`
	Reason   string          `json:"reason,omitempty"` // one sentence when the class is not done
	Evidence Evidence        `json:"evidence,omitzero"`
	Exit     int             `json:"exit"`
	Started  time.Time       `json:"started"`
	Ended    time.Time       `json:"ended"`
	Duration int64           `json:"duration_ms"`
	Usage    []agent.Usage   `json:"usage,omitempty"`
	Source   string          `json:"source,omitempty"`  // who counted: gateway or cli
	Claimed  []agent.Usage   `json:"claimed,omitempty"` // what the agent says where the gateway counted
	Over     string          `json:"over,omitempty"`    // the budget's words when it ended the call
	Charged  *Charged        `json:"charged,omitempty"` // what the budgets counted
	Requests int64           `json:"requests"`          // -1 unknown
	Finish   string          `json:"finish,omitempty"`  // how the last whole answer ended, in the provider's word
	Report   string          `json:"report,omitempty"`
	Output   int64           `json:"output_bytes"`
	Ports    string          `json:"ports,omitempty"` // on which it listened in the end, when it was only watched for a while
}

// Intent is what the call was started with, written before its box is made.
type Intent struct {
	Key     string           `json:"key"`
	Box     string           `json:"box"`
	Image   string           `json:"image"`
	Agent   string           `json:"agent"`
	Model   string           `json:"model"`
	Session string           `json:"session"`
	Begun   time.Time        `json:"begun"`
	Reports map[string]int64 `json:"reports"` // reports that were there before, name → modification time in ns
}

// Outcome reads how the call ended; ok is false while it has not.
func (r Record) Outcome() (Outcome, bool, error) { return Read[Outcome](r, "outcome.json") }

// SaveOutcome writes it durably.
func (r Record) SaveOutcome(o Outcome) error { return r.Write("outcome.json", o) }

// Intent reads what the call was started with.
func (r Record) Intent() (Intent, bool, error) { return Read[Intent](r, "intent.json") }

// Stop notes that abl is about to end the call's box, and why. The first reason
// stays: an abl that is killed right afterwards must not take its own stop for
// the agent's failure.
func (r Record) Stop(why outcome.Outcome) error { return r.stop(stopped{Class: why}) }

func (r Record) stop(why stopped) error {
	if already, err := r.stopped(); err != nil || already.Class != "" {
		return err
	}
	return r.Write("stopped.json", why)
}

// stopped is why abl ended a call's box; no class when it did not.
type stopped struct {
	Class  outcome.Outcome `json:"class"`
	Reason string          `json:"reason,omitempty"` // beyond what the class says
}

func (r Record) stopped() (stopped, error) {
	why, _, err := Read[stopped](r, "stopped.json")
	return why, err
}

// Further files of a record.
const (
	FindingFile    = "finding.json"    // the verdict over the call
	RegressionFile = "regression.json" // what the tests of earlier phases have shown before it
	HistoryFile    = "history.json"    // where the role's history stood before it
	FoundFile      = "swept.json"      // what a sweep found after it
)

// Read reads a file of a record; false when there is none.
func Read[T any](r Record, name string) (v T, ok bool, err error) {
	ok, err = readJSON(filepath.Join(r.Dir, name), &v)
	return v, ok, err
}

// Write writes a file of the record durably, and makes the record when there is none.
func (r Record) Write(name string, v any) error {
	return r.keep(name, v, func(path string, data []byte) error { return hostfs.Write(path, data, 0o644) })
}

// Note is Write for what nothing is decided by after a power cut: it is there whole or
// not at all, and nobody waits for the disk.
func (r Record) Note(name string, v any) error {
	return r.keep(name, v, func(path string, data []byte) error {
		temp := path + ".new"
		if err := os.WriteFile(temp, data, 0o644); err != nil {
			return errors.Join(err, os.Remove(temp))
		}
		return os.Rename(temp, path)
	})
}

func (r Record) keep(name string, v any, write func(path string, data []byte) error) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	safe := redact.Whole(string(data)) // the same JSON, safe to look at
	if err = os.MkdirAll(r.Dir, 0o755); err == nil {
		err = write(filepath.Join(r.Dir, name), []byte(safe+"\n"))
	}
	if err != nil {
		return fmt.Errorf("cannot keep the record of a call: %w", err)
	}
	return nil
}

// Started is whether the call's box was started, or is about to be.
func (r Record) Started() bool {
	_, err := os.Lstat(filepath.Join(r.Dir, "started"))
	return err == nil
}

func (r Record) markStarted() error {
	return hostfs.Write(filepath.Join(r.Dir, "started"), nil, 0o644)
}

// unmark forgets what was noted of a box that never ran.
func (r Record) unmark() error {
	for _, name := range []string{"started", "stopped.json"} {
		if err := os.Remove(filepath.Join(r.Dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot keep the record of a call: %w", err)
		}
	}
	return nil
}

func readJSON(path string, into any) (bool, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot read the record of a call: %w", err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return false, fmt.Errorf("cannot read %q: %w", path, err)
	}
	return true, nil
}

// Net is what is known of the engine's networks.
type Net struct {
	Apart sandbox.Apart // how they are kept apart from its host
	Away  bool          // the engine is on another machine, where abl cannot listen
	Other bool          // its kernel is not this machine's, and numbers files otherwise
	Weak  string        // why they are not proven, which the person allowed; "" they are
}

// Boundary is the proof that a box was what abl meant it to be.
type Boundary struct {
	Box     string        `json:"box"`
	At      time.Time     `json:"at"`
	Weak    string        `json:"weak_network,omitempty"` // why the engine's networks are not proven; the person allowed it
	Made    sandbox.Proof `json:"made"`                   // the engine's record of the box, before its start
	Inside  sandbox.Proof `json:"inside"`                 // what its first program found, before any other was started
	ProbeMS int64         `json:"probe_ms"`               // how long that took
	Unheard bool          `json:"unheard,omitempty"`      // abl was killed meanwhile: nobody listened whether the box reaches this machine
	Failed  string        `json:"failed,omitempty"`       // why the box was not let go on
}

// boundaryFile is where it is kept, in a record.
const boundaryFile = "boundary.json"

// Boundary reads the proof of a call's box; ok is false when there is none.
func (r Record) Boundary() (Boundary, bool, error) { return Read[Boundary](r, boundaryFile) }

// App is the record of the app that was up for the call.
func (r Record) App() Record { return Record{filepath.Join(r.Dir, "app")} }

// keep keeps the proof: with Record.Write for good, and with Record.Note for an abl that
// takes over should this one be killed.
func (p proving) keep(b Boundary, write func(r Record, name string, v any) error) error {
	if err := p.secret.Clean(&b); err != nil {
		return err
	}
	return write(Record{p.dir}, boundaryFile, b)
}

// underWay begins the name of a record while its replay goes on.
const underWay = "replaying-"

// sweepReplays removes the records of replays that a killed abl was in.
func sweepReplays(call string) error {
	left, err := os.ReadDir(call)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range left {
		if strings.HasPrefix(e.Name(), underWay) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(call, e.Name())))
		}
	}
	return err
}
