package agent

import (
	"cmp"

	"abl/internal/helper"
	"abl/internal/outcome"
)

// Copilot returns GitHub's Copilot CLI with the user's key for a service that supports api:
// OpenAI's Responses API, its Chat API or Anthropic's. The CLI then needs no login at GitHub.
// OpenAI's newer models refuse its requests through the Chat API.
func Copilot(api string) Agent {
	key := Provider{Login: "key", API: api, KeyVar: "COPILOT_PROVIDER_API_KEY", BaseVar: "COPILOT_PROVIDER_BASE_URL"}
	token := key
	token.Login, token.KeyVar, token.Header, token.Scheme = "token", "COPILOT_PROVIDER_BEARER_TOKEN", "Authorization", bearer
	return Agent{
		Name:         "copilot",
		Image:        "copilot",
		DefaultModel: "gpt-6.1-sol",
		Aliases:      map[string]string{"auto": ""},
		Provider:     key,
		Logins:       []Provider{key, token},
		Effort:       openAIEffort,
		Command:      func(c Call) (Command, error) { return copilotCommand(c, api), nil },
		NewReader:    func(Call) Reader { return &copilotReader{} },
	}
}

// copilotStart prints the tokens, which the CLI writes to a file, as the last line, also after
// SIGTERM: both processes get the signal, and the shell waits for the CLI.
const copilotStart = `trap : TERM INT
used=$(mktemp)
if [ "$COPILOT_PROVIDER_TYPE" = openai ]; then COPILOT_PROVIDER_BASE_URL="$COPILOT_PROVIDER_BASE_URL/v1"; fi
copilot "$@" --usage-output-file "$used"
code=$?
if [ -s "$used" ]; then echo; tr -d '\n' <"$used"; echo; fi
exit $code`

// copilotCommand returns the headless command line. The CLI loads no instructions, hooks and
// servers of the workspace. Without the excluded tools the model does not learn of skills and
// agents.
func copilotCommand(c Call, api string) Command {
	kind, wire := "openai", "responses"
	switch api {
	case "openai-chat":
		wire = "completions"
	case "anthropic":
		kind = api
	}
	argv := []string{
		"sh", "-c", copilotStart, "copilot",
		"--allow-all-tools", "--allow-all-paths", "--no-ask-user", "--no-custom-instructions",
		"--disable-builtin-mcps",
		"--no-color", "--output-format", "json",
	}
	if c.Effort != "" {
		value, _ := openAIEffort(c.Model, c.Effort)
		argv = append(argv, "--effort", value)
	}
	argv = append(argv, "--excluded-tools")
	return Command{Argv: append(argv, copilotExcluded...), Env: map[string]string{
		"HOME": helper.Home, "NO_COLOR": "1",
		"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false",
		"COPILOT_PROVIDER_TYPE": kind, "COPILOT_PROVIDER_WIRE_API": wire, "COPILOT_MODEL": c.Model,
	}}
}

// copilotExcluded are tools that list skills, start other agents, or are unrelated to the task.
var copilotExcluded = []string{"skill", "task", "read_agent", "list_agents", "write_agent", "session_store_sql",
	"fetch_copilot_cli_documentation"}

// copilotReader reads the CLI's JSON lines and the last line with the tokens.
type copilotReader struct {
	asked  int64         // requests with a response
	failed *copilotData  // the last error of the session
	end    copilotRecord // the result record
	used   map[string]figures
	follower
}

// copilotRecord has the fields of a line that abl reads.
type copilotRecord struct {
	Type      string      `json:"type"`
	SessionID string      `json:"sessionId"`
	Exit      *int        `json:"exitCode"`
	Data      copilotData `json:"data"`
	stamped
	Models map[string]struct {
		Usage figures `json:"usage"`
	} `json:"modelMetrics"` // in the line with the tokens, which has no type
}

type copilotData struct {
	Content   string         `json:"content"`
	Tool      string         `json:"toolName"`
	Arguments map[string]any `json:"arguments"`
	ErrorType string         `json:"errorType"`
	Message   string         `json:"message"`
	Status    count          `json:"statusCode"`
	Outcome   string         `json:"outcome"`
	Success   bool           `json:"success"`
	Result    struct {
		Content string `json:"content"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// Line implements Reader.
func (r *copilotReader) Line(line []byte, cut bool) []Message {
	var rec copilotRecord
	if !r.record(line, cut, &rec) {
		return nil
	}
	switch rec.Type {
	case "":
		if rec.Models != nil {
			r.used = map[string]figures{}
		}
		for model, m := range rec.Models {
			r.used[model] = m.Usage
		}
	case "assistant.message":
		if rec.Data.Content != "" {
			r.pause()
			r.say(rec.Data.Content)
		}
		return r.message(Said, rec.Data.Content, "")
	case "model.call_finished":
		if rec.Data.Outcome == "success" {
			r.asked++
		}
	case "tool.execution_start":
		return r.tool(rec.Data.Tool, rec.Data.Arguments)
	case "tool.execution_complete":
		return r.result(!rec.Data.Success, cmp.Or(rec.Data.Result.Content, rec.Data.Error.Message))
	case "session.error":
		r.failed = &rec.Data
	case "result":
		r.end, r.session = rec, label(rec.SessionID, maxName)
	}
	return nil
}

// Result implements Reader. The exit code is 0 also after a signal. If the CLI was not started by
// copilotStart, it prints no tokens, and Result does not require them.
func (r *copilotReader) Result(exit int) Result {
	res := Result{Usage: usagesOf(r.used, copilotNames.count), Requests: r.asked}
	switch {
	case r.failed != nil:
		res.Reason = "copilot stopped: " + reason(cmp.Or(r.failed.Message, r.failed.ErrorType, "no reason given"))
		res.Trouble = trouble(r.failed.Message, r.failed.Status.n, copilotSigns)
	case r.end.Type == "":
		res.Reason = r.noRecord("copilot", exitCode(exit))
	case exit == 0 && (r.end.Exit == nil || *r.end.Exit != 0):
		res.Reason = "copilot reports that it failed"
	}
	return r.ended(res, "copilot", exit, r.asked > 0 && (r.used == nil || answered(res.Usage)), r.tools == 0)
}

var copilotNames = names{"inputTokens", "cacheReadTokens", "outputTokens", "reasoningTokens"}

var copilotSigns = []sign{
	{outcome.Network, []string{"could not connect", "error reading a body from connection"}},
	{outcome.TooLarge, []string{"context_length_exceeded", "maximum context length"}},
	{outcome.Quota, []string{"insufficient_quota"}},
}
