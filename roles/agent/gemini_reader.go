package agent

import (
	"encoding/json"
	"errors"
	"strings"

	"abl/internal/outcome"
	"abl/internal/tokens"
)

// geminiReader follows stream-json: one JSON object a line, among which the
// CLI's own notices and whatever a shell child managed to print may stand.
type geminiReader struct {
	session string
	failure string // the last error record, a warning that ended the run included
	cut     bool   // some line was too long to be read whole
	result  *geminiResult
	speech
}

// geminiRecord is one line. Only what is used is named.
type geminiRecord struct {
	Type       string                     `json:"type"`
	SessionID  string                     `json:"session_id"`
	ToolName   string                     `json:"tool_name"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	Message    string                     `json:"message"`
	Role       string                     `json:"role"`
	Content    string                     `json:"content"`
	geminiResult
}

// geminiResult is the part of a record that only a result has.
type geminiResult struct {
	Status string       `json:"status"`
	Error  *geminiError `json:"error"`
	Stats  geminiStats  `json:"stats"`
}

type geminiError struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

// geminiStats counts a session. input_tokens includes cached ones, and
// output_tokens are candidates alone: thoughts and tool prompts are only in the
// total, and so not told apart.
type geminiStats struct {
	ToolCalls count                   `json:"tool_calls"`
	Models    map[string]geminiTokens `json:"models"`
}

type geminiTokens struct {
	Total  count `json:"total_tokens"`
	Input  count `json:"input_tokens"`
	Output count `json:"output_tokens"`
	Cached count `json:"cached"`
}

// Line implements Reader.
func (r *geminiReader) Line(line []byte, cut bool) string {
	if cut {
		r.cut = true
		return ""
	}
	if len(line) == 0 || line[0] != '{' {
		return ""
	}
	var rec geminiRecord
	if err := json.Unmarshal(line, &rec); err != nil && !oddType(err) {
		return ""
	}
	switch rec.Type {
	case "init":
		r.session = label(rec.SessionID, maxName)
	case "message":
		if rec.Role == "assistant" {
			r.say(rec.Content)
		}
	case "tool_use":
		r.pause()
		return geminiAction(rec.ToolName, rec.Parameters)
	case "error":
		r.failure = label(rec.Message, maxReason)
	case "result":
		r.result = &rec.geminiResult
	}
	return ""
}

// oddType reports whether a line was JSON of the right outline in which some
// field has another type than this version of the CLI gives it; what could be
// read of it still counts.
func oddType(err error) bool {
	var odd *json.UnmarshalTypeError
	return errors.As(err, &odd)
}

// Result implements Reader.
func (r *geminiReader) Result(exit int) Result {
	res := Result{Session: r.session, Requests: -1}
	if r.result != nil {
		res.Usage = r.result.Stats.usage()
	}
	res.Reason = r.reason(exit)
	res.Finished = res.Reason == ""
	if !res.Finished {
		res.Trouble = geminiTrouble(exit, res.Reason)
		if r.result != nil && res.Reason == unmoved(r.result.Stats.usage(), r.result.Stats.ToolCalls) {
			res.Trouble = outcome.Nothing
		}
	}
	return res
}

// usage has one row a model.
func (s geminiStats) usage() []Usage {
	rows := make([]Usage, 0, len(s.Models))
	for model, t := range s.Models {
		rows = append(rows, Usage{
			Model: label(model, maxName),
			Count: tokens.Count{Input: t.Input.n, Candidates: t.Output.n, Cached: t.Cached.n, Total: t.Total.n},
		})
	}
	return sorted(rows)
}

// geminiAction names a tool and the one parameter that says most about it.
func geminiAction(tool string, parameters map[string]json.RawMessage) string {
	name := strings.TrimSuffix(tool, "_command")
	if name == "run_shell" {
		name = "shell"
	}
	return toolAction(name, parameters)
}
