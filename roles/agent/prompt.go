package agent

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrPrompt says that an agent's CLI would not take a prompt as it is.
var ErrPrompt = errors.New("the prompt is longer than the agent's program takes")

// Bounded is an agent whose CLI cuts or refuses a prompt that is longer.
type Bounded interface {
	// MaxPrompt is how many characters it takes, or how many bytes.
	MaxPrompt() (n int, unit Unit)
}

// Unit is what the length of a prompt is counted in.
type Unit string

// The units.
const (
	Bytes      Unit = "bytes"
	Characters Unit = "characters"
)

// Advised is an agent whose CLI's tools refuse what another's do.
type Advised interface{ AboutTools() string }

// lead is how every prompt begins. Some CLIs take a text for a command that begins
// with a sign, so it begins with a letter.
const lead = "This message is your task, all of it. Do it step by step with your tools, and end only when everything that it asks for is done. Nobody answers questions during this call.\n\n"

// Prompt is all that an agent is told, by standard input: text between what is the
// same in every call of that agent and the line that names the call. It fails with
// ErrPrompt where the CLI would not take it whole.
func Prompt(a Agent, c Call, text string) (string, error) {
	whole := lead
	if s, ok := a.(Advised); ok {
		whole += s.AboutTools() + "\n\n"
	}
	whole += text + "\n" + Mark(c.Role, c.Phase, c.Iteration, c.Attempt) + "\n"
	b, ok := a.(Bounded)
	if !ok {
		return whole, nil
	}
	most, unit := b.MaxPrompt()
	long := len(whole)
	if unit == Characters {
		long = utf8.RuneCountInString(whole)
	}
	if long > most {
		return "", fmt.Errorf("cannot start %s: %w: it has %d %s, and %s takes %d", a.Name(), ErrPrompt, long, unit, a.Name(), most)
	}
	return whole, nil
}

// Mark is the last line of a call's prompt.
func Mark(role string, phase, iteration, attempt int) string {
	return fmt.Sprintf("[abl call %s phase %d iteration %d attempt %d]", role, phase, iteration, attempt)
}
