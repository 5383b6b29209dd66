package agent

import (
	"encoding/json"

	"abl/internal/helper"
)

// Codex is OpenAI's Codex CLI.
type Codex struct{}

// Name is "codex".
func (Codex) Name() string { return "codex" }

// Image is the image that carries the CLI.
func (Codex) Image() string { return "codex" }

// DefaultModel is one of those that this version of the CLI has instructions and
// tools for; one that it does not know it gives those of another.
func (Codex) DefaultModel() string { return "gpt-6.1-sol" }

// Provider is OpenAI's Responses API.
func (Codex) Provider() Provider {
	return Provider{API: "openai-responses", KeyVar: "OPENAI_API_KEY", BaseVar: "OPENAI_BASE_URL"}
}

// MaxPrompt is what the CLI refuses more than.
func (Codex) MaxPrompt() (int, Unit) { return 1 << 20, Characters }

// codexStart gives the CLI its provider's address, which it takes from no
// environment; "-" is the prompt on standard input.
const codexStart = `exec codex exec "$@" -c "model_providers.abl.base_url=\"$OPENAI_BASE_URL/v1\"" -`

// Command is the headless command line. A provider of its own keeps the CLI
// from a WebSocket and from a login; the text files of a workspace are no
// instructions, and its configuration is not trusted.
func (a Codex) Command(c Call) (Command, error) {
	model, err := model(a, c)
	if err != nil {
		return Command{}, err
	}
	argv := []string{
		"sh", "-c", codexStart, "codex",
		"--json", "--skip-git-repo-check", "--ephemeral", "--ignore-user-config", "--ignore-rules",
		"--dangerously-bypass-approvals-and-sandbox", "-m", model,
	}
	for _, feature := range codexFeatures {
		argv = append(argv, "--disable", feature)
	}
	for _, setting := range codexSettings {
		argv = append(argv, "-c", setting)
	}
	return Command{Argv: argv, Env: map[string]string{"HOME": helper.Home, "NO_COLOR": "1"}}, nil
}

// codexFeatures are switched off. The plugins and apps look for hosts that the box
// does not have; unbounded retries wait for a connection without an end.
var codexFeatures = []string{
	"plugins", "apps", "remote_plugin", "hooks", "multi_agent", "goals", "sleep_tool", "unbounded_connection_retries",
}

// codexSettings are values of TOML. agents are others that the model may hire, as
// later models do unless they are told otherwise here.
var codexSettings = []string{
	`model_provider="abl"`,
	`model_providers.abl.name="abl"`,
	`model_providers.abl.env_key="OPENAI_API_KEY"`,
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

// NewReader reads the CLI's JSON lines, which do not name the model.
func (a Codex) NewReader(c Call) Reader { return &codexReader{model: c.Model} }

// codexRecord is one line. Only what is used is named.
type codexRecord struct {
	Type     string          `json:"type"`
	ThreadID string          `json:"thread_id"`
	Message  string          `json:"message"`
	Error    codexError      `json:"error"`
	Usage    *codexTokens    `json:"usage"`
	Item     json.RawMessage `json:"item"`
}

type codexError struct {
	Message string `json:"message"`
}

// codexTokens counts a session: input with what was cached, output with thoughts.
type codexTokens struct {
	Input     count `json:"input_tokens"`
	Cached    count `json:"cached_input_tokens"`
	Output    count `json:"output_tokens"`
	Reasoning count `json:"reasoning_output_tokens"`
}
