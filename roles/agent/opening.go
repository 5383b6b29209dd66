package agent

import (
	"cmp"
	"fmt"
	"strings"
)

// model is the one to name on an agent's command line.
func model(a Agent, c Call) (string, error) {
	name := cmp.Or(c.Model, a.DefaultModel())
	if strings.HasPrefix(name, "-") || strings.ContainsAny(name, " \t\r\n") {
		return "", fmt.Errorf("cannot start %s: %q is not the name of a model", a.Name(), c.Model)
	}
	return name, nil
}

// opening is all that goes in by standard input. The prompt itself is a file: it
// may be longer than a CLI takes, and some of them expand @paths in what they are
// given, take a leading slash for a command, or echo the whole text. So the
// opening begins with a letter, has no @, and is short. about is what the agent
// has to know of its tools, a paragraph or "".
func opening(c Call, about string) string {
	if about != "" {
		about = "\n" + about + "\n"
	}
	return fmt.Sprintf(`Your task is in the file %s. Before anything else read that file wholly, from its first line to its last: when a tool returns only a part of it, read on from there until you have reached the end. Then do what it says, step by step, with your tools, and end only when everything that it asks for is done. Nobody answers questions during this call.
%s
[abl call %s phase %d iteration %d attempt %d]
`, c.Prompt, about, c.Role, c.Phase, c.Iteration, c.Attempt)
}
