// Package agent knows the coding CLIs that can play a role: the command line,
// the environment that makes them quiet, and what their output means, in one file
// for each. It holds the script of the agent that needs no model as well, and plays
// it inside a container (player.go); everything else here is pure.
// docs/scripted-agent.md describes a script.
package agent

import (
	"time"

	"abl/internal/outcome"
	"abl/internal/prices"
	"abl/internal/tokens"
)

// Agent is one coding CLI.
type Agent struct {
	Name          string
	Image         string            // abl's image that carries the CLI: "gemini", or "tools" for one that needs nothing
	DefaultModel  string            // used when the configuration names none
	Aliases       map[string]string // models by a short name of the CLI's; "" for one that it chooses anew each time
	Provider      Provider          // zero for none
	MaxBytes      int               // of a prompt that the CLI takes whole; 0 for any
	MaxCharacters int               // as MaxBytes
	Advice        string            // what its tools refuse that those of others do
	Command       func(Call) (Command, error)
	NewReader     func(Call) Reader
}

// Provider is the model service that an agent's CLI talks to, and how the CLI is
// told where it is and what the key is.
type Provider struct {
	API     string // as the gateway knows it: gemini, anthropic, openai-responses, openai-chat
	KeyVar  string // environment variable of the key; in a box it holds the call's token
	BaseVar string // environment variable of the address
}

// Call is what an agent needs to know of the call it is started for.
type Call struct {
	ID        string // <call>.<attempt>
	Role      string // builder or verifier
	Phase     int
	Iteration int // within the round, as the prompt has it
	Step      int // over all rounds
	Attempt   int
	Model     string // by its full name
	Session   string // a UUID of abl's, for agents that take one
	Prompt    string // path of the prompt inside the box, which is standard input as well
	Dir       string // working directory inside the box
	Alone     bool   // there are no specs in the box
}

// Command is how to start an agent inside its box.
type Command struct {
	Argv  []string
	Env   map[string]string // without secrets
	Files map[string][]byte // name → content, laid into the call's read-only directory (helper.In)
}

// Usage is what one call used of one model.
type Usage struct {
	Model string `json:"model"`
	tokens.Count
	Cost *prices.USD `json:"cost_usd,omitempty"` // where who counted knows the price of each request
	Part bool        `json:"part,omitempty"`     // of answers that were not told whole
}

// Result is what an agent's own output says about how it ended.
type Result struct {
	Finished bool            // a final record of the right type and status was there, and at least one model request
	Reason   string          // why it is not finished, in one sentence; "" otherwise
	Trouble  outcome.Outcome // what is wrong, as far as the output tells; "" otherwise
	Session  string
	Usage    []Usage // one a model, sorted by model
	Requests int64   // model requests counted, -1 when the output does not tell
	Said     string  // what the agent said last, in its own words: its answer, where one was asked for
}

// Reader consumes an agent's standard output line by line, while it runs or
// afterwards; both ways give the same Result. Lines longer than MaxLine reach
// it cut, with cut set.
type Reader interface {
	// Line takes one line without its end and returns what it tells. An empty one, as
	// after the last, ends a message that is told in pieces.
	Line(line []byte, cut bool) []Message
	// Result says how the call ended, given the exit code of the CLI.
	Result(exit int) Result
}

// Program is an agent that is one command, and whose exit code alone says how it ended.
func Program(name string, c Command) Agent {
	return Agent{
		Name: name, Image: "tools",
		Command:   func(Call) (Command, error) { return c, nil },
		NewReader: func(Call) Reader { return deaf{} },
	}
}

type deaf struct{}

func (deaf) Line([]byte, bool) []Message { return nil }

func (deaf) Result(exit int) Result { return Result{Finished: exit == 0, Requests: -1} }

// MaxLine is the longest line that a Reader is given whole, in bytes
// (facts: agent JSON lines stay under it; a prompt echo may not).
const MaxLine = 8 << 20

// StopGrace is how long an agent gets between SIGTERM and SIGKILL.
const StopGrace = 5 * time.Second
