// Package agent supports the coding CLIs that can play a role. One file per CLI has its command
// line, its environment and a reader for its output. The scripted agent needs no model: player.go
// plays its scenario inside a container. All other code is pure. docs/scripted-agent.md describes
// scenarios.
package agent

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"abl/internal/outcome"
	"abl/internal/usage"
	"abl/internal/wording"
)

// Agent is one coding CLI.
type Agent struct {
	Name string
	// Image is the image of abl with the CLI, such as "gemini" or "tools". For the user's own
	// agents it may also be an image of a registry.
	Image        string
	Version      string // of the program in an image of abl; "" for the version that abl is tested with
	NPM          string // packages to add to the image, separated by spaces
	Own          bool   // the user's own agent: abl cannot read all of its output
	DefaultModel string // if the settings name no model
	// Aliases are the CLI's short names of models; "" for a name whose model only the CLI knows.
	Aliases       map[string]string
	Provider      Provider   // the login in use; may be zero
	Logins        []Provider // all documented logins, the usual one first
	MaxBytes      int        // longest prompt that the CLI accepts; 0 for no limit
	MaxCharacters int        // the same in characters
	Advice        string     // for the prompt: peculiarities of the CLI's tools
	Effort        effort     // nil if the agent does not think
	Command       func(Call) (Command, error)
	NewReader     func(Call) Reader
}

// Provider is one login of an agent's CLI: the model service, and the variables in which the CLI
// documents its address and key. A container has the same variables, with a gateway's address and
// the call's token.
type Provider struct {
	Login   string // name in agents.NAME.login
	API     string // the gateway's name: gemini, anthropic, openai-responses, openai-chat
	KeyVar  string // environment variable of the key
	BaseVar string // environment variable of the address

	// Header and Scheme are the header of the key and the text before the key, if they differ from
	// the API's.
	Header, Scheme string
	Upstream       string // address of the vendor, if it differs from the API's; may contain {region}
	RegionVar      string // environment variable of the region
	NeedsBase      bool   // the vendor has no common address: the user must set one
	Path           string // added to an address without a path
	Prefix         string // of the names of models in requests
	ContainerVars  string // additional variables of a container: NAME=VALUE, separated by spaces
	Own            bool   // the user's own agent: BaseVar is the name of a setting, and Base its value
	Base           string
	Plan           bool // a subscription, without a price per token
}

const bearer = "Bearer "

// Call describes the call for which an agent is started.
type Call struct {
	ID        string // <call>.<attempt>
	Role      string // builder or verifier
	Phase     int
	Iteration int // within the round
	Step      int // over all rounds
	Attempt   int
	Model     string // full name
	Effort    string // low, medium, high or max; "" for the CLI's own default
	Session   string // a UUID by abl, for agents that accept one
	Prompt    string // path of the prompt in the container; it is also standard input
	Dir       string // working directory in the container
	NoSpecs   bool   // the container has no specs
}

// Command starts an agent in its container.
type Command struct {
	Argv []string
	Env  map[string]string // without secrets
	// Files are created in the call's read-only directory (helper.In): content by name.
	Files map[string][]byte
}

// Usage is the usage of one model in one call.
type Usage struct {
	Model string `json:"model"`
	usage.Count
	// Cost is set if the price of each request is known.
	Cost *usage.USD `json:"cost_usd,omitempty"`
	Part bool       `json:"part,omitempty"`         // some responses are not counted completely
	Plan bool       `json:"subscription,omitempty"` // paid by a subscription
}

// Result is the end of a call as the agent's output reports it.
type Result struct {
	// Finished is set if the output has a final record of success and at least one model request.
	Finished bool
	Reason   string          // why it is not finished, in one sentence
	Trouble  outcome.Outcome // class of the failure, "" if unknown or not failed
	Toolless bool            // no tool was used, by an agent that prints uses of tools
	Session  string
	Usage    []Usage // one per model, sorted
	Requests int64   // number of model requests, -1 if unknown
	// Said is the agent's last message: its answer, if the prompt asked for one.
	Said string
}

// Reader reads an agent's standard output line by line, during the call or later, with the same
// Result. Lines longer than MaxLine are cut, and cut is set.
type Reader interface {
	// Line reads a line without its line end and returns its messages. An empty line, such as after
	// the last one, ends a message that has several lines.
	Line(line []byte, cut bool) []Message
	// Result returns how the call ended. exit is the exit code of the CLI.
	Result(exit int) Result
}

