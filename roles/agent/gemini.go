package agent

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/usage"
)

// gemini is Google's Gemini CLI. Every command line names the model: otherwise the CLI asks a
// second model, at a cost, which model to use. The advice describes refusals of the CLI's tools
// that no setting disables.
var gemini = Agent{
	Name:         "gemini",
	Image:        "gemini",
	DefaultModel: "gemini-3.8-flash",
	Aliases: map[string]string{
		"pro": "gemini-3.1-pro-preview", "gemini-3-pro-preview": "gemini-3.1-pro-preview", "flash": "gemini-3.8-flash",
		"flash-lite": "gemini-3.5-flash-lite", "auto": "",
	},
	Provider: geminiLogin,
	Logins:   []Provider{geminiLogin},
	MaxBytes: 8 << 20, // the CLI cuts its standard input there
	Advice: "Two things about your tools. run_shell_command refuses a command that has $(, <(, " +
		">( or a backtick outside of single quotes, in the body of a heredoc too, even of a quoted one; " +
		"an apostrophe counts as a quote there. Write such a command into a script file with write_file and run the file. " +
		"write_file and replace refuse build files (package.json, pyproject.toml, setup.py, go.mod, Cargo.toml, pom.xml, " +
		"Makefile, CMakeLists.txt, Dockerfile and their lock files): write those under another name and move them with a " +
		"shell command.",
	Effort:    geminiEffort,
	Command:   geminiCommand,
	NewReader: func(Call) Reader { return &geminiReader{} },
}

var geminiLogin = Provider{Login: "key", API: "gemini", KeyVar: "GEMINI_API_KEY", BaseVar: "GOOGLE_GEMINI_BASE_URL"}

// Paths of the CLI's settings and policy in abl's image. They are read-only, so a workspace cannot
// replace them.
const (
	geminiSettings = "/etc/abl/gemini-settings.json"
	geminiPolicy   = "/etc/abl/gemini-policy.toml"
)

// geminiCommand returns the headless command line. Only the format stream-json reports the tokens
// of a failed call. The policy removes the tools that access the network or call other models. The
// environment has no key. With GEMINI_CLI_NO_RELAUNCH the CLI is one process, so that SIGTERM ends
// it.
func geminiCommand(c Call) (Command, error) {
	// Folders that the CLI's own tools may read in addition to the workspace.
	folders := helper.Specs + "," + helper.In
	if c.NoSpecs {
		folders = helper.In // the CLI ends if one does not exist
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

// geminiReader reads stream-json.
type geminiReader struct {
	failure string       // the last error record, or a warning that ended the call
	end     geminiRecord // the result record
	follower
}

// geminiRecord has the fields of a line that abl reads.
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

// Result implements Reader. The exit code is not enough: the CLI also exits with 0 after a signal,
// after a blocked or empty response, and when it stops a model that repeats itself. If the token
// limit cut the first response, the only sign is that no tool was used.
func (r *geminiReader) Result(exit int) Result {
	end, code, status := r.end, exitCode(exit), geminiStatus(exit)
	if status != nil {
		code += fmt.Sprintf(" (HTTP status %d)", *status)
	} else if meaning := geminiExits[exit]; meaning != "" {
		code += " (" + meaning + ")"
	}
	res := Result{Requests: -1, Usage: usagesOf(end.Stats.Models, geminiCount)}
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

// geminiCount returns the tokens of one model. Input includes cached tokens; output has only
// candidates. The total includes thoughts and tool prompts, which are not reported separately.
func geminiCount(t figures) usage.Count {
	return usage.Count{
		Input:      t.of("input_tokens"),
		Candidates: t.of("output_tokens"),
		Cached:     t.of("cached"),
		Total:      t.of("total_tokens"),
	}
}

// geminiExits are the CLI's exit codes.
var geminiExits = map[int]string{
	41: "no usable login or key", 42: "no prompt reached it", 53: "too many turns", 55: "the folder is not trusted",
}

// geminiStatus returns the HTTP status of a refused request, from the exit code, which is the
// status modulo 256.
func geminiStatus(exit int) *int64 {
	status := int64(exit) + 256
	if slices.Contains([]int64{400, 401, 403, 404, 429, 500, 502, 503, 504}, status) {
		return &status
	}
	return nil
}

// geminiSigns distinguish a refused key from a prompt that is too long, which have the same status.
// The CLI retries for minutes if the provider is unavailable.
var (
	geminiSigns = []sign{
		{outcome.Refused, []string{"api key not valid", "api_key_invalid", "no usable login or key"}},
		{outcome.TooLarge, []string{"maximum number of tokens", "input token count"}},
		{outcome.Network, []string{"fetch failed"}},
	}
	geminiDaily = []sign{{outcome.Quota, []string{"perday", "daily"}}}
)
