package agent

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// ErrPrompt says that an agent's CLI would not take a prompt as it is.
var ErrPrompt = errors.New("the prompt is longer than the agent's program takes")

// lead is how every prompt begins. Some CLIs take a text for a command that begins
// with a sign, so it begins with a letter.
const lead = "This message is your task, all of it. Do it step by step with your tools, and end only when everything that it asks for is done. Nobody answers questions during this call.\n\n"

// Prompt is all that an agent is told, by standard input: text between what is the
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
