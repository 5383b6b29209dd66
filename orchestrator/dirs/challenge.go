package dirs

import (
	"bytes"
	"encoding/json"
)

// Programs that stand in the app's place, or before it, while the tests
// themselves are tested.
const (
	HelperNull   = "abl-null"   // answers everything with nothing
	HelperMutant = "abl-mutant" // passes on to the app, and changes its answers in one way
)

// NoMutation is what abl-mutant is told when it shall change nothing: what is not
// ok through it then can notice nothing, and it reports what would be worth a run.
const NoMutation = "control"

// Beside is the n-th port, from 1, in the app's own network namespace for what
// stands in its place or before it, given the app's own.
func Beside(app, n int) int {
	const base, few = BrokerPort, 20
	if app > base && app < base+few {
		return base + few + n
	}
	return base + n
}

// Mutated is what abl-mutant says, one JSON line after the other on its
// standard output; the last one counts.
type Mutated struct {
	Mutation string   `json:"mutation"`
	Applied  int      `json:"applied"`         // how often the app was made to look different
	Answers  int      `json:"answers"`         // HTTP answers that went through
	Unread   int      `json:"unread"`          // connections that were passed on as they are: not HTTP/1, or no longer
	Could    []string `json:"could,omitempty"` // under "control": the mutations that would find something to change
}

// LastMutated is the last report in what abl-mutant printed, false for none: then
// it did not come to its first change, nor to its end.
func LastMutated(printed []byte) (last Mutated, ok bool) {
	for line := range bytes.Lines(printed) {
		var m Mutated
		if json.Unmarshal(line, &m) == nil && m.Mutation != "" {
			last, ok = m, true
		}
	}
	return last, ok
}
