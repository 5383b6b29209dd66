package roles

import "time"

// Evidence is what an outcome rests on.
type Evidence struct {
	From Witness   `json:"from"`
	What string    `json:"what"`                   // what it said, in one sentence
	Back time.Time `json:"back,omitzero"`          // when the provider wants to be asked again
	Paid bool      `json:"needs_person,omitempty"` // no waiting helps: somebody has to pay or to change something
}

// Witness is who says how a call ended.
type Witness string

// The witnesses, the one that is believed most at first.
const (
	ByAbl     Witness = "abl"     // what abl itself did to the call
	ByGateway Witness = "gateway" // the gateway's log
	ByAgent   Witness = "agent"   // the CLI's own last record
	ByEngine  Witness = "engine"  // the engine's flags
	ByExit    Witness = "exit"    // the exit code, or the signal
)

// String is the evidence in one line, "" for none.
func (e Evidence) String() string {
	if e.From == "" {
		return ""
	}
	return string(e.From) + ": " + e.What
}
