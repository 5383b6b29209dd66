package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// chat is a request to OpenAI's Chat API.
type chat struct {
	conversation
}

func (c *chat) rules() rules { return chatRules }

func (c *chat) calls() bool { return c.Tools.shell() != "" }

func (c *chat) done() (n int) {
	for _, one := range c.Messages {
		if one.Role == "tool" {
			n++
		}
	}
	return n
}

func (c *chat) say(w http.ResponseWriter, a said) {
	message, finish := map[string]any{"role": "assistant", "content": a.text}, "stop"
	if a.command != "" {
		finish = "tool_calls"
		message["tool_calls"] = []any{map[string]any{
			"index":    0,
			"id":       "call_" + a.id,
			"type":     "function",
			"function": map[string]any{"name": c.Tools.shell(), "arguments": c.Tools.arguments(a.command)},
		}}
	}
	usage := map[string]any{
		"prompt_tokens": a.usage.input(), "prompt_tokens_details": map[string]any{"cached_tokens": a.usage.Cached},
		"completion_tokens": a.usage.output(), "completion_tokens_details": map[string]any{"reasoning_tokens": a.usage.Thoughts},
		"total_tokens": a.usage.input() + a.usage.output(),
	}
	answer := func(object string, choices ...any) map[string]any {
		return map[string]any{
			"id":      "chatcmpl-" + a.id,
			"object":  object,
			"created": 0,
			"model":   a.model,
			"choices": append([]any{}, choices...),
		}
	}
	if !a.stream {
		whole := answer("chat.completion", map[string]any{"index": 0, "message": message, "finish_reason": finish})
		whole["usage"] = usage
		writeJSON(w, http.StatusOK, whole)
		return
	}
	event := stream(w)
	const piece = "chat.completion.chunk"
	event("", answer(piece, map[string]any{"index": 0, "delta": message, "finish_reason": nil}))
	if a.unended {
		return
	}
	event("", answer(piece, map[string]any{"index": 0, "delta": map[string]any{}, "finish_reason": finish}))
	last := answer(piece)
	last["usage"] = usage
	event("", last)
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// bash returns the arguments of the shell tools of Copilot, opencode and Qwen Code for a command.
func bash(command string) string {
	args, _ := json.Marshal(map[string]any{
		"command":      command,
		"description":  "scripted",
		"mode":         "sync",
		"initial_wait": patience / 1000,

		"is_background": false,
	})
	return string(args)
}
