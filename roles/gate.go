package roles

import (
	"context"
	"fmt"
	"time"

	"abl/internal/outcome"
	"abl/internal/prices"
	"abl/internal/state"
	"abl/roles/agent"
)

// Gate is the one way out of a role's box: it stands between a call and what the
// call may reach, holds the keys, and counts.
type Gate interface {
	// Open makes the way out of a call that is about to start, whatever is left of
	// an earlier try, and returns the environment by which the box finds it. model
	// is the only one that it may use.
	Open(ctx context.Context, key, model string, deadline time.Time) (env []string, err error)
	// Resume tells one that was open when an earlier abl ended what the call may
	// spend by now. One that is gone already is no error.
	Resume(ctx context.Context, key string) error
	// Close ends it and says what passed. Done twice it says the same.
	Close(ctx context.Context, key string) (Traffic, error)
}

// GateName is the engine-wide name of the box of a call's gate.
func GateName(id, key string) string { return BoxName(id, key+"-gateway") }

// Traffic is what passed a gate.
type Traffic struct {
	Usage    []agent.Usage
	Charged  *Charged // what the budgets counted; nil where nobody knows
	Requests int64    // that the provider answered
	Over     string   // the budget's words when it ended the call, "" otherwise
	Notes    []string // for the person
	Finish   string   // how the last whole answer ended, in the provider's word
	Fault    Fault
}

// Fault is what was wrong with the provider when the call ended.
type Fault struct {
	Class   outcome.Outcome // "" for none
	What    string          // in its words; without a class, what it had against the last request
	Back    time.Time       // when the provider wants to be asked again; zero when it does not say
	Paid    bool            // no waiting helps
	Waiting bool            // the last request was not answered when the call ended
}

// Charged is what the budgets counted of a call: what its provider told, and
// estimates where it did not.
type Charged struct {
	Tokens int64       `json:"tokens"`
	USD    *prices.USD `json:"usd"` // nil where a model without a price was asked
}

// Who counted the tokens of a call.
const (
	CountedByGate = "gateway"
	CountedByCLI  = "cli"
)

// settle ends the call's way out and takes its count. The agent's own figures
// are kept beside it.
func (r *Runner) settle(ctx context.Context, j Job, o *Outcome) (traffic Traffic, err error) {
	o.Source = CountedByCLI
	if j.Gate == nil {
		return traffic, nil
	}
	tidy, cancel := tidying(ctx)
	defer cancel()
	if traffic, err = j.Gate.Close(tidy, j.Call.ID); err != nil {
		return traffic, fmt.Errorf("cannot close the way out of call %s: %w", j.Call.ID, err)
	}
	for _, note := range traffic.Notes {
		r.emit(j, state.Event{Kind: state.Note, Text: note})
	}
	if j.Agent.Provider.API == "" {
		return Traffic{}, nil // only registries are behind the gate
	}
	o.Source, o.Claimed = CountedByGate, o.Usage
	o.Usage, o.Requests, o.Over, o.Charged, o.Finish = traffic.Usage, traffic.Requests, traffic.Over, traffic.Charged, traffic.Finish
	return traffic, nil
}
