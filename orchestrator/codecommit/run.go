package codecommit

import (
	"context"
	"errors"

	"abl/internal/ledger"
	"abl/roles/model"
)

// Model answers questions.
type Model interface {
	Name() string
	Ask(ctx context.Context, prompt string) (model.Answer, error)
}

// Guard says which edits are allowed. A guard.Refused is the model's mistake, any
// other error is not.
type Guard interface {
	Check(ctx context.Context, edits []Edit) ([]Edit, error)
}

// Run is one run of a workflow.
type Run struct {
	Root    string
	Profile Profile
	Inputs  Inputs
	Model   Model
	Guard   Guard
	Builder Builder
	Logs    *Folder
	Book    *ledger.Ledger
	Price   func(ledger.Row) string // the cost_usd of a row
	Limits
	Clean func(string) string
	Holds func(string) bool // whether a text holds a provider's key; nil knows none
	Show  Show

	sending string // the file of the request at hand
	result  Result
	history []Round
}

// Show is told what goes on.
type Show struct {
	Say  func(text string)               // one line of progress
	Said func(text string)               // what the model tells the person (protocol v1)
	Plan func(edits []Edit)              // of a dry run
	Wait func(what string) (stop func()) // while something takes long
}

// Outcomes of a run, and of its attempts.
const (
	Passed   = "passed"
	Red      = "red"      // the build fails
	Unusable = "unusable" // the answer could not be used
	Planned  = "planned"  // a dry run's answer could be used
	Reported = "reported"
	Failed   = "failed" // it ended on the way
)

// Result is what a run came to.
type Result struct {
	Workflow string     `json:"workflow"`
	Protocol string     `json:"protocol,omitempty"`
	Model    string     `json:"model"`
	Outcome  string     `json:"outcome"`
	Why      string     `json:"why,omitempty"`
	Logs     string     `json:"logs"`
	Attempts []*Attempt `json:"attempts"`
	Files    []Change   `json:"files"`
	Report   string     `json:"report,omitempty"`
	Missing  []string   `json:"missing,omitempty"`
	CallMS   int64      `json:"call_ms"`
	BuildMS  int64      `json:"build_ms"`
}

// Attempt is one call and what came of it.
type Attempt struct {
	Name    string   `json:"name"`
	Outcome string   `json:"outcome"`
	Why     string   `json:"why,omitempty"`
	Says    string   `json:"says,omitempty"` // why it changes nothing, in the model's words
	Model   string   `json:"model,omitempty"`
	Finish  string   `json:"finish,omitempty"`
	Tries   int      `json:"tries"`
	CallMS  int64    `json:"call_ms"`
	BuildMS int64    `json:"build_ms,omitempty"`
	Exit    *int     `json:"exit,omitempty"`
	Input   *int64   `json:"input,omitempty"`
	Output  *int64   `json:"output,omitempty"`
	Total   *int64   `json:"total,omitempty"`
	Files   []Change `json:"files,omitempty"`
	Notes   []string `json:"notes,omitempty"` // on the build: what it asked the network for in vain
}

// Change is what became of a file.
type Change struct {
	Path    string `json:"path"`
	Deleted bool   `json:"deleted,omitempty"`
}

// ErrBlocked is an answer that a filter, or the model itself, held back. The same
// question would be held back again.
var ErrBlocked = errors.New("the answer was held back")

func changes(edits []Edit) []Change {
	all := make([]Change, 0, len(edits))
	for _, e := range edits {
		all = append(all, Change{Path: e.Path, Deleted: e.Delete})
	}
	return all
}
