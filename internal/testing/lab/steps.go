package lab

import (
	"strings"

	"abl/roles/agent"
)

// WriteStep returns a step of the scripted agent that writes a file. mode is an optional file mode
// such as "0755".
func WriteStep(name, text string, mode ...string) agent.Step {
	return agent.Step{Write: name, Text: text, Mode: strings.Join(mode, "")}
}

// ReportStep returns a step that writes the role's report.
func ReportStep() agent.Step { text := "done\n"; return agent.Step{Report: &text} }

// RawStep returns a step that prints a line without the record format.
func RawStep(line string) agent.Step { return agent.Step{Raw: &line} }

// RunStep returns a step that runs a command and ignores its exit code.
func RunStep(command string) agent.Step { return agent.Step{Run: command} }
