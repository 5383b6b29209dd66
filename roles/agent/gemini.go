package agent

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/tokens"
)

// gemini is Google's Gemini CLI. The model is named on every command line: without one
// the CLI asks a second model which model to use, and pays for the question. Its advice
// is what the CLI's tools refuse, which is built in and which no setting lifts; they
// look for substitutions in the body of a heredoc too.
var gemini = Agent{
	Name: "gemini", Image: "gemini", DefaultModel: "gemini-3.8-flash",
	Aliases: map[string]string{
		"pro": "gemini-3.1-pro-preview", "gemini-3-pro-preview": "gemini-3.1-pro-preview", "flash": "gemini-3.8-flash",
		"flash-lite": "gemini-3.5-flash-lite", "auto": "",
	},
	Provider:  geminiLogin,
	Logins:    []Provider{geminiLogin},
	MaxBytes:  8 << 20, // where it cuts its standard input
	Advice:    "Two things about your tools. run_shell_command refuses a command that has $(, <(, >( or a backtick outside of single quotes, in the body of a heredoc too, even of a quoted one; an apostrophe counts as a quote there. Write such a command into a script file with write_file and run the file. write_file and replace refuse build files (package.json, pyproject.toml, setup.py, go.mod, Cargo.toml, pom.xml, Makefile, CMakeLists.txt, Dockerfile and their lock files): write those under another name and move them with a shell command.",
	Effort:    geminiEffort,
	Command:   geminiCommand,
	NewReader: func(Call) Reader { return &geminiReader{} },
}

var geminiLogin = Provider{Login: "key", API: "gemini", KeyVar: "GEMINI_API_KEY", BaseVar: "GOOGLE_GEMINI_BASE_URL"}

// Where abl's image keeps what makes the CLI quiet and predictable. Both
// are read-only there, so a workspace cannot replace them.
const (
	geminiSettings = "/etc/abl/gemini-settings.json"
	geminiPolicy   = "/etc/abl/gemini-policy.toml"
)

// geminiCommand is the headless command line. stream-json, because only that form
// tells the tokens of a call that failed; no extensions, and a policy that
// takes away the tools that leave the box or call other models. The environment leaves
// the key out: it is a secret and comes another way. GEMINI_CLI_NO_RELAUNCH keeps the
// CLI one process, which SIGTERM then ends.
func geminiCommand(c Call) (Command, error) {
	// Folders that the CLI's own tools may read in addition to the workspace.
	folders := helper.Specs + "," + helper.In
	if c.Alone {
		folders = helper.In // one that is not there ends the CLI
	}
	argv := []string{
		"gemini", "-m", c.Model,
		"--approval-mode", "yolo",
		"-o", "stream-json",
		"-e", "none",
		"--policy", geminiPolicy,
		"--include-directories", folders,
	}
	if c.Session != "" {
		argv = append(argv, "--session-id", c.Session)
	}
	command := Command{Argv: argv, Env: map[string]string{
		"HOME":                            helper.Home,
		"GEMINI_CLI_NO_RELAUNCH":          "1",
		"GEMINI_CLI_SYSTEM_SETTINGS_PATH": geminiSettings,
		"NO_COLOR":                        "1",
		"NO_BROWSER":                      "1",
		"NODE_NO_WARNINGS":                "1",
	}}
	if c.Effort != "" {
		const file = "gemini-defaults.json"
		command.Files = map[string][]byte{file: geminiDefaults(c)}
		command.Env["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"] = path.Join(helper.In, file)
	}
	return command, nil
}

// geminiReader follows stream-json.
type geminiReader struct {
	failure string       // the last error record, a warning that ended the run included
	end     geminiRecord // the result record
	follower
}

// geminiRecord is one line. Only what is used is named.
type geminiRecord struct {
	Type       string         `json:"type"`
	SessionID  string         `json:"session_id"`
	ToolName   string         `json:"tool_name"`
	Parameters map[string]any `json:"parameters"`
	Message    string         `json:"message"`
	Role       string         `json:"role"`
	Content    string         `json:"content"`
	Status     string         `json:"status"`
	Error      geminiError    `json:"error"`
	Output     string         `json:"output"`
	stamped
	Stats struct {
		ToolCalls count              `json:"tool_calls"`
		Models    map[string]figures `json:"models"`
	} `json:"stats"`
}

