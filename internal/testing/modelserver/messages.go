package modelserver

import (
	"encoding/json"
	"net/http"
)

// messages is a request to Anthropic's Messages API.
type messages struct {
	conversation
}

func (m *messages) rules() rules { return anthropicRules }

func (m *messages) calls() bool { return m.Tools.has("Bash") || m.Tools.has("bash") }

// tool returns the name of the client's shell tool and its input for a command. The client is
// Claude Code or Copilot.
func (m *messages) tool(command string) (name string, input json.RawMessage) {
	if m.Tools.has("Bash") {
		input, _ = json.Marshal(map[string]any{"command": command, "description": "scripted"})
		return "Bash", input
	}
	return "bash", json.RawMessage(bash(command))
}

func (m *messages) done() (n int) {
	for _, one := range m.Messages {
		var parts []struct {
			Type string `json:"type"`
		}
		_ = json.Unmarshal(one.Content, &parts) // a string has no result
		for _, p := range parts {
			if p.Type == "tool_result" {
				n++
			}
		}
	}
	return n
}

func (m *messages) say(w http.ResponseWriter, a said) {
	blocks, stop := []map[string]any{}, "end_turn"
	if a.text != "" {
		blocks = append(blocks, map[string]any{"type": "text", "text": a.text})
	}
	name, input := m.tool(a.command)
	if a.command != "" {
		stop = "tool_use"
		blocks = append(blocks, map[string]any{"type": "tool_use", "id": "toolu_" + a.id, "name": name, "input": input})
	}
	cached := min(a.usage.Cached, a.usage.input())
	usage := map[string]any{
		"input_tokens":                a.usage.input() - cached,
		"cache_read_input_tokens":     cached,
		"cache_creation_input_tokens": 0,
		"output_tokens":               a.usage.output(),
	}
	message := map[string]any{
		"id":            "msg_" + a.id,
		"type":          "message",
		"role":          "assistant",
		"model":         a.model,
		"content":       blocks,
		"stop_reason":   stop,
		"stop_sequence": nil,
		"usage":         usage,
	}
	if !a.stream {
		writeJSON(w, http.StatusOK, message)
		return
	}
	event := stream(w)
	begin := map[string]any{
		"input_tokens":                usage["input_tokens"],
		"cache_read_input_tokens":     cached,
		"cache_creation_input_tokens": 0,
		"output_tokens":               1,
	}
	message["content"], message["stop_reason"], message["usage"] = []any{}, nil, begin
	event("message_start", map[string]any{"message": message})
	event("ping", map[string]any{})
	for i, b := range blocks {
		open, deltas := map[string]any{"type": "text", "text": ""}, []map[string]any{}
		for _, piece := range pieces(a.text) {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": piece})
		}
		if b["type"] == "tool_use" {
			open = map[string]any{"type": "tool_use", "id": b["id"], "name": b["name"], "input": map[string]any{}}
			deltas = []map[string]any{{"type": "input_json_delta", "partial_json": string(input)}}
		}
		event("content_block_start", map[string]any{"index": i, "content_block": open})
		for _, delta := range deltas {
			event("content_block_delta", map[string]any{"index": i, "delta": delta})
		}
		event("content_block_stop", map[string]any{"index": i})
	}
	if a.unended {
		return
	}
	event("message_delta", map[string]any{
		"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": a.usage.output()},
	})
	event("message_stop", map[string]any{})
}
