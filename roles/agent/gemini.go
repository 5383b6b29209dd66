package agent

import (
	"fmt"
	"strings"

	"abl/orchestrator/dirs"
)

// Where abl's image keeps what makes the Gemini CLI quiet and predictable. Both
// are read-only there, so a workspace cannot answer them with files of its own.
const (
	geminiSettings = "/etc/abl/gemini-settings.json"
	geminiPolicy   = "/etc/abl/gemini-policy.toml"
)

// Gemini is Google's Gemini CLI.
type Gemini struct{}

// Name is "gemini".
func (Gemini) Name() string { return "gemini" }

// Image is the image that carries the CLI.
func (Gemini) Image() string { return "gemini" }

// Version is the pinned version of @google/gemini-cli.
func (Gemini) Version() string { return "0.61.0" }

// DefaultModel is named on every command line: without one the CLI asks a
// second model which model to use, and pays for the question.
func (Gemini) DefaultModel() string { return "gemini-2.5-pro" }

// Command is the headless command line. stream-json, because only that form
// tells the tokens of a call that failed; no extensions, and a policy that
// takes away the tools that leave the box or call other models.
func (g Gemini) Command(c Call) (Command, error) {
	model := c.Model
	if model == "" {
		model = g.DefaultModel()
	}
	if strings.HasPrefix(model, "-") || strings.ContainsAny(model, " \t\r\n") {
		return Command{}, fmt.Errorf("cannot start gemini: %q is not the name of a model", c.Model)
	}
	argv := []string{
		"gemini", "-m", model,
		"--approval-mode", "yolo",
		"-o", "stream-json",
		"-e", "none",
		"--policy", geminiPolicy,
		"--include-directories", dirs.Specs + "," + dirs.In,
	}
	if c.Session != "" {
		argv = append(argv, "--session-id", c.Session)
	}
	return Command{Argv: argv, Stdin: geminiOpening(c), Env: geminiEnv(), Key: "GEMINI_API_KEY"}, nil
}

// NewReader reads the CLI's stream-json.
func (Gemini) NewReader(Call) Reader { return &geminiReader{} }

// geminiEnv leaves the key out: it is a secret and comes another way.
// GEMINI_CLI_NO_RELAUNCH keeps the CLI one process, which SIGTERM then ends.
func geminiEnv() map[string]string {
	return map[string]string{
		"HOME":                            dirs.Home,
		"GEMINI_CLI_NO_RELAUNCH":          "1",
		"GEMINI_CLI_SYSTEM_SETTINGS_PATH": geminiSettings,
		"NO_COLOR":                        "1",
		"NO_BROWSER":                      "1",
		"NODE_NO_WARNINGS":                "1",
	}
}

// geminiOpening is all that goes in by standard input. The prompt itself is a
// file, because the CLI expands @paths in what it is given, takes a leading
// slash for a command, and echoes the whole text into a pipe that it does not
// drain when it ends. So the opening begins with a letter, has no @, and is short.
// It names two refusals that are built into the CLI and that no setting lifts.
func geminiOpening(c Call) string {
	return fmt.Sprintf(`Your task is in the file %s. Before anything else read that file wholly, from its first line to its last: when a tool returns only a part of it, read on from there until you have reached the end. Then do what it says, step by step, with your tools, and end only when everything that it asks for is done. Nobody answers questions during this call.

Two things about your tools. write_file and replace refuse build files (package.json, pyproject.toml, setup.py, go.mod, Cargo.toml, pom.xml, Makefile, CMakeLists.txt, Dockerfile and their lock files): write those with a shell command, as cat > package.json <<'EOF' and so on. The shell refuses a command with a command substitution or a process substitution in it: write such a command into a script file and run the file.

[abl call %s phase %d iteration %d attempt %d]
`, c.Prompt, c.Role, c.Phase, c.Iteration, c.Attempt)
}
