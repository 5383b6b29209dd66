// Package outcome has the one word for how a call of an agent ended, which the gateway,
// the readers of agents' output, the loop and every record speak. docs/faults.md says
// what comes of each. It decides nothing: what is done about an outcome is its
// reader's, and the evidence for one is kept in roles.
package outcome

import (
	"slices"
	"time"
)

// Outcome says how a call ended.
type Outcome string

// The outcomes. Only Done means that the agent did what it was started for.
const (
	Done        Outcome = "done"
	Failed      Outcome = "failed"      // its own result says so, or there is none
	Nothing     Outcome = "nothing"     // it ended well and did nothing
	Crashed     Outcome = "crashed"     // ended by a signal that abl did not send
	OutOfMemory Outcome = "oom"         // from the engine's flag
	Timeout     Outcome = "timeout"     // loop.call_timeout
	Flood       Outcome = "flood"       // limits.output
	Disk        Outcome = "disk"        // limits.disk, limits.inodes, or a disk that is nearly full
	Idle        Outcome = "idle"        // loop.idle_timeout
	Interrupted Outcome = "interrupted" // a person or a signal to abl
	RateLimited Outcome = "rate"        // the provider limits the rate
	Quota       Outcome = "quota"       // what may be asked of the provider is used up
	Unavailable Outcome = "away"        // the provider is in trouble or does not answer
	Network     Outcome = "network"     // there is no connection with the provider
	TooLarge    Outcome = "large"       // the prompt is longer than the model takes
	Refused     Outcome = "refused"     // the provider refuses the key
	Cut         Outcome = "cut"         // its last answer was cut at a limit of tokens
	Filtered    Outcome = "filtered"    // a filter, or the model itself, declined to answer
	NoModel     Outcome = "model"       // the provider does not have the model
	Denied      Outcome = "denied"      // abl's own gateway refuses what the agent asks for
	AppGone     Outcome = "app"         // the app's container ended under the Verifier
	EngineGone  Outcome = "engine"      // the engine was stopped, and the call with it
	Lost        Outcome = "lost"        // the container was removed by somebody else
	Unproven    Outcome = "unproven"    // its boundary was not proven, and its container ran
	OverBudget  Outcome = "budget"      // the gateway admits no further request
	Running     Outcome = "running"     // it was to be watched for a while, and was still running then
)

// Fault is what ended a call other than well, and when another makes sense.
type Fault struct {
	Class Outcome   // "" for none, or where the request was itself at fault
	What  string    // in words, also without a class
	Back  time.Time // when the provider wants to be asked again; zero when it does not say
	Paid  bool      // no waiting helps: somebody has to pay, or to change something
	Grown bool      // the request became too long during the call: an earlier one was answered
}

// Transient is whether it is nobody's fault here: the same call made again later
// may well come to a good end, however often it did not.
func (o Outcome) Transient() bool {
	return slices.Contains([]Outcome{RateLimited, Quota, Unavailable, Network, EngineGone}, o)
}

// statuses are those of a provider's answers that mean one of these.
var statuses = map[int64]Outcome{401: Refused, 402: Quota, 403: Refused, 413: TooLarge, 429: RateLimited}

// FromHTTP is what the status of a provider's answer means, "" for nothing of these.
func FromHTTP(status int64) Outcome {
	if status >= 500 && status < 600 {
		return Unavailable
	}
	return statuses[status]
}
