// Package outcome defines how a call of an agent ended. docs/faults.md describes the consequences
// of each outcome.
package outcome

import (
	"slices"
	"time"
)

// Outcome says how a call ended.
type Outcome string

// The outcomes. Only Done means that the agent finished its task.
const (
	Done        Outcome = "done"
	Failed      Outcome = "failed"      // the agent reported a failure, or no result
	Nothing     Outcome = "nothing"     // the agent reported success but did nothing
	Crashed     Outcome = "crashed"     // ended by a signal that abl did not send
	OutOfMemory Outcome = "oom"         // from the engine's flag
	Timeout     Outcome = "timeout"     // loop.call_timeout
	Flood       Outcome = "flood"       // limits.output
	Disk        Outcome = "disk"        // limits.disk, limits.inodes, or a nearly full disk
	Idle        Outcome = "idle"        // loop.idle_timeout
	Interrupted Outcome = "interrupted" // by the user or a signal to abl
	RateLimited Outcome = "rate"        // the provider limits the rate
	Quota       Outcome = "quota"       // the provider's quota is used up
	Unavailable Outcome = "away"        // the provider fails or does not respond
	Network     Outcome = "network"     // no connection to the provider
	TooLarge    Outcome = "large"       // the prompt is too long for the model
	Refused     Outcome = "refused"     // the provider rejects the key
	Cut         Outcome = "cut"         // the last response was cut at a token limit
	Filtered    Outcome = "filtered"    // a filter or the model refused to respond
	NoModel     Outcome = "model"       // the provider does not have the model
	Denied      Outcome = "denied"      // abl's gateway rejects the agent's requests
	AppGone     Outcome = "app"         // the app's container ended during the Verifier's call
	EngineGone  Outcome = "engine"      // the engine was stopped with the call
	Lost        Outcome = "lost"        // another program removed the container
	Unproven    Outcome = "unproven"    // the container ran although its boundary was not proven
	OverBudget  Outcome = "budget"      // the gateway allows no further requests
	Running     Outcome = "running"     // still running after the requested time
)

// Fault is the reason why a call failed, and when to repeat it.
type Fault struct {
	Class Outcome   // "" without a fault, or if the request itself was invalid
	What  string    // description, also without a class
	Back  time.Time // when to retry, as the provider answered; zero if unknown
	Paid  bool      // waiting does not help: the user has to pay or to change something
	Grown bool      // the request became too long during the call, after successful ones
}

// Transient reports whether the same call may succeed later without any change.
func (o Outcome) Transient() bool {
	return slices.Contains([]Outcome{RateLimited, Quota, Unavailable, Network, EngineGone}, o)
}

// statuses maps HTTP statuses of a provider's response to outcomes.
var statuses = map[int64]Outcome{401: Refused, 402: Quota, 403: Refused, 413: TooLarge, 429: RateLimited}

// FromHTTP returns the outcome for the HTTP status of a provider's response, "" if the status has
// none.
func FromHTTP(status int64) Outcome {
	if status >= 500 && status < 600 {
		return Unavailable
	}
	return statuses[status]
}
