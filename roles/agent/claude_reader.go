package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"abl/internal/outcome"
	"abl/internal/tokens"
)

// claudeReader follows stream-json; the one document of --output-format json is
// the last line of it, and read as well.
type claudeReader struct {
	session string
	stream  bool // the first record of a stream was there
	tools   int
	cut     bool
	result  *claudeRecord
	speech
}

// claudeRecord is one line. Only what is used is named.
type claudeRecord struct {
	Type      string `json:"type"`
	Subtype   string `json:"subtype"`
	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"`
	Message   struct {
		Content []struct {
			Type  string                     `json:"type"`
			Text  string                     `json:"text"`
			Name  string                     `json:"name"`
			Input map[string]json.RawMessage `json:"input"`
		} `json:"content"`
	} `json:"message"`
	IsError bool                    `json:"is_error"`
	Status  count                   `json:"api_error_status"`
	Said    string                  `json:"result"`
	Errors  []string                `json:"errors"`
	Models  map[string]claudeTokens `json:"modelUsage"`
}

// claudeTokens counts one model. Input leaves out what was read from the cache
// or written to it; output holds the thoughts.
type claudeTokens struct {
	Input    count `json:"inputTokens"`
	Output   count `json:"outputTokens"`
	Read     count `json:"cacheReadInputTokens"`
	Written  count `json:"cacheCreationInputTokens"`
	Thinking count `json:"thinkingTokens"`
}

// Line implements Reader.
func (r *claudeReader) Line(line []byte, cut bool) string {
	if cut {
		r.cut = true
		return ""
	}
	if len(line) == 0 || line[0] != '{' {
		return ""
	}
	var rec claudeRecord
	if err := json.Unmarshal(line, &rec); err != nil && !oddType(err) {
		return ""
	}
	switch rec.Type {
	case "system":
		if rec.Subtype == "init" {
			r.stream, r.session = true, label(rec.SessionID, maxName)
		}
	case "assistant":
		return r.turn(rec)
	case "result":
		r.result = &rec
		r.session = cmp.Or(r.session, label(rec.SessionID, maxName))
	}
	return ""
}

// turn takes what the model said and did in one answer.
func (r *claudeReader) turn(rec claudeRecord) (did string) {
	for _, part := range rec.Message.Content {
		switch {
		case part.Type == "text" && rec.Parent == "":
			r.say(part.Text)
		case part.Type == "tool_use":
			r.tools++
			r.pause()
			did = toolAction(part.Name, part.Input)
		}
	}
	return did
}

// Result implements Reader.
func (r *claudeReader) Result(exit int) Result {
	res := Result{Session: r.session, Requests: -1}
	if r.result != nil {
		res.Usage = claudeUsage(r.result.Models)
	}
	res.Reason = r.reason(exit, res.Usage)
	res.Finished = res.Reason == ""
	switch {
	case res.Finished:
	case r.result != nil && res.Reason == r.unmoved(res.Usage):
		res.Trouble = outcome.Nothing
	case r.result != nil && r.result.IsError:
		res.Trouble = claudeTrouble(*r.result)
	}
	return res
}

// reason says why the call is not finished. The subtype is "success" on most
// errors too, and the exit code 0 on a signal.
func (r *claudeReader) reason(exit int, usage []Usage) string {
	switch {
	case r.result == nil && r.cut:
		return "claude ended without a result record that could be read: a line was too long"
	case r.result == nil:
		return fmt.Sprintf("claude ended without a result record, with exit code %d", exit)
	case r.result.IsError || r.result.Subtype != "success":
		return "claude stopped: " + strings.TrimSuffix(r.result.words(), ".")
	case exit != 0:
		return fmt.Sprintf("claude failed with exit code %d", exit)
	}
	return r.unmoved(usage)
}

// words is what a result says of its error.
func (rec claudeRecord) words() string {
	said := rec.Said
	if rec.Subtype != "success" && len(rec.Errors) > 0 {
		said = rec.Subtype + ": " + strings.Join(rec.Errors, "; ")
	}
	return label(cmp.Or(said, rec.Subtype, "no reason given"), maxReason)
}

// unmoved says why a run that calls itself a success did nothing.
func (r *claudeReader) unmoved(usage []Usage) string {
	return idle("claude", usage, r.stream && r.tools == 0)
}

func claudeUsage(models map[string]claudeTokens) []Usage {
	rows := make([]Usage, 0, len(models))
	for model, t := range models {
		c := tokens.Count{Input: plus(t.Input.n, t.Read.n, t.Written.n), Cached: t.Read.n, Candidates: t.Output.n, Thoughts: t.Thinking.n}
		c.Total = plus(c.Input, t.Output.n)
		rows = append(rows, Usage{Model: label(model, maxName), Count: c.WithoutThoughts()})
	}
	return sorted(rows)
}

// claudeTrouble tells a provider's trouble from the agent's.
func claudeTrouble(rec claudeRecord) outcome.Outcome {
	text := strings.ToLower(rec.words())
	has := func(all ...string) bool {
		return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(text, s) })
	}
	switch {
	case has("prompt is too long", "context window"):
		return outcome.TooLarge
	case has("credit balance", "usage limit"):
		return outcome.Quota
	case has("not logged in", "invalid api key"):
		return outcome.Refused
	case has("econnrefused", "econnreset", "enotfound", "etimedout", "connection error"):
		return outcome.Network
	case rec.Status.n != nil:
		return outcome.FromHTTP(*rec.Status.n)
	}
	return ""
}
