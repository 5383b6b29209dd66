package agent

import (
	"cmp"
	"maps"
	"strings"

	"abl/internal/helper"
	"abl/internal/outcome"
	"abl/internal/usage"
)

// claude is Anthropic's Claude Code. Its default model is a full name: for an alias the CLI could
// request a model that the gateway does not allow.
var claude = Agent{
	Name:         "claude",
	Image:        "claude",
	DefaultModel: "claude-sonnet-5-5",
	Aliases: map[string]string{
		"sonnet": "claude-sonnet-5-5", "opus": "claude-opus-5-5", "best": "claude-opus-5-5", "haiku": "claude-haiku-5-5",
		"fable": "claude-fable-5-2", "opusplan": "claude-sonnet-5-5", "default": "", "inherit": "",
	},
	Provider:  claudeLogins[0],
	Logins:    claudeLogins,
	Effort:    plainEffort,
	Command:   claudeCommand,
	NewReader: func(Call) Reader { return &claudeReader{} },
}

// claudeLogins are the documented logins of Claude Code. It prefers ANTHROPIC_API_KEY to all
// others, so a container has the variables of only one login.
var claudeLogins = []Provider{
	{Login: "key", API: "anthropic", KeyVar: "ANTHROPIC_API_KEY", BaseVar: "ANTHROPIC_BASE_URL"},
	{
		Login:     "token",
		API:       "anthropic",
		KeyVar:    "ANTHROPIC_AUTH_TOKEN",
		BaseVar:   "ANTHROPIC_BASE_URL",
		Header:    "Authorization",
		Scheme:    bearer,
		NeedsBase: true,
	},
	{
		Login:   "plan",
		API:     "anthropic",
		KeyVar:  "CLAUDE_CODE_OAUTH_TOKEN",
		BaseVar: "ANTHROPIC_BASE_URL",
		Header:  "Authorization",
		Scheme:  bearer,
		Plan:    true,
	},
	{
		Login:         "mantle",
		API:           "anthropic",
		KeyVar:        "AWS_BEARER_TOKEN_BEDROCK",
		BaseVar:       "ANTHROPIC_BEDROCK_MANTLE_BASE_URL",
		Header:        "Authorization",
		Scheme:        bearer,
		Upstream:      "https://bedrock-mantle.{region}.api.aws/anthropic",
		RegionVar:     "AWS_REGION",
		Prefix:        "anthropic.",
		ContainerVars: "CLAUDE_CODE_USE_MANTLE=1",
	},
	{
		Login:         "foundry",
		API:           "anthropic",
		KeyVar:        "ANTHROPIC_FOUNDRY_API_KEY",
		BaseVar:       "ANTHROPIC_FOUNDRY_BASE_URL",
		NeedsBase:     true,
		ContainerVars: "CLAUDE_CODE_USE_FOUNDRY=1",
	},
}

// claudeTools are the tools that access neither the network nor another model.
const claudeTools = "Bash,TaskStop,Edit,Glob,Grep,Read,Write"

// claudeCommand returns the headless command line. The CLI loads no settings, hooks, servers and
// instructions of the workspace: "user" is the container's empty home. The environment restricts
// the CLI to its provider and to one model, also for internal requests.
func claudeCommand(c Call) (Command, error) {
	argv := []string{
		"claude", "-p", "--model", c.Model,
		"--dangerously-skip-permissions",
		"--output-format", "stream-json", "--verbose",
		"--setting-sources", "user", "--strict-mcp-config",
		"--tools", claudeTools,
	}
	if c.Session != "" {
		argv = append(argv, "--session-id", c.Session)
	}
	effort, budget := claudeEffort(c)
	env := map[string]string{
		"HOME": helper.Home,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"CLAUDE_CODE_DISABLE_FILE_MENTIONS":        "1", // an @ in the prompt would add a file
		"CLAUDE_CODE_MAX_RETRIES":                  "2",
		"DISABLE_AUTOUPDATER":                      "1",
		"ANTHROPIC_DEFAULT_HAIKU_MODEL":            c.Model,
		"CLAUDE_CODE_SUBAGENT_MODEL":               c.Model,
		"NO_COLOR":                                 "1",
	}
	maps.Copy(env, budget)
	return Command{Argv: append(argv, effort...), Env: env}, nil
}

