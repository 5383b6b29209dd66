package agent

import (
	"encoding/json"

	"abl/internal/helper"
)

// Copilot is GitHub's Copilot CLI with a key of the person's own for a service
// that speaks OpenAI's Responses API, or its Chat API. It needs no login with
// GitHub then, and asks none.
type Copilot struct {
	Chat bool // for a server without the Responses API; OpenAI's newer models refuse what the CLI asks by Chat
}

// Name is "copilot".
func (Copilot) Name() string { return "copilot" }

// Image is the image that carries the CLI.
func (Copilot) Image() string { return "copilot" }

// DefaultModel is what the environment names when the configuration does not.
func (Copilot) DefaultModel() string { return "gpt-5.1" }

// Provider is whoever speaks the API, by itself OpenAI.
func (a Copilot) Provider() Provider {
	p := Provider{API: "openai-responses", KeyVar: "COPILOT_PROVIDER_API_KEY", BaseVar: "COPILOT_PROVIDER_BASE_URL"}
	if a.Chat {
		p.API = "openai-chat"
	}
	return p
}

// wire is what the CLI calls the API.
func (a Copilot) wire() string {
	if a.Chat {
		return "completions"
	}
	return "responses"
}

// copilotStart prints the tokens, which the CLI tells in a file alone, as the
// last line, also when it was asked to end: then both get the signal, and the
// shell has to wait.
const copilotStart = `trap : TERM INT
used=$(mktemp)
COPILOT_PROVIDER_BASE_URL="$COPILOT_PROVIDER_BASE_URL/v1" copilot "$@" --usage-output-file "$used"
code=$?
if [ -s "$used" ]; then echo; tr -d '\n' <"$used"; echo; fi
exit $code`

// Command is the headless command line. None of a workspace's instructions are
// loaded, nor the hooks and servers of a folder that nobody trusted; without the
// tools that are left out the model is not told of its skills and agents either.
func (a Copilot) Command(c Call) (Command, error) {
	model, err := model(a, c)
	if err != nil {
		return Command{}, err
	}
	argv := []string{
		"sh", "-c", copilotStart, "copilot",
		"--allow-all-tools", "--allow-all-paths", "--no-ask-user", "--no-custom-instructions",
		"--disable-builtin-mcps",
		"--no-color", "--output-format", "json", "--excluded-tools",
	}
	argv = append(argv, copilotExcluded...)
	env := map[string]string{
		"HOME": helper.Home, "NO_COLOR": "1",
		"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false",
		"COPILOT_PROVIDER_TYPE": "openai", "COPILOT_PROVIDER_WIRE_API": a.wire(), "COPILOT_MODEL": model,
	}
	return Command{Argv: argv, Env: env}, nil
}

// copilotExcluded are tools that tell of skills, hire other agents, or look into
// what has nothing to do with the task.
var copilotExcluded = []string{"skill", "task", "read_agent", "list_agents", "write_agent", "session_store_sql", "fetch_copilot_cli_documentation"}

// NewReader reads the CLI's JSON lines, and the line of tokens behind them.
func (Copilot) NewReader(Call) Reader { return &copilotReader{} }

// copilotRecord is one line. Only what is used is named.
type copilotRecord struct {
	Type      string                    `json:"type"`
	SessionID string                    `json:"sessionId"`
	Exit      *int                      `json:"exitCode"`
	Data      copilotData               `json:"data"`
	Models    map[string]copilotMetrics `json:"modelMetrics"` // the line of tokens, which has no type
}

type copilotData struct {
	Content   string                     `json:"content"`
	Tool      string                     `json:"toolName"`
	Arguments map[string]json.RawMessage `json:"arguments"`
	ErrorType string                     `json:"errorType"`
	Message   string                     `json:"message"`
	Status    count                      `json:"statusCode"`
	Outcome   string                     `json:"outcome"`
}

// copilotMetrics counts one model: input with what was cached, output with thoughts.
type copilotMetrics struct {
	Usage struct {
		Input     count `json:"inputTokens"`
		Output    count `json:"outputTokens"`
		Read      count `json:"cacheReadTokens"`
		Reasoning count `json:"reasoningTokens"`
	} `json:"usage"`
}
