// Package agent knows the coding CLIs that can play a role: the command line,
// the environment that makes them quiet, and what their output means, in one file
// for each. It holds the script of the agent that needs no model as well, and plays
// it inside a container (player.go); everything else here is pure.
// docs/scripted-agent.md describes a script.
package agent

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"abl/internal/outcome"
	"abl/internal/prices"
	"abl/internal/tokens"
	"abl/internal/wording"
)

// Agent is one coding CLI.
type Agent struct {
	Name string
	// The image of abl's that carries the CLI: "gemini", or "tools" for one that needs nothing. For
	// an agent of the user's own also an image of a registry.
	Image        string
	Version      string // of its program in an image of abl's; "" for the one that abl is tested with
	NPM          string // packages that are added to the image, with spaces between
	Own          bool   // one of the user's own: abl knows little of how it ends
	DefaultModel string // used when the configuration names none
	// Models by a short name of the CLI's; "" for one that it chooses again each time.
	Aliases       map[string]string
	Provider      Provider   // the login in use; zero for none
	Logins        []Provider // all that the CLI documents, the usual one first
	MaxBytes      int        // of a prompt that the CLI takes whole; 0 for any
	MaxCharacters int        // as MaxBytes
	Advice        string     // what its tools refuse that those of others do
	Effort        effort     // nil if the agent does not think
	Command       func(Call) (Command, error)
	NewReader     func(Call) Reader
}

// Provider is one login of an agent's CLI: the model service, and the variables in which the CLI
// documents its address and key. A container has the same variables, with a gateway's address and
// the call's token.
type Provider struct {
	Login   string // its name for agents.NAME.login
	API     string // as the gateway knows it: gemini, anthropic, openai-responses, openai-chat
	KeyVar  string // environment variable of the key
	BaseVar string // environment variable of the address

	// The header of the key, and the text before it, if the service does not take the API's own.
	Header, Scheme string
	Upstream       string // address of the vendor, if it is not the API's; {region} stands for a region
	RegionVar      string // environment variable of that region
	NeedsBase      bool   // the vendor has no address that is the same for all
	Path           string // added to an address that has no path
	Prefix         string // before the names of models in requests
	Box            string // further variables of a container: NAME=VALUE, with spaces between
	Own            bool   // of an agent of the user's own: BaseVar is the name of a setting, and Base its value
	Base           string
	Plan           bool // a subscription, which costs no dollars for a token
}

const bearer = "Bearer "

// Call is what an agent needs to know of the call it is started for.
type Call struct {
	ID        string // <call>.<attempt>
	Role      string // builder or verifier
	Phase     int
	Iteration int // within the round, as the prompt has it
	Step      int // over all rounds
	Attempt   int
	Model     string // by its full name
	Effort    string // low, medium, high or max; "" for the CLI's own default
	Session   string // a UUID of abl's, for agents that take one
	Prompt    string // path of the prompt inside the box, which is standard input as well
	Dir       string // working directory inside the box
	Alone     bool   // there are no specs in the box
}

// Command is how to start an agent inside its box.
type Command struct {
	Argv []string
	Env  map[string]string // without secrets
	// Name → content, laid into the call's read-only directory (helper.In).
	Files map[string][]byte
}

// Usage is what one call used of one model.
type Usage struct {
	Model string `json:"model"`
	tokens.Count
	// Where who counted knows the price of each request.
	Cost *prices.USD `json:"cost_usd,omitempty"`
	Part bool        `json:"part,omitempty"`         // of answers that were not told whole
	Plan bool        `json:"subscription,omitempty"` // paid by a subscription
}

// Result is what an agent's own output says about how it ended.
type Result struct {
	// A final record of the right type and status was there, and at least one model request.
	Finished bool
	Reason   string          // why it is not finished, in one sentence; "" otherwise
	Trouble  outcome.Outcome // what is wrong, as far as the output tells; "" otherwise
	Toolless bool            // it prints the uses of tools, and the output has no use
	Session  string
	Usage    []Usage // one a model, sorted by model
	Requests int64   // model requests counted, -1 when the output does not tell
	// What the agent said last, in its own words: its answer, where one was asked for.
	Said string
}

