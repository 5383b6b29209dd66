package agent

import (
	"strings"

	"abl/internal/helper"
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

// DefaultModel is named on every command line: without one the CLI asks a
// second model which model to use, and pays for the question.
func (Gemini) DefaultModel() string { return "gemini-2.5-pro" }

// Command is the headless command line. stream-json, because only that form
// tells the tokens of a call that failed; no extensions, and a policy that
// takes away the tools that leave the box or call other models.
func (g Gemini) Command(c Call) (Command, error) {
	model, err := model(g, c)
	if err != nil {
		return Command{}, err
	}
	argv := []string{
		"gemini", "-m", model,
		"--approval-mode", "yolo",
		"-o", "stream-json",
		"-e", "none",
		"--policy", geminiPolicy,
		"--include-directories", strings.Join(geminiFolders(c), ","),
	}
	if c.Session != "" {
		argv = append(argv, "--session-id", c.Session)
	}
	return Command{Argv: argv, Env: geminiEnv()}, nil
}

// geminiFolders are those besides the workspace in which the CLI's own tools may
// read. One that is not there ends the CLI.
func geminiFolders(c Call) []string {
	if c.Alone {
		return []string{helper.In}
	}
	return []string{helper.Specs, helper.In}
}

// NewReader reads the CLI's stream-json.
func (Gemini) NewReader(Call) Reader { return &geminiReader{} }

// geminiEnv leaves the key out: it is a secret and comes another way.
// GEMINI_CLI_NO_RELAUNCH keeps the CLI one process, which SIGTERM then ends.
func geminiEnv() map[string]string {
	return map[string]string{
		"HOME":                            helper.Home,
		"GEMINI_CLI_NO_RELAUNCH":          "1",
		"GEMINI_CLI_SYSTEM_SETTINGS_PATH": geminiSettings,
		"NO_COLOR":                        "1",
		"NO_BROWSER":                      "1",
		"NODE_NO_WARNINGS":                "1",
	}
}

// AboutTools names what the CLI's tools refuse, which is built in and which no
// setting lifts. It looks for substitutions in the body of a heredoc too.
func (Gemini) AboutTools() string {
	return "Two things about your tools. run_shell_command refuses a command that has $(, <(, >( or a backtick outside of single quotes, in the body of a heredoc too, even of a quoted one; an apostrophe counts as a quote there. Write such a command into a script file with write_file and run the file. write_file and replace refuse build files (package.json, pyproject.toml, setup.py, go.mod, Cargo.toml, pom.xml, Makefile, CMakeLists.txt, Dockerfile and their lock files): write those under another name and move them with a shell command."
}

// MaxPrompt is where the CLI cuts its standard input.
func (Gemini) MaxPrompt() (int, Unit) { return 8 << 20, Bytes }
