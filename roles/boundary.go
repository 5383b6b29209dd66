package roles

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"abl/internal/sandbox"
)

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
func (r Record) Boundary() (b Boundary, ok bool, err error) {
	ok, err = readJSON(filepath.Join(r.Dir, boundaryFile), &b)
	return b, ok, err
}

// App is the record of the app that was up for the call.
func (r Record) App() Record { return Record{filepath.Join(r.Dir, "app")} }

// save keeps the proof for good.
func (p proving) save(b Boundary) error {
	if err := p.secret.Clean(&b); err != nil {
		return err
	}
	return writeJSON(filepath.Join(p.dir, boundaryFile), b)
}

// note keeps it for an abl that takes over should this one be killed, and does
// not wait for the disk.
func (p proving) note(b Boundary) error {
	data, err := p.secret.JSON(b)
	if err != nil {
		return fmt.Errorf("internal error: %w", err)
	}
	return os.WriteFile(filepath.Join(p.dir, boundaryFile), data, 0o644)
}
