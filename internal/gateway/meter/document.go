package meter

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"abl/internal/tokens"
)

// document is what any of the APIs says in an event, or in an answer that is one
// piece, of what a Meter looks for.
type document struct {
	UsageMetadata  told                            `json:"usageMetadata"` // Gemini
	Candidates     []struct{ FinishReason string } `json:"candidates"`
	PromptFeedback struct{ BlockReason string }    `json:"promptFeedback"`

	Message struct { // Anthropic
		Usage told `json:"usage"`
	} `json:"message"`
	StopReason string `json:"stop_reason"`
	Delta      struct {
		StopReason string `json:"stop_reason"`
	} `json:"delta"`

	Response *response `json:"response"` // Responses
	response

	Choices []struct { // Chat
		FinishReason string `json:"finish_reason"`
		Message      struct{ Refusal string }
		Delta        struct{ Refusal string }
	} `json:"choices"`
}

// response is an answer of OpenAI's. The other APIs but Gemini have their usage at the
// same place.
type response struct {
	Usage      told                    `json:"usage"`
	Status     string                  `json:"status"`
	Incomplete struct{ Reason string } `json:"incomplete_details"`
	Output     []struct {
		Content []struct{ Refusal string }
	} `json:"output"`
}

// read takes up one document. A member of another type than it should have tells
// nothing, and nothing of what is no JSON.
func (m *Meter) read(text []byte) {
	if frames[m.api] == 0 {
		return
	}
	var d document
	_ = json.Unmarshal(text, &d)
	if bytes.Contains(text, []byte("error")) {
		m.failure = readFailure(text)
	}
	all := []response{d.response}
	if d.Response != nil {
		all = append(all, *d.Response)
	}
	m.take(d.UsageMetadata)
	delete(d.Message.Usage, "output_tokens") // that of message_start is of its first tokens only
	m.take(d.Message.Usage)
	for _, c := range d.Candidates {
		m.ended(c.FinishReason, false)
	}
	m.ended(d.PromptFeedback.BlockReason, true)
	m.ended(d.StopReason, false)
	m.ended(d.Delta.StopReason, false)
	for _, r := range all {
		m.take(r.Usage)
		m.ended(r.Status, false)
		m.ended(r.Incomplete.Reason, true)
		for _, o := range r.Output {
			for _, c := range o.Content {
				m.refused(c.Refusal)
			}
		}
	}
	for _, c := range d.Choices {
		m.ended(c.FinishReason, false)
		m.refused(c.Message.Refusal + c.Delta.Refusal)
	}
}

// ended notes how the answer ended. What comes later counts, except that nothing takes
// back what is firm: a status stands beside its reason, in either order, and a refusal
// inside an answer that is complete.
func (m *Meter) ended(word string, firm bool) {
	if word != "" && word != "in_progress" && word != "queued" && !m.firm {
		m.finish, m.firm = word, firm
	}
}

func (m *Meter) refused(words string) {
	if words != "" {
		m.ended("refusal", true)
	}
}

// Finish is how the answer ended, in the API's own word; "" while it has not said.
func (m *Meter) Finish() string {
	m.settle()
	return m.finish
}

// take notes a usage, which replaces the one before; Anthropic's two complete each other.
func (m *Meter) take(t told) {
	if t != nil && m.api != Anthropic {
		m.usage = tokens.Count{}
	}
	for place, count := range counts[m.api] {
		if n, is := t.number(place); is {
			*count(&m.usage) = &n
		}
	}
}

// Usage is what was told so far.
func (m *Meter) Usage() tokens.Count {
	m.settle()
	c := m.usage
	switch m.api {
	case Anthropic:
		if c.Input == nil {
			break
		}
		for _, n := range []*int64{c.Cached, c.Written} { // which are not in it
			c.Input = tokens.Count{Input: c.Input}.Add(tokens.Count{Input: n}).Input
		}
		if sum, told := c.All(); told {
			c.Total = &sum
		}
	case Responses, Chat:
		return c.WithoutThoughts()
	}
	return c
}

// most is the largest number that is taken for a count: no sum of a few can wrap.
const most = 1_000_000_000_000_000_000

// told is a usage in an API's own words.
type told map[string]json.RawMessage

// number is the count at a place: a member, or behind a point a member of that one.
func (t told) number(place string) (n int64, is bool) {
	outer, inner, within := strings.Cut(place, ".")
	value := t[outer]
	if within {
		var details told
		_ = json.Unmarshal(value, &details)
		value = details[inner]
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	return n, err == nil && n >= 0 && n <= most
}

// counts are the places where each API has its counts.
var counts = map[API]map[string]func(*tokens.Count) **int64{
	Gemini: {
		"promptTokenCount": input, "cachedContentTokenCount": cached, "toolUsePromptTokenCount": tool,
		"candidatesTokenCount": output, "thoughtsTokenCount": thoughts, "totalTokenCount": total,
	},
	Anthropic: {
		"input_tokens": input, "cache_read_input_tokens": cached, "cache_creation_input_tokens": written, "output_tokens": output,
	},
	Responses: {
		"input_tokens": input, "input_tokens_details.cached_tokens": cached,
		"output_tokens": output, "output_tokens_details.reasoning_tokens": thoughts, "total_tokens": total,
	},
	Chat: {
		"prompt_tokens": input, "prompt_tokens_details.cached_tokens": cached,
		"completion_tokens": output, "completion_tokens_details.reasoning_tokens": thoughts, "total_tokens": total,
	},
}

func input(c *tokens.Count) **int64    { return &c.Input }
func cached(c *tokens.Count) **int64   { return &c.Cached }
func output(c *tokens.Count) **int64   { return &c.Candidates }
func thoughts(c *tokens.Count) **int64 { return &c.Thoughts }
func total(c *tokens.Count) **int64    { return &c.Total }
func tool(c *tokens.Count) **int64     { return &c.Tool }
func written(c *tokens.Count) **int64  { return &c.Written }