type geminiError struct {
	Message string `json:"message"`
}

// Line implements Reader.
func (r *geminiReader) Line(line []byte, cut bool) (all []Message) {
	var rec geminiRecord
	is := r.record(line, cut, &rec)
	if len(line) == 0 || is && rec.Type != "message" {
		all = r.whole()
	}
	if !is {
		return all
	}
	switch rec.Type {
	case "init":
		r.session = label(rec.SessionID, maxName)
	case "message":
		if rec.Role == "assistant" {
			r.say(rec.Content)
			r.piece(Said, rec.Content)
		}
	case "tool_use":
		if rec.ToolName == "run_shell_command" {
			rec.ToolName = "shell"
		}
		return append(all, r.tool(rec.ToolName, rec.Parameters)...)
	case "tool_result":
		failed := rec.Status != "success"
		return append(all, r.result(failed, cmp.Or(rec.Output, rec.Error.Message))...)
	case "error":
		r.failure = label(rec.Message, maxReason)
	case "result":
		r.end = rec
	}
	return all
}

// Result implements Reader. The exit code alone proves nothing: the CLI also ends with
// 0 on a signal, on a blocked or empty answer, and when it stops a model that goes
// round in circles. That no tool was used is also the only trace of an answer that the
// token limit cut off at the first turn.
func (r *geminiReader) Result(exit int) Result {
	end, code, status := r.end, exitCode(exit), geminiStatus(exit)
	if status != nil {
		code += fmt.Sprintf(" (HTTP status %d)", *status)
	} else if meaning := geminiExits[exit]; meaning != "" {
		code += " (" + meaning + ")"
	}
	res := Result{Requests: -1, Usage: usage(end.Stats.Models, geminiCount)}
	switch said := cmp.Or(end.Error.Message, r.failure); {
	case end.Type == "":
		res.Reason = r.noRecord("gemini", code)
	case said != "" && exit == 0:
		res.Reason = "gemini stopped: " + reason(said)
	case said != "":
		res.Reason = fmt.Sprintf("gemini failed, %s: %s", code, reason(said))
	case exit != 0:
		res.Reason = "gemini failed: " + code
	case end.Status != "success":
		res.Reason = fmt.Sprintf("gemini reports the status %q", label(end.Status, maxName))
	}
	res.Trouble = trouble(res.Reason, status, geminiSigns)
	if res.Trouble == outcome.RateLimited && trouble(res.Reason, nil, geminiDaily) != "" {
		res.Trouble = outcome.Quota
	}
	tools := end.Stats.ToolCalls.n
	return r.ended(res, "gemini", exit, answered(res.Usage), tools != nil && *tools == 0)
}

// geminiCount counts one model. Input includes what was cached, and output is
// candidates alone. Thoughts and tool prompts stand in the total, and are not told apart.
func geminiCount(t figures) tokens.Count {
	return tokens.Count{
		Input: t.of("input_tokens"), Candidates: t.of("output_tokens"), Cached: t.of("cached"), Total: t.of("total_tokens"),
	}
}

// geminiExits are exit codes of the CLI's own.
var geminiExits = map[int]string{
	41: "no usable login or key", 42: "no prompt reached it", 53: "too many turns", 55: "the folder is not trusted",
}

// geminiStatus is the HTTP status of a request that was refused: the exit code is that
// status modulo 256.
func geminiStatus(exit int) *int64 {
	status := int64(exit) + 256
	if slices.Contains([]int64{400, 401, 403, 404, 429, 500, 502, 503, 504}, status) {
		return &status
	}
	return nil
}

// geminiSigns tell what statuses do not: a refused key and a prompt that is too long
// have the same one. The CLI itself retries for minutes before it gives
// up on a provider that is away.
var (
	geminiSigns = []sign{
		{outcome.Refused, []string{"api key not valid", "api_key_invalid", "no usable login or key"}},
		{outcome.TooLarge, []string{"maximum number of tokens", "input token count"}},
		{outcome.Network, []string{"fetch failed"}},
	}
	geminiDaily = []sign{{outcome.Quota, []string{"perday", "daily"}}}
)
