package filter

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"abl/internal/gateway/meter"
)

// Tools that a provider runs itself reach the web from its side, so that "reaches
// only the model" would mean nothing while a request may ask for them. So a tool
// passes only if its type is one of those that the client runs.

// ownTools are those types; one that ends in "_" begins a type with a date. Anthropic's
// client runs a tool without a type, too.
var ownTools = map[meter.API][]string{
	meter.Anthropic: {"", "custom", "bash_", "text_editor_", "memory_", "computer_"},
	meter.Responses: {"function", "custom", "local_shell", "namespace"},
	meter.Chat:      {"function", "custom"},
}

// oddForm stands for a tool that cannot be read.
const oddForm = "of another form"

// deepest is how far tools may lie in one another.
const deepest = 3

// providersTool names the first tool of a request that its client would not run, ""
// when there is none. Later models of Anthropic and OpenAI are told of tools amid the
// conversation, too.
func providersTool(kind meter.API, members map[string]json.RawMessage) string {
	if kind == meter.Gemini {
		return each(members["tools"], geminiTool)
	}
	tool := func(raw json.RawMessage) string { return oneTool(kind, raw, deepest) }
	if odd := each(members["tools"], tool); odd != "" || kind == meter.Chat {
		return odd
	}
	if kind == meter.Anthropic {
		return each(members["messages"], func(turn json.RawMessage) string { return addedTool(turn, tool) })
	}
	if len(members["input"]) > 0 && members["input"][0] == '"' {
		return ""
	}
	return each(members["input"], func(item json.RawMessage) string {
		parts, err := membersOf(item)
		if err != "" {
			return err
		}
		if kind := text(parts["type"]); kind == "item_reference" { // to what the provider has stored
			return kind
		}
		return each(parts["tools"], tool)
	})
}

// addedTool is one that a turn of a conversation with Anthropic's API adds.
func addedTool(turn json.RawMessage, tool func(json.RawMessage) string) string {
	parts, err := membersOf(turn)
	if err != "" {
		return err
	}
	if len(parts["content"]) == 0 || parts["content"][0] != '[' {
		return ""
	}
	return each(parts["content"], func(block json.RawMessage) string {
		parts, err := membersOf(block)
		if err != "" || none(parts["tool"]) {
			return err
		}
		if parts, err = membersOf(parts["tool"]); err != "" {
			return err
		}
		if text(parts["type"]) == "tool_reference" {
			return ""
		}
		return tool(parts["definition"])
	})
}

// oneTool names a tool that the client does not run.
func oneTool(kind meter.API, raw json.RawMessage, depth int) string {
	parts, err := membersOf(raw)
	name := text(parts["type"])
	if err != "" || depth == 0 || name == "" && parts["type"] != nil {
		return oddForm
	}
	own := slices.ContainsFunc(ownTools[kind], func(t string) bool {
		return t == name || strings.HasSuffix(t, "_") && strings.HasPrefix(name, t)
	})
	if !own {
		return cmp.Or(name, oddForm)
	}
	return each(parts["tools"], func(inner json.RawMessage) string { return oneTool(kind, inner, depth-1) })
}

// geminiTool goes by the names of the members: each is a kind of tool.
func geminiTool(raw json.RawMessage) string {
	parts, err := membersOf(raw)
	if err != "" {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		if name != "functionDeclarations" && name != "function_declarations" {
			return name
		}
	}
	return ""
}

// each looks at the entries of a list until one is odd.
func each(raw json.RawMessage, odd func(json.RawMessage) string) string {
	if none(raw) {
		return ""
	}
	name := ""
	if err := values(raw, '[', func(_ string, one []byte) error {
		if name == "" {
			name = odd(one)
		}
		return nil
	}); err != nil {
		return oddForm
	}
	return name
}

// membersOf are those of a part of the body; odd says that they cannot be read.
func membersOf(raw json.RawMessage) (parts map[string]json.RawMessage, odd string) {
	parts, err := members(raw)
	if err != nil {
		return nil, oddForm
	}
	return parts, ""
}

// text is a value when it is one, else "".
func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
