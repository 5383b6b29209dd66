package roles

import "time"

// Class says how a call ended.
type Class string

// The classes. Only Done means that the agent did what it was started for.
const (
	Done        Class = "done"
	Failed      Class = "failed"      // its own result says so, or there is none
	Nothing     Class = "nothing"     // it ended well and did nothing
	Crashed     Class = "crashed"     // ended by a signal that abl did not send
	OutOfMemory Class = "oom"         // from the engine's flag
	Timeout     Class = "timeout"     // loop.call_timeout
	Flood       Class = "flood"       // limits.output
	Disk        Class = "disk"        // limits.disk, limits.inodes, or a disk that is nearly full
	Idle        Class = "idle"        // loop.idle_timeout
	Interrupted Class = "interrupted" // a person or a signal to abl
	Limited     Class = "rate"        // the provider limits the rate
	Quota       Class = "quota"       // what may be asked of the provider is used up
	Away        Class = "away"        // the provider is in trouble or does not answer
	Network     Class = "network"     // there is no connection with the provider
	TooLarge    Class = "large"       // the prompt is longer than the model takes
	Refused     Class = "refused"     // the provider refuses the key
	Cut         Class = "cut"         // its last answer was cut at a limit of tokens
	Filtered    Class = "filtered"    // a filter, or the model itself, declined to answer
	NoModel     Class = "model"       // the provider does not have the model
	Denied      Class = "denied"      // abl's own gateway refuses what the agent asks for
	AppGone     Class = "app"         // the app's container ended under the Verifier
	EngineGone  Class = "engine"      // the engine was stopped, and the call with it
	Lost        Class = "lost"        // the container was removed by somebody else
	Unproven    Class = "unproven"    // its boundary was not proven, and its container ran
	OverBudget  Class = "budget"      // the gateway admits no further request
	Running     Class = "running"     // it was to be watched for a while, and was still running then
)

// Weather is whether it is nobody's fault here: the same call made again later
// may well come to a good end, however often it did not.
func (c Class) Weather() bool {
	switch c {
	case Limited, Quota, Away, Network, EngineGone:
		return true
	}
	return false
}

// Evidence is what a class rests on.
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
