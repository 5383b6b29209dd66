package agent

import (
	"cmp"
	"slices"
	"strings"
)

// Names of parts of JSON records, as used by opencode, Qwen Code, Pi, Cline and abl's agents.
var (
	callTypes   = strings.Fields("tool tool_use tool_call toolCall function_call")
	resultTypes = strings.Fields("tool_result toolResult function_call_output tool_execution_end")
	saidTypes   = strings.Fields("text message assistant say agent_message")
	innerNames  = strings.Fields("message part parts item data content")
	othersRoles = strings.Fields("user system tool toolResult developer")
	// Records that repeat the content of other records.
	repeats = strings.Fields("delta update message_start turn_start turn_end agent_end")
)

// read returns the messages of a JSON record in a common form: text, tool calls and their results.
// It returns nothing for another form.
func (r *customReader) read(rec map[string]any) []Message {
	kind := textAt(rec, "type")
	if slices.ContainsFunc(repeats, func(word string) bool { return strings.Contains(kind, word) }) {
		return nil
	}
	if failure := failureOf(rec["error"]); failure != "" {
		r.failure = label(failure, maxReason)
	}
	name := textAt(rec, "tool", "name", "toolName", "tool_name")
	switch {
	case slices.Contains(callTypes, kind) && name != "":
		return r.called(name, rec)
	case slices.Contains(resultTypes, kind):
		failed, _ := cmp.Or(rec["is_error"], rec["isError"]).(bool)
		return r.result(failed, plainText(cmp.Or(rec["content"], rec["output"], rec["result"])))
	case slices.Contains(othersRoles, textAt(rec, "role")):
		return nil
	}
	if text := textAt(rec, "text", "content", "message"); slices.Contains(saidTypes, kind) && text != "" {
		r.say(text + "\n")
		return r.message(Said, text, "")
	}
	var all []Message
	for _, name := range innerNames {
		switch inner := rec[name].(type) {
		case map[string]any:
			all = append(all, r.read(inner)...)
		case []any:
			for _, one := range inner {
				if part, is := one.(map[string]any); is {
					all = append(all, r.read(part)...)
				}
			}
		}
	}
	return all
}

// called returns the messages for a tool call, with its result if the record has one.
func (r *customReader) called(name string, rec map[string]any) []Message {
	from := rec
	state, done := rec["state"].(map[string]any)
	if done {
		from = state
	}
	given, _ := cmp.Or(from["input"], from["args"], from["arguments"], from["parameters"]).(map[string]any)
	if path := textAt(given, "filePath"); path != "" && textAt(given, "path") == "" {
		given["path"] = path
	}
	all := r.tool(name, given)
	if output := textAt(state, "output", "error"); output != "" {
		all = append(all, r.result(textAt(state, "status") == "error", output)...)
	}
	return all
}

// textAt returns the first text of several names.
func textAt(rec map[string]any, names ...string) string {
	for _, name := range names {
		if text, _ := rec[name].(string); text != "" {
			return text
		}
	}
	return ""
}

// failureOf returns the words of an error, which is a text or an object.
func failureOf(v any) string {
	rec, _ := v.(map[string]any)
	data, _ := rec["data"].(map[string]any)
	text, _ := v.(string)
	return cmp.Or(text, textAt(data, "message"), textAt(rec, "message", "name"))
}

// plainText returns the text of a content: a string, a block, or a list of blocks.
func plainText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case map[string]any:
		return cmp.Or(textAt(v, "text", "output"), plainText(v["content"]))
	case []any:
		var all strings.Builder
		for _, one := range v {
			all.WriteString(plainText(one))
		}
		return all.String()
	}
	return ""
}