// claudeReader reads stream-json. It also reads the document of --output-format json, which is the
// last line of a stream.
type claudeReader struct {
	stream bool         // the stream has its first record
	end    claudeRecord // the result record
	follower
}

// claudeRecord has the fields of a line that abl reads.
type claudeRecord struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"`
	Message   struct {
		Content []struct {
			Type    string         `json:"type"`
			Text    string         `json:"text"`
			Name    string         `json:"name"`
			Input   map[string]any `json:"input"`
			Content any            `json:"content"`
			IsError bool           `json:"is_error"`
		} `json:"content"`
	} `json:"message"`
	stamped
	IsError bool               `json:"is_error"`
	Status  count              `json:"api_error_status"`
	Said    string             `json:"result"`
	Errors  []string           `json:"errors"`
	Models  map[string]figures `json:"modelUsage"`
}

// Line implements Reader.
func (r *claudeReader) Line(line []byte, cut bool) (messages []Message) {
	var rec claudeRecord
	if !r.record(line, cut, &rec) {
		return nil
	}
	switch rec.Type {
	case "system":
		if rec.Subtype == "init" {
			r.stream, r.session = true, label(rec.SessionID, maxName)
		}
	case "assistant", "user":
		for _, part := range rec.Message.Content {
			switch rec.Type + " " + part.Type {
			case "assistant text":
				if rec.Parent == "" {
					r.say(part.Text)
				}
				messages = append(messages, r.message(Said, part.Text, "")...)
			case "assistant tool_use":
				messages = append(messages, r.tool(part.Name, part.Input)...)
			case "user tool_result":
				messages = append(messages, r.result(part.IsError, textOf(part.Content))...)
			}
		}
	case "result":
		r.end = rec
		r.session = cmp.Or(r.session, label(rec.SessionID, maxName))
	}
	return messages
}

// textOf returns the text of a content, which is a text or a list of parts.
func textOf(content any) string {
	text, _ := content.(string)
	parts, _ := content.([]any)
	for _, part := range parts {
		fields, _ := part.(map[string]any)
		more, _ := fields["text"].(string)
		text += more
	}
	return text
}

// Result implements Reader. Most errors also have the subtype "success", and the exit code after a
// signal is 0.
func (r *claudeReader) Result(exit int) Result {
	end := r.end
	res := Result{Requests: -1, Usage: usagesOf(end.Models, claudeCount)}
	switch said := end.errorText(); {
	case end.Type == "":
		res.Reason = r.noRecord("claude", exitCode(exit))
	case end.IsError || end.Subtype != "success":
		res.Reason = "claude stopped: " + said
		if end.IsError {
			res.Trouble = trouble(said, end.Status.n, claudeSigns)
		}
	}
	return r.ended(res, "claude", exit, answered(res.Usage), r.stream && r.tools == 0)
}

// errorText returns the error of a result.
func (rec claudeRecord) errorText() string {
	said := rec.Said
	if rec.Subtype != "success" && len(rec.Errors) > 0 {
		said = rec.Subtype + ": " + strings.Join(rec.Errors, "; ")
	}
	return reason(cmp.Or(said, rec.Subtype, "no reason given"))
}

// claudeCount returns the tokens of one model. Input excludes tokens that were read from or written
// to the cache; output includes thoughts.
func claudeCount(t figures) usage.Count {
	c := usage.Count{Cached: t.of("cacheReadInputTokens"), Candidates: t.of("outputTokens"),
		Thoughts: t.of("thinkingTokens")}
	c.Input = plus(t.of("inputTokens"), c.Cached, t.of("cacheCreationInputTokens"))
	c.Total = plus(c.Input, c.Candidates)
	return c.WithoutThoughts()
}

var claudeSigns = []sign{
	{outcome.TooLarge, []string{"prompt is too long", "context window"}},
	{outcome.Quota, []string{"credit balance", "usage limit"}},
	{outcome.Refused, []string{"not logged in", "invalid api key"}},
	{outcome.Network, []string{"econnrefused", "econnreset", "enotfound", "etimedout", "connection error"}},
}
