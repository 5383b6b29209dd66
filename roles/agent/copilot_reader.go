package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"abl/internal/outcome"
	"abl/internal/tokens"
)

// copilotReader follows the CLI's JSON lines.
type copilotReader struct {
	tools  int
	asked  int64 // requests that a model answered
	cut    bool
	failed *copilotData // the last error of the session
	result *copilotRecord
	used   map[string]copilotMetrics
	speech
}

// Line implements Reader.
func (r *copilotReader) Line(line []byte, cut bool) string {
	if cut {
		r.cut = true
		return ""
	}
	if len(line) == 0 || line[0] != '{' {
		return ""
	}
	var rec copilotRecord
	if err := json.Unmarshal(line, &rec); err != nil && !oddType(err) {
		return ""
	}
	switch rec.Type {
	case "":
		if rec.Models != nil {
			r.used = rec.Models
		}
	case "assistant.message":
		if rec.Data.Content != "" {
			r.pause()
			r.say(rec.Data.Content)
		}
	case "model.call_finished":
		if rec.Data.Outcome == "success" {
			r.asked++
		}
	case "tool.execution_start":
		r.tools++
		r.pause()
		return toolAction(rec.Data.Tool, rec.Data.Arguments)
	case "session.error":
		r.failed = &rec.Data
	case "result":
		r.result = &rec
	}
	return ""
}

// Result implements Reader.
func (r *copilotReader) Result(exit int) Result {
	res := Result{Requests: -1}
	if r.result != nil {
		res.Session = label(r.result.SessionID, maxName)
	}
	res.Usage, res.Requests = copilotUsage(r.used), r.asked
	res.Reason = r.reason(exit, res.Usage)
	res.Finished = res.Reason == ""
	switch {
	case res.Finished:
	case r.result != nil && res.Reason == r.unmoved(res.Usage):
		res.Trouble = outcome.Nothing
	case r.failed != nil:
		res.Trouble = copilotTrouble(*r.failed)
	}
	return res
}

// reason says why the call is not finished. The exit code is 0 on a signal too.
func (r *copilotReader) reason(exit int, usage []Usage) string {
	switch {
	case r.failed != nil:
		return "copilot stopped: " + strings.TrimSuffix(r.failed.words(), ".")
	case r.result == nil && r.cut:
		return "copilot ended without a result record that could be read: a line was too long"
	case r.result == nil && exit == 0:
		return "copilot ended without a result record, as it does when it is stopped"
	case r.result == nil:
		return fmt.Sprintf("copilot ended without a result record, with exit code %d", exit)
	case exit != 0:
		return fmt.Sprintf("copilot failed with exit code %d", exit)
	case r.result.Exit == nil || *r.result.Exit != 0:
		return "copilot reports that it failed"
	}
	return r.unmoved(usage)
}

func (d copilotData) words() string {
	return label(cmp.Or(d.Message, d.ErrorType, "no reason given"), maxReason)
}

// unmoved says why a run that calls itself a success did nothing. Started in
// another way than abl's the CLI prints no tokens, and is not judged by them.
func (r *copilotReader) unmoved(usage []Usage) string {
	switch {
	case r.asked == 0:
		return "copilot ended without a model request"
	case r.used == nil && r.tools > 0:
		return ""
	case r.used == nil:
		return "copilot ended without using a tool, so it did nothing of its task"
	}
	return idle("copilot", usage, r.tools == 0)
}

func copilotUsage(models map[string]copilotMetrics) (rows []Usage) {
	for model, m := range models {
		t := m.Usage
		c := tokens.Count{Input: t.Input.n, Cached: t.Read.n, Candidates: t.Output.n, Thoughts: t.Reasoning.n, Total: plus(t.Input.n, t.Output.n)}
		rows = append(rows, Usage{Model: label(model, maxName), Count: c.WithoutThoughts()})
	}
	return sorted(rows)
}

// copilotTrouble tells a provider's trouble from the agent's.
func copilotTrouble(d copilotData) outcome.Outcome {
	text := strings.ToLower(d.Message)
	switch {
	case strings.Contains(text, "could not connect"), strings.Contains(text, "error reading a body from connection"):
		return outcome.Network
	case strings.Contains(text, "context_length_exceeded"), strings.Contains(text, "maximum context length"):
		return outcome.TooLarge
	case strings.Contains(text, "insufficient_quota"):
		return outcome.Quota
	case d.Status.n != nil:
		return outcome.FromHTTP(*d.Status.n)
	}
	return ""
}