// Program returns an agent that is one command and whose result is its exit code.
func Program(name string, c Command) Agent {
	return Agent{
		Name:      name,
		Image:     "tools",
		Command:   func(Call) (Command, error) { return c, nil },
		NewReader: func(Call) Reader { return unreadable{} },
	}
}

type unreadable struct{}

func (unreadable) Line([]byte, bool) []Message { return nil }

func (unreadable) Result(exit int) Result { return Result{Finished: exit == 0, Requests: -1} }

// MaxLine is the longest line that a Reader gets uncut, in bytes. JSON lines of agents are shorter.
const MaxLine = 8 << 20

// StopGrace is the time between SIGTERM and SIGKILL.
const StopGrace = 5 * time.Second

// known are abl's agents, in the order of help. The scripted agent gets its scenario from the
// project.
var known = []Agent{gemini, claude, codex, Copilot("openai-responses"), Scripted(Scenario{}, "", Provider{})}

// Names returns the names of abl's agents.
func Names() (names []string) {
	for _, a := range known {
		names = append(names, a.Name)
	}
	return names
}

// KeyVars returns the variables of the keys of every login.
func KeyVars() (all []string) {
	for _, a := range known {
		for _, login := range a.Logins {
			all = append(all, login.KeyVar)
		}
	}
	return all
}

// Find returns the agent with a name.
func Find(name string) (Agent, error) {
	for _, a := range known {
		if a.Name == name {
			return a, nil
		}
	}
	if near := wording.Near(name, Names()); near != "" {
		return Agent{}, fmt.Errorf("cannot find the agent %q; did you mean %q?", name, near)
	}
	return Agent{}, fmt.Errorf("cannot find the agent %q; abl has %s", name, strings.Join(Names(), ", "))
}

// FullName returns the full name of a model, because the gateway allows only that name. It fails
// for a name that only the CLI can resolve, and for one that is unsafe in a command line.
func (a Agent) FullName(model string) (string, error) {
	full, short := a.Aliases[model]
	switch {
	case strings.HasPrefix(model, "-") || strings.ContainsAny(model, " \t\r\n"):
		return "", fmt.Errorf("cannot start %s: %q is not the name of a model", a.Name, model)
	case !short:
		return model, nil
	case full == "":
		return "", fmt.Errorf("cannot use the model %q of %s: it is an alias that only the CLI can resolve; use a full name",
			model, a.Name)
	}
	return full, nil
}

// Usages reads the whole output of an agent, for `abl debug usage`.
func Usages(a Agent, stdout []byte, exit int) Result {
	reader := a.NewReader(Call{})
	Feed(reader, stdout)
	return reader.Result(exit)
}

// Feed passes a complete output to a reader, in lines without line ends, cut at MaxLine.
func Feed(r Reader, stdout []byte) {
	for line := range bytes.Lines(stdout) {
		line = bytes.TrimRight(line, "\r\n")
		r.Line(line[:min(len(line), MaxLine)], len(line) > MaxLine)
	}
}

// ErrPrompt means that a prompt is longer than an agent's CLI accepts.
var ErrPrompt = errors.New("the prompt is longer than the agent's program accepts")

// lead is the beginning of every prompt. It begins with a letter, because some CLIs take a text
// that begins with a special character for a command.
const lead = "This message is your task, all of it. Do it step by step with your tools, " +
	"and end only when everything that it asks for is done. Nobody answers questions during this call.\n\n"

// Prompt returns the whole prompt of a call: lead, the agent's advice, text, and a line that names
// the call. It fails with ErrPrompt if the CLI does not accept its length.
func Prompt(a Agent, c Call, text string) (string, error) {
	whole := lead
	if a.Advice != "" {
		whole += a.Advice + "\n\n"
	}
	whole += text + "\n" + Mark(c.Role, c.Phase, c.Iteration, c.Attempt) + "\n"
	for _, limit := range []struct {
		unit      string
		has, most int
	}{{"bytes", len(whole), a.MaxBytes}, {"characters", utf8.RuneCountInString(whole), a.MaxCharacters}} {
		if limit.most > 0 && limit.has > limit.most {
			return "", fmt.Errorf("cannot start %s: %w: it has %d %s, and %[1]s accepts at most %[5]d",
				a.Name, ErrPrompt, limit.has, limit.unit, limit.most)
		}
	}
	return whole, nil
}

// Mark returns the last line of a call's prompt.
func Mark(role string, phase, iteration, attempt int) string {
	return fmt.Sprintf("[abl call %s phase %d iteration %d attempt %d]", role, phase, iteration, attempt)
}
