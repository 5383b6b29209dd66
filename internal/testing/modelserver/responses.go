package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// responses is a request to OpenAI's Responses API.
type responses struct {
	Model  string   `json:"model"`
	Stream bool     `json:"stream"`
	Tools  declared `json:"tools"`
	Input  []struct {
		Type    string          `json:"type"`
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
		Tools   []struct {
			Tools declared `json:"tools"` // of a namespace
		} `json:"tools"`
	} `json:"input"`
}

func (r *responses) asked() (string, bool) { return r.Model, r.Stream }
func (r *responses) rules() rules          { return responsesRules }
func (r *responses) calls() bool {
	return r.Tools.have(plainTool) || r.Tools.have(bashTool) || r.coded()
}

// The client's shell tools: a function, or, with later models, a function that JavaScript code
// calls. The code is the argument of another tool.
const (
	plainTool = "exec_command"
	codeTool  = "exec"
	bashTool  = "bash" // of another client
)

// coded reports whether the client expects JavaScript that calls its functions.
func (r *responses) coded() bool {
	for _, one := range r.Input {
		for _, space := range one.Tools {
			if space.Tools.have(codeTool) {
				return true
			}
		}
	}
	return false
}

func (r *responses) prompt() string {
	var b strings.Builder
	for _, one := range r.Input {
		if one.Role == "user" {
			b.WriteString(texts(one.Content))
		}
	}
	return b.String()
}

func (r *responses) done() (n int) {
	for _, one := range r.Input {
		if strings.HasSuffix(one.Type, "_output") {
			n++
		}
	}
	return n
}

// call returns an item that makes the client run a command.
func (r *responses) call(a said) map[string]any {
	args, _ := json.Marshal(map[string]any{"cmd": a.command, "yield_time_ms": patience})
	call := map[string]any{"id": "fc_" + a.id, "call_id": "call_" + a.id, "status": "completed"}
	if r.coded() {
		call["type"], call["name"], call["namespace"] = "custom_tool_call", codeTool, "functions"
		call["input"] = fmt.Sprintf("const ran = await tools.%s(%s);\ntext(ran.output);\n", plainTool, args)
		return call
	}
	call["type"], call["name"], call["arguments"] = "function_call", plainTool, string(args)
	if r.Tools.have(bashTool) {
		call["name"], call["arguments"] = bashTool, bash(a.command)
	}
	return call
}

// patience is how long the client waits for a command, in milliseconds.
const patience = 30_000

func (r *responses) say(w http.ResponseWriter, a said) {
	var items []map[string]any
	if a.text != "" {
		items = append(items, map[string]any{"type": "message", "id": "msg_" + a.id, "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": a.text, "annotations": []any{}}}})
	}
	if a.command != "" {
		items = append(items, r.call(a))
	}
	answer := func(status string, output any) map[string]any {
		return map[string]any{
			"id":         "resp_" + a.id,
			"object":     "response",
			"created_at": 0,
			"model":      a.model,
			"status":     status,
			"output":     output,
		}
	}
	whole := answer("completed", items)
	whole["usage"] = map[string]any{
		"input_tokens": a.usage.input(), "input_tokens_details": map[string]any{"cached_tokens": a.usage.Cached},
		"output_tokens": a.usage.output(), "output_tokens_details": map[string]any{"reasoning_tokens": a.usage.Thoughts},
		"total_tokens": a.usage.input() + a.usage.output(),
	}
	if !a.stream {
		writeJSON(w, http.StatusOK, whole)
		return
	}
	event := stream(w)
	event("response.created", map[string]any{"response": answer("in_progress", []any{})})
	for i, item := range items {
		event("response.output_item.added", map[string]any{"output_index": i, "item": item})
		if item["type"] == "message" {
			event("response.output_text.delta", map[string]any{
				"output_index":  i,
				"content_index": 0,
				"item_id":       item["id"],
				"delta":         a.text,
			})
		}
		event("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	if !a.unended {
		event("response.completed", map[string]any{"response": whole})
	}
}
