package agent

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"abl/internal/helper"
	"abl/internal/outcome"
)

// codex is OpenAI's Codex CLI. This version of the CLI has instructions and tools for the default
// model. For an unknown model it uses those of another.
var codex = Agent{
	Name:          "codex",
	Image:         "codex",
	DefaultModel:  "gpt-6.2-sol",
	Provider:      codexLogins[0],
	Logins:        codexLogins,
	MaxCharacters: 1 << 20, // the CLI refuses more
	Advice: "About your tools: the shell refuses every command with rm -f or rm -rf in it. " +
		"Remove a file with rm FILE and a folder with rm -r FOLDER. If it may be missing, test with [ -e PATH ] first.",
	Effort:    openAIEffort,
	Command:   codexCommand,
	NewReader: func(c Call) Reader { return &codexReader{model: c.Model} },
}

// codexLogins has the variables that the CLI documents. The CLI reads no address from the
// environment.
var codexLogins = []Provider{
	{Login: "key", API: "openai-responses", KeyVar: "OPENAI_API_KEY", BaseVar: "OPENAI_BASE_URL"},
	{
		Login:     "azure",
		API:       "openai-responses",
		KeyVar:    "AZURE_OPENAI_API_KEY",
		BaseVar:   "AZURE_OPENAI_BASE_URL",
		Header:    "Api-Key",
		Path:      "/openai/v1",
		NeedsBase: true,
	},
}

// codexStart passes the address and the name of the key of the container's login to the CLI; "-" is
// the prompt on standard input.
const codexStart = `base=$OPENAI_BASE_URL key=OPENAI_API_KEY
if [ -n "$AZURE_OPENAI_API_KEY" ]; then base=$AZURE_OPENAI_BASE_URL key=AZURE_OPENAI_API_KEY; fi
exec codex exec "$@" -c "model_providers.abl.base_url=\"$base/v1\"" -c "model_providers.abl.env_key=\"$key\"" -`

// codexCommand returns the headless command line. With a separate provider the CLI uses no
// WebSocket and no login. It reads neither instructions nor settings of the workspace.
func codexCommand(c Call) (Command, error) {
	argv := []string{
		"sh", "-c", codexStart, "codex",
		"--json", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config", "--ignore-rules",
		"--dangerously-bypass-approvals-and-sandbox", "-m", c.Model,
	}
	for _, feature := range codexFeatures {
		argv = append(argv, "--disable", feature)
	}
	for _, setting := range codexSettings {
		argv = append(argv, "-c", setting)
	}
	if c.Effort != "" { // the CLI would send any value
		value, _ := openAIEffort(c.Model, c.Effort)
		argv = append(argv, "-c", fmt.Sprintf("model_reasoning_effort=%q", value))
	}
	return Command{Argv: argv, Env: map[string]string{"HOME": helper.Home, "NO_COLOR": "1"}}, nil
}

// codexFeatures are switched off. Plugins and apps access hosts that the container cannot reach;
// unbounded retries would wait for a connection forever.
var codexFeatures = []string{
	"plugins", "apps", "remote_plugin", "hooks", "multi_agent", "goals", "sleep_tool", "unbounded_connection_retries",
}

// codexSettings are settings in TOML. The agents keys switch off sub-agents, which newer models
// start by default.
var codexSettings = []string{
	`model_provider="abl"`,
	`model_providers.abl.name="abl"`,
	`model_providers.abl.wire_api="responses"`,
	`model_providers.abl.request_max_retries=2`,
	`model_providers.abl.stream_max_retries=2`,
	`analytics.enabled=false`,
	`check_for_update_on_startup=false`,
	`project_doc_max_bytes=0`,
	`agents.enabled=false`,
	`skills.include_instructions=false`,
	`web_search="disabled"`,
	`history.persistence="none"`,
}

// codexReader reads the JSON lines of codex exec, which do not name the model.
type codexReader struct {
	model string
	last  string      // the last error record
	end   codexRecord // of the turn
	follower
}

