package agent

import "abl/internal/helper"

// claudeTools are those that stay in the box and ask no other model.
const claudeTools = "Bash,BashOutput,KillShell,Edit,Glob,Grep,Read,Write"

// Claude is Anthropic's Claude Code.
type Claude struct{}

// Name is "claude".
func (Claude) Name() string { return "claude" }

// Image is the image that carries the CLI.
func (Claude) Image() string { return "claude" }

// DefaultModel is a whole name: the gateway lets one model through, and by an
// alias the CLI would ask for another.
func (Claude) DefaultModel() string { return "claude-sonnet-4-5" }

// Provider is Anthropic's Messages API.
func (Claude) Provider() Provider {
	return Provider{API: "anthropic", KeyVar: "ANTHROPIC_API_KEY", BaseVar: "ANTHROPIC_BASE_URL"}
}

// Command is the headless command line. Settings, hooks, servers and
// instructions that lie in the workspace are not loaded: "user" is the box's
// empty home.
func (a Claude) Command(c Call) (Command, error) {
	model, err := model(a, c)
	if err != nil {
		return Command{}, err
	}
	argv := []string{
		"claude", "-p", "--model", model,
		"--dangerously-skip-permissions",
		"--output-format", "stream-json", "--verbose",
		"--setting-sources", "user", "--strict-mcp-config",
		"--tools", claudeTools,
	}
	if c.Session != "" {
		argv = append(argv, "--session-id", c.Session)
	}
	return Command{Argv: argv, Env: claudeEnv(model)}, nil
}

// NewReader reads the CLI's stream-json.
func (Claude) NewReader(Call) Reader { return &claudeReader{} }

// claudeEnv keeps the CLI to its provider and to the one model, for its side
// questions too.
func claudeEnv(model string) map[string]string {
	return map[string]string{
		"HOME": helper.Home,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
		"CLAUDE_CODE_DISABLE_FILE_MENTIONS":        "1", // an @ in the prompt would add a file
		"CLAUDE_CODE_MAX_RETRIES":                  "2",
		"DISABLE_AUTOUPDATER":                      "1",
		"ANTHROPIC_DEFAULT_HAIKU_MODEL":            model,
		"CLAUDE_CODE_SUBAGENT_MODEL":               model,
		"NO_COLOR":                                 "1",
	}
}