// Reader consumes an agent's standard output line by line, while it runs or
// afterwards; both ways give the same Result. Lines longer than MaxLine reach
// it cut, with cut set.
type Reader interface {
	// Line takes one line without its end and returns its messages. An empty one, as
	// after the last, ends a message that consists of pieces.
	Line(line []byte, cut bool) []Message
	// Result says how the call ended, given the exit code of the CLI.
	Result(exit int) Result
}

// Program is an agent that is one command, and whose exit code alone says how it ended.
func Program(name string, c Command) Agent {
	return Agent{
		Name: name, Image: "tools",
		Command:   func(Call) (Command, error) { return c, nil },
		NewReader: func(Call) Reader { return unreadable{} },
	}
}

type unreadable struct{}

func (unreadable) Line([]byte, bool) []Message { return nil }

func (unreadable) Result(exit int) Result { return Result{Finished: exit == 0, Requests: -1} }

// MaxLine is the longest line that a Reader is given whole, in bytes
// (facts: agent JSON lines stay under it; a prompt echo may not).
const MaxLine = 8 << 20

// StopGrace is how long an agent gets between SIGTERM and SIGKILL.
const StopGrace = 5 * time.Second

// known are the agents that abl knows, in the order in which help shows them. The
// scripted one has a script only where there is a project.
var known = []Agent{gemini, claude, codex, Copilot("openai-responses"), Scripted(Scenario{}, "", Provider{})}

// Names lists the agents that abl knows.
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

// Find returns the agent of that name.
func Find(name string) (Agent, error) {
	for _, a := range known {
		if a.Name == name {
			return a, nil
		}
	}
	if near := wording.Near(name, Names()); near != "" {
		return Agent{}, fmt.Errorf("cannot find the agent %q; did you mean %q?", name, near)
	}
	return Agent{}, fmt.Errorf("cannot find the agent %q; known are %s", name, strings.Join(Names(), ", "))
}

// FullName is the model that the CLI asks for by this name, which is mostly the same:
// the gateway lets one model through, by its full name. One that only the CLI can
// resolve is an error, and so is what a command line would take for something else.
func (a Agent) FullName(model string) (string, error) {
	full, short := a.Aliases[model]
	switch {
	case strings.HasPrefix(model, "-") || strings.ContainsAny(model, " \t\r\n"):
		return "", fmt.Errorf("cannot start %s: %q is not the name of a model", a.Name, model)
	case !short:
		return model, nil
	case full == "":
		return "", fmt.Errorf("cannot use the model %q of %s: which model it stands for, only the CLI knows", model, a.Name)
	}
	return full, nil
}

// Usages reads what an agent printed, whole, as `abl debug usage` does.
func Usages(a Agent, stdout []byte, exit int) Result {
	reader := a.NewReader(Call{})
	Feed(reader, stdout)
	return reader.Result(exit)
}

// Feed gives a reader an output that is there already, as the live reader would
// get it: without line ends, and cut at MaxLine.
func Feed(r Reader, stdout []byte) {
	for line := range bytes.Lines(stdout) {
		line = bytes.TrimRight(line, "\r\n")
		r.Line(line[:min(len(line), MaxLine)], len(line) > MaxLine)
	}
}

// ErrPrompt says that an agent's CLI would not take a prompt as it is.
var ErrPrompt = errors.New("the prompt is longer than the agent's program takes")

// lead is how every prompt begins. Some CLIs take a text for a command that begins
// with a sign, so it begins with a letter.
const lead = "This message is your task, all of it. Do it step by step with your tools, and end only when everything that it asks for is done. Nobody answers questions during this call.\n\n"

// Prompt is the whole text that an agent gets on standard input: text between what is the
// same in every call of that agent and the line that names the call. It fails with
// ErrPrompt where the CLI would not take it whole.
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
			return "", fmt.Errorf("cannot start %s: %w: it has %d %s, and %[1]s takes %[5]d",
				a.Name, ErrPrompt, limit.has, limit.unit, limit.most)
		}
	}
	return whole, nil
}

// Mark is the last line of a call's prompt.
func Mark(role string, phase, iteration, attempt int) string {
	return fmt.Sprintf("[abl call %s phase %d iteration %d attempt %d]", role, phase, iteration, attempt)
}
