package modelserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
)

// responses is a request to OpenAI's Responses API.
type responses struct {
	Model  string   `json:"model"`
	Stream bool     `json:"stream"`
	Tools  declared `json:"tools"`
	Input  items    `json:"input"`
}

// items are the items of an input.
type items []item

type item struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Call    string          `json:"call_id"`
	Content json.RawMessage `json:"content"`
	Tools   []struct {
		Tools declared `json:"tools"` // of a namespace
	} `json:"tools"`
}

// UnmarshalJSON reads a list of items. A string is a message of the user.
func (l *items) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		*l = items{{Role: "user", Content: slices.Clone(data)}}
		return nil
	}
	return json.Unmarshal(data, (*[]item)(l))
}

func (r *responses) asked() (string, bool) { return r.Model, r.Stream }
func (r *responses) rules() rules          { return responsesRules }
func (r *responses) calls() bool {
	return r.Tools.has(plainTool) || r.Tools.has(bashTool) || r.coded()
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
			if space.Tools.has(codeTool) {
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
	if r.Tools.has(bashTool) {
		call["name"], call["arguments"] = bashTool, bash(a.command)
	}
	return call
}

// patience is how long the client waits for a command, in milliseconds.
const patience = 30_000

func (r *responses) say(w http.ResponseWriter, a said) {
	var items []map[string]any
	if a.text != "" {
		items = append(items, map[string]any{"type": "message", "id": "msg_" + a.id, "role": "assistant",
			"status":  "completed",
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
	send, number := stream(w), 0
	event := func(name string, fields map[string]any) {
		fields["sequence_number"] = number
		number++
		send(name, fields)
	}
	event("response.created", map[string]any{"response": answer("in_progress", []any{})})
	event("response.in_progress", map[string]any{"response": answer("in_progress", []any{})})
	for i, item := range items {
		if item["type"] == "message" {
			streamText(event, i, item, a.text)
		} else {
			event("response.output_item.added", map[string]any{"output_index": i, "item": item})
		}
		event("response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	if !a.unended {
		event("response.completed", map[string]any{"response": whole})
	}
}

// streamText sends the events of a message's text.
func streamText(event func(string, map[string]any), at int, message map[string]any, text string) {
	begun := maps.Clone(message)
	begun["status"], begun["content"] = "in_progress", []any{}
	event("response.output_item.added", map[string]any{"output_index": at, "item": begun})
	part := func(text string) map[string]any {
		return map[string]any{
			"output_index":  at,
			"content_index": 0,
			"item_id":       message["id"],
			"part":          map[string]any{"type": "output_text", "text": text, "annotations": []any{}},
		}
	}
	of := func(name, text string) map[string]any {
		return map[string]any{"output_index": at, "content_index": 0, "item_id": message["id"], name: text}
	}
	event("response.content_part.added", part(""))
	for _, piece := range pieces(text) {
		event("response.output_text.delta", of("delta", piece))
	}
	event("response.output_text.done", of("text", text))
	event("response.content_part.done", part(text))
}
