package roles

import (
	"context"
	"time"

	"abl/internal/outcome"
	"abl/internal/sandbox"
	"abl/internal/usage"
	"abl/roles/agent"
)

// Gate controls the gateway of a role's calls. The gateway is the only route to the provider
// and the allowed hosts. It holds the keys and counts the tokens.
type Gate interface {
	// Open starts the gateway of a call and returns the variables by which the call's container
	// finds it. It replaces the remains of an earlier attempt. The gateway allows only model.
	Open(ctx context.Context, key, model string, deadline time.Time) (env []string, err error)
	// Resume sends the current budget to a gateway that an earlier abl started. It is not an
	// error if that gateway is gone.
	Resume(ctx context.Context, key string) error
	// Close ends the gateway and returns its traffic. A second Close returns the same.
	Close(ctx context.Context, key string) (Traffic, error)
	// Used returns what the running call has used so far, nil if that is not known.
	Used() *Used
}

// Used is what a running call has used so far: a lower bound with AtLeast. USD is nil if the model
// has no price. Signs grows with each sign of life of the provider. Requests are the requests to the
// model that have ended, in words.
type Used struct {
	Tokens   int64
	USD      *usage.USD
	AtLeast  bool
	Signs    int64
	Requests []string
}

// GateName returns the name of the container of a call's gateway.
func GateName(id, key string) string { return sandbox.Name(id, key+"-gateway") }

// Traffic summarizes the log of a call's gateway.
type Traffic struct {
	Usage    []agent.Usage
	Charged  *Charged // what the budgets counted; nil if unknown
	Requests int64    // that the provider answered
	Over     string   // the budget's message if it ended the call, "" otherwise
	Notes    []string // for the user
	Finish   string   // the provider's finish reason of the last complete answer
	Waiting  bool     // the last request was not answered when the call ended
	Fault    outcome.Fault

	// That answer calls a tool, so a request with the result has to follow.
	Calls bool
	// The last answer to a model request was not complete and successful.
	Unfinished bool
	// The client closed the connection before or during that answer.
	Left bool
}

// Charged is the part of a call that counts towards the budgets: the reported usage, and
// estimates for requests without a report.
type Charged struct {
	Tokens int64      `json:"tokens"`
	USD    *usage.USD `json:"usd"` // nil if a model without a price was used
}

// The sources of a call's token counts.
const (
	CountedByGate = "gateway"
	CountedByCLI  = "cli"
)
