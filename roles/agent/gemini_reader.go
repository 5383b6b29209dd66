package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// geminiReader follows stream-json: one JSON object a line, among which the
// CLI's own notices and whatever a shell child managed to print may stand.
type geminiReader struct {
	session string
	failure string // the last error record, a warning that ended the run included
	cut     bool   // some line was too long to be read whole
	result  *geminiResult
}

// geminiRecord is one line. Only what is used is named.
type geminiRecord struct {
	Type       string                     `json:"type"`
	SessionID  string                     `json:"session_id"`
	ToolName   string                     `json:"tool_name"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	Message    string                     `json:"message"`
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
	case "tool_use":
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
	return res
}

// reason says why the call is not finished. The exit code alone proves nothing:
// the CLI also ends with 0 on a signal, on a blocked or empty answer, and when
// it stops a model that goes round in circles.
func (r *geminiReader) reason(exit int) string {
	switch {
	case r.result == nil && exit != 0:
		return "gemini ended without a result record: " + geminiExit(exit)
	case r.result == nil && r.cut:
		return "gemini ended without a result record that could be read: a line was too long"
	case r.result == nil:
		return "gemini ended without a result record, as it does when it is stopped"
	case r.result.Error != nil && r.result.Error.Message != "":
		return geminiSaid(exit, r.result.Error.Message)
	case r.failure != "":
		return geminiSaid(exit, r.failure)
	case exit != 0:
		return "gemini failed: " + geminiExit(exit)
	case r.result.Status != "success":
		return fmt.Sprintf("gemini reports the status %q", label(r.result.Status, maxName))
	}
	return unmoved(r.result.Stats.usage(), r.result.Stats.ToolCalls)
}

// unmoved says why a run that calls itself a success did nothing. The task is
// in a file, so a run that used no tool never read it; that is also the only
// trace of an answer that the token limit cut off at the first turn.
func unmoved(usage []Usage, tools count) string {
	counted := slices.ContainsFunc(usage, func(u Usage) bool { return u.Total != nil && *u.Total > 0 })
	switch {
	case !counted:
		return "gemini ended without a model request that counted a token"
	case tools.n != nil && *tools.n == 0:
		return "gemini ended without using a tool, so it never read its task"
	}
	return ""
}

// geminiSaid joins the CLI's exit code and its own words.
func geminiSaid(exit int, words string) string {
	words = strings.TrimSuffix(label(words, maxReason), ".")
	if exit == 0 {
		return "gemini stopped: " + words
	}
	return fmt.Sprintf("gemini failed, %s: %s", geminiExit(exit), words)
}

// geminiExit explains an exit code. Those of refused requests are the HTTP
// status modulo 256.
func geminiExit(exit int) string {
	switch exit {
	case 41:
		return "exit code 41 (no usable login or key)"
	case 42:
		return "exit code 42 (no prompt reached it)"
	case 53:
		return "exit code 53 (too many turns)"
	case 55:
		return "exit code 55 (the folder is not trusted)"
	case 144, 145, 147, 148, 173:
		return fmt.Sprintf("exit code %d (HTTP status %d)", exit, exit+256)
	case 244, 246, 247, 248:
		return fmt.Sprintf("exit code %d (HTTP status %d)", exit, exit+256)
	}
	return fmt.Sprintf("exit code %d", exit)
}

// usage has one row a model.
func (s geminiStats) usage() []Usage {
	rows := make([]Usage, 0, len(s.Models))
	for model, t := range s.Models {
		rows = append(rows, Usage{
			Model: label(model, maxName), Input: t.Input.n, Candidates: t.Output.n, Cached: t.Cached.n, Total: t.Total.n,
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
	for _, key := range []string{"command", "file_path", "absolute_path", "path", "dir_path", "pattern", "query"} {
		var value string
		if json.Unmarshal(parameters[key], &value) == nil && value != "" {
			return action(name, value)
		}
	}
	return action(name, "")
}
