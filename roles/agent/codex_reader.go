package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"abl/internal/outcome"
	"abl/internal/tokens"
)

// codexReader follows the JSON lines of codex exec.
type codexReader struct {
	model   string
	session string
	tools   int
	cut     bool
	last    string // the last error record
	result  *codexRecord
	speech
}

// Line implements Reader.
func (r *codexReader) Line(line []byte, cut bool) string {
	if cut {
		r.cut = true
		return ""
	}
	if len(line) == 0 || line[0] != '{' {
		return ""
	}
	var rec codexRecord
	if err := json.Unmarshal(line, &rec); err != nil && !oddType(err) {
		return ""
	}
	switch rec.Type {
	case "thread.started":
		r.session = label(rec.ThreadID, maxName)
	case "item.started", "item.completed":
		return r.item(rec.Type == "item.started", rec.Item)
	case "error":
		r.last = label(rec.Message, maxReason)
	case "turn.completed", "turn.failed":
		r.result = &rec
	}
	return ""
}

// item takes one thing that the model said or did. An item of the type error is
// a notice.
func (r *codexReader) item(started bool, raw json.RawMessage) string {
	var item struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Command string `json:"command"`
		Query   string `json:"query"`
		Changes []struct {
			Path string `json:"path"`
		} `json:"changes"`
	}
	if err := json.Unmarshal(raw, &item); err != nil && !oddType(err) {
		return ""
	}
	switch item.Type {
	case "", "error", "reasoning", "todo_list":
		return ""
	case "agent_message":
		if !started {
			r.pause() // each message is whole
			r.say(item.Text)
		}
		return ""
	}
	if !started {
		r.tools++ // also of what tells only its end
	}
	r.pause()
	if item.Type == "command_execution" {
		if !started {
			return ""
		}
		return action("shell", codexCommand(item.Command))
	}
	object := item.Query
	if len(item.Changes) > 0 {
		object = item.Changes[0].Path
	}
	return action(item.Type, object)
}

// codexCommand is a command without the shell that the CLI puts around it.
func codexCommand(command string) string {
	shell, rest, ok := strings.Cut(command, " -lc ")
	if !ok || !strings.HasPrefix(shell, "/") || strings.ContainsAny(shell, " \t\n") {
		return command
	}
	if plain, err := strconv.Unquote(rest); err == nil {
		return plain
	}
	return strings.Trim(rest, "'")
}

// Result implements Reader.
func (r *codexReader) Result(exit int) Result {
	res := Result{Session: r.session, Requests: -1}
	if r.result != nil && r.result.Usage != nil {
		t := r.result.Usage
		c := tokens.Count{Input: t.Input.n, Cached: t.Cached.n, Candidates: t.Output.n, Thoughts: t.Reasoning.n, Total: plus(t.Input.n, t.Output.n)}
		res.Usage = []Usage{{Model: cmp.Or(label(r.model, maxName), "unknown"), Count: c.WithoutThoughts()}}
	}
	res.Reason = r.reason(exit, res.Usage)
	res.Finished = res.Reason == ""
	if !res.Finished {
		res.Trouble = codexTrouble(res.Reason)
		if r.result != nil && res.Reason == r.unmoved(res.Usage) {
			res.Trouble = outcome.Nothing
		}
	}
	return res
}

// reason says why the call is not finished.
func (r *codexReader) reason(exit int, usage []Usage) string {
	switch {
	case r.result == nil && r.cut:
		return "codex ended without a result record that could be read: a line was too long"
	case r.result == nil && r.last != "":
		return fmt.Sprintf("codex ended without a result record, with exit code %d; its last word was: %s", exit, r.last)
	case r.result == nil:
		return fmt.Sprintf("codex ended without a result record, with exit code %d", exit)
	case r.result.Type == "turn.failed":
		return "codex stopped: " + strings.TrimSuffix(label(cmp.Or(r.result.Error.Message, r.last, "no reason given"), maxReason), ".")
	case exit != 0:
		return fmt.Sprintf("codex failed with exit code %d", exit)
	}
	return r.unmoved(usage)
}

func (r *codexReader) unmoved(usage []Usage) string { return idle("codex", usage, r.tools == 0) }

// codexTrouble tells a provider's trouble from the agent's. The CLI tells it in
// words alone; of a bad request it prints the provider's own document.
func codexTrouble(reason string) outcome.Outcome {
	text := strings.ToLower(reason)
	has := func(all ...string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(text, s) })
	}
	switch {
	case has("context_length_exceeded", "context window", "exceeds the maximum length"):
		return outcome.TooLarge
	case has("insufficient_quota", "quota exceeded", "usage limit"):
		return outcome.Quota
	case has("high demand", "overloaded"):
		return outcome.Unavailable
	case has("error sending request", "waiting for network", "network error", "connection failed"):
		return outcome.Network
	}
	if _, after, ok := strings.Cut(text, "status"); ok {
		digits := strings.TrimLeft(after, ": ")
		if n, err := strconv.ParseInt(digits[:min(len(digits), 3)], 10, 64); err == nil {
			return outcome.FromHTTP(n)
		}
	}
	return ""
}
