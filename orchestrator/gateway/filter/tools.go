package filter

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"abl/orchestrator/gateway/meter"
)

// Tools that a provider runs itself reach the web from its side, so that "reaches
// only the model" would mean nothing while a request may ask for them.

// ownGemini are the tools that Gemini's client runs.
var ownGemini = []string{"functionDeclarations", "function_declarations"}

// ownAnthropic begin the types of the tools that Anthropic's client runs; a tool
// without a type is one, too.
var ownAnthropic = []string{"custom", "bash_", "text_editor_", "memory_", "computer_"}

// theirsOpenAI begin the types of the tools that OpenAI runs. The others are many
// and grow, so here the list is of what is refused. The shell runs in a container of
// theirs; the one that their client runs is called local_shell.
var theirsOpenAI = []string{"web_search", "file_search", "code_interpreter", "mcp", "image_generation", "shell"}

// serverTool names the first tool in a request's list that its provider would
// run, "" when there is none. A list that cannot be read is refused as such.
func serverTool(kind meter.API, raw json.RawMessage) string {
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return "a list of tools of another form"
	}
	for _, tool := range list {
		if name := serverRun(kind, tool); name != "" {
			return name
		}
	}
	return ""
}

func serverRun(kind meter.API, tool json.RawMessage) string {
	if kind == meter.Gemini {
		return serverRunGemini(tool)
	}
	const form = "a tool of another form"
	parts, err := members(tool, "type")
	if err != nil {
		return form
	}
	var name string
	if raw := parts["type"]; raw != nil && json.Unmarshal(raw, &name) != nil {
		return form
	}
	begins := func(prefix string) bool { return strings.HasPrefix(strings.ToLower(name), prefix) }
	theirs := slices.ContainsFunc(theirsOpenAI, begins)
	if kind == meter.Anthropic {
		theirs = name != "" && !slices.ContainsFunc(ownAnthropic, begins)
	}
	if theirs {
		return name
	}
	return ""
}

// serverRunGemini goes by the names of the members: each is a kind of tool.
func serverRunGemini(tool json.RawMessage) string {
	var parts map[string]json.RawMessage
	if json.Unmarshal(tool, &parts) != nil {
		return "a tool of another form"
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if !slices.Contains(ownGemini, name) {
			return name
		}
	}
	return ""
}