// codexRecord has the fields of a line that abl reads.
type codexRecord struct {
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"`
	Error    struct {
		Message string `json:"message"`
	} `json:"error"`
	Usage figures `json:"usage"`
	stamped
	Item struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Command string `json:"command"`
		Output  string `json:"aggregated_output"`
		Exit    count  `json:"exit_code"`
		Query   string `json:"query"`
		Changes []struct {
			Path string `json:"path"`
		} `json:"changes"`
	} `json:"item"`
}

// Line implements Reader.
func (r *codexReader) Line(line []byte, cut bool) []Message {
	var rec codexRecord
	if !r.record(line, cut, &rec) {
		return nil
	}
	switch rec.Type {
	case "thread.started":
		r.session = label(rec.ThreadID, maxName)
	case "item.started", "item.completed":
		return r.item(rec.Type == "item.started", rec)
	case "error":
		r.last = label(rec.Message, maxReason)
	case "turn.completed", "turn.failed":
		if was := r.end.Usage; was != nil { // the counts are of the whole thread
			rec.Usage = was.with(rec.Usage)
		}
		r.end = rec
	}
	return nil
}

// item returns the messages of a text or an action. An item of type error is a notice. Some tools
// report only their end.
func (r *codexReader) item(started bool, rec codexRecord) []Message {
	item := rec.Item
	switch item.Type {
	case "", "error", "reasoning", "todo_list":
		return nil
	case "agent_message":
		if started {
			return nil
		}
		r.pause() // each message is complete
		r.say(item.Text)
		return r.message(Said, item.Text, "")
	}
	if !started {
		r.tools++
	}
	r.pause()
	switch command := item.Type == "command_execution"; {
	case command && started:
		text := withoutShell(item.Command)
		return r.message(Called, action("shell", text), text)
	case command:
		return r.result(item.Exit.n == nil || *item.Exit.n != 0, item.Output)
	case started:
		return nil
	}
	var paths []string
	for _, change := range item.Changes {
		paths = append(paths, change.Path)
	}
	if len(paths) == 0 {
		paths = []string{item.Query}
	}
	return r.message(Called, action(item.Type, paths[0]), strings.Join(paths, "\n"))
}

// withoutShell returns a command without the CLI's call of a shell.
func withoutShell(command string) string {
	shell, rest, ok := strings.Cut(command, " -lc ")
	if !ok || !strings.HasPrefix(shell, "/") || strings.ContainsAny(shell, " \t\n") {
		return command
	}
	if plain, err := strconv.Unquote(rest); err == nil {
		return plain
	}
	return strings.Trim(rest, "'")
}

// Result implements Reader. The CLI reports errors of the provider only as text.
func (r *codexReader) Result(exit int) Result {
	end, res := r.end, Result{Requests: -1}
	if end.Usage != nil {
		res.Usage = usagesOf(map[string]figures{cmp.Or(r.model, "unknown"): end.Usage}, codexNames.count)
	}
	switch {
	case end.Type == "":
		res.Reason = r.noRecord("codex", exitCode(exit))
		if r.last != "" && !r.cut {
			res.Reason += "; its last message was: " + r.last
		}
	case end.Type == "turn.failed":
		res.Reason = "codex stopped: " + reason(cmp.Or(end.Error.Message, r.last, "no reason given"))
	}
	res.Trouble = trouble(res.Reason, codexStatus(res.Reason), codexSigns)
	return r.ended(res, "codex", exit, answered(res.Usage), r.tools == 0)
}

var codexNames = names{"input_tokens", "cached_input_tokens", "output_tokens", "reasoning_output_tokens"}

// codexStatus returns the HTTP status in an error message, or nil.
func codexStatus(said string) *int64 {
	_, after, _ := strings.Cut(strings.ToLower(said), "status")
	digits := strings.TrimLeft(after, ": ")
	if n, err := strconv.ParseInt(digits[:min(len(digits), 3)], 10, 64); err == nil {
		return &n
	}
	return nil
}

// codexSigns are words of the provider's error document, which the CLI prints for a bad request.
var codexSigns = []sign{
	{outcome.TooLarge, []string{"context_length_exceeded", "context window", "exceeds the maximum length"}},
	{outcome.Quota, []string{"insufficient_quota", "quota exceeded", "usage limit"}},
	{outcome.Unavailable, []string{"high demand", "overloaded"}},
	{outcome.Network, []string{"error sending request", "waiting for network", "network error", "connection failed"}},
}
