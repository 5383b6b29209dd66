package roles

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"abl/internal/atomicfile"
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

// Class says how a call ended.
type Class string

// The classes. Only Done means that the agent did what it was started for.
const (
	Done        Class = "done"
	Failed      Class = "failed"      // its own result says so, or there is none
	Crashed     Class = "crashed"     // ended by a signal that abl did not send
	OutOfMemory Class = "oom"         // from the engine's flag
	Timeout     Class = "timeout"     // loop.call_timeout
	Flood       Class = "flood"       // limits.output
	Interrupted Class = "interrupted" // a person or a signal to abl
	Away        Class = "away"        // the provider limits the rate or does not answer
	Refused     Class = "refused"     // the provider refuses the key
	Lost        Class = "lost"        // the container was removed by somebody else
)

// Outcome is how a call ended; it is on disk before its box is removed.
type Outcome struct {
	Key      string        `json:"key"`
	Role     string        `json:"role"`
	Agent    string        `json:"agent"`
	Model    string        `json:"model"`
	Session  string        `json:"session"`
	Class    Class         `json:"class"`
	Reason   string        `json:"reason,omitempty"` // one sentence when the class is not done
	Exit     int           `json:"exit"`
	Started  time.Time     `json:"started"`
	Ended    time.Time     `json:"ended"`
	Duration int64         `json:"duration_ms"`
	Usage    []agent.Usage `json:"usage,omitempty"`
	Requests int64         `json:"requests"` // -1 unknown
	Report   string        `json:"report,omitempty"`
	Output   int64         `json:"output_bytes"`
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
	Direct  bool             `json:"direct_key,omitempty"`
}

// Outcome reads how the call ended; ok is false while it has not.
func (r Record) Outcome() (o Outcome, ok bool, err error) {
	ok, err = readJSON(filepath.Join(r.Dir, "outcome.json"), &o)
	return o, ok, err
}

// SaveOutcome writes it durably.
func (r Record) SaveOutcome(o Outcome) error {
	return writeJSON(filepath.Join(r.Dir, "outcome.json"), o)
}

// Intent reads what the call was started with.
func (r Record) Intent() (i Intent, ok bool, err error) {
	ok, err = readJSON(filepath.Join(r.Dir, "intent.json"), &i)
	return i, ok, err
}

// Stop notes that abl is about to end the call's box, and why. The first reason
// stays: an abl that is killed right afterwards must not take its own stop for
// the agent's failure.
func (r Record) Stop(why Class) error {
	if already, err := r.stopped(); err != nil || already != "" {
		return err
	}
	return writeJSON(filepath.Join(r.Dir, "stopped.json"), why)
}

// stopped is why abl ended the call's box, "" when it did not.
func (r Record) stopped() (why Class, err error) {
	_, err = readJSON(filepath.Join(r.Dir, "stopped.json"), &why)
	return why, err
}

// started is whether the call's box was started, or is about to be.
func (r Record) started() bool {
	_, err := os.Lstat(filepath.Join(r.Dir, "started"))
	return err == nil
}

func (r Record) markStarted() error {
	return atomicfile.Write(filepath.Join(r.Dir, "started"), nil, 0o644)
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

func writeJSON(path string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	return atomicfile.Write(path, append(data, '\n'), 0o644)
}
