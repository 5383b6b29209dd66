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
	for name, n := range t {
		*counts[name](&m.usage) = &n
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
		input := *c.Input // what was read from the cache or written to it is not in it
		for _, n := range []*int64{c.Cached, c.Written} {
			if n != nil {
				input += *n
			}
		}
		c.Input = &input
		if sum, told := c.All(); told {
			c.Total = &sum
		}
	case Responses, Chat:
		return c.WithoutThoughts()
	}
	return c
}

// told is a usage in an API's own words, of which counts has the names.
type told map[string]int64

// UnmarshalJSON passes over what is no count.
func (t *told) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(text, &members)
	if members != nil && *t == nil {
		*t = told{}
	}
	for name, value := range members {
		if strings.HasSuffix(name, "_details") {
			_ = t.UnmarshalJSON(value)
		} else if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && n >= 0 && counts[name] != nil {
			(*t)[name] = n
		}
	}
	return nil
}

// counts are the APIs' names of the counts.
var counts = map[string]func(*tokens.Count) **int64{
	"promptTokenCount": input, "input_tokens": input, "prompt_tokens": input,
	"cachedContentTokenCount": cached, "cache_read_input_tokens": cached, "cached_tokens": cached,
	"candidatesTokenCount": output, "output_tokens": output, "completion_tokens": output,
	"thoughtsTokenCount": thoughts, "reasoning_tokens": thoughts,
	"totalTokenCount": total, "total_tokens": total,
	"toolUsePromptTokenCount":     func(c *tokens.Count) **int64 { return &c.Tool },
	"cache_creation_input_tokens": func(c *tokens.Count) **int64 { return &c.Written },
}

func input(c *tokens.Count) **int64    { return &c.Input }
func cached(c *tokens.Count) **int64   { return &c.Cached }
func output(c *tokens.Count) **int64   { return &c.Candidates }
func thoughts(c *tokens.Count) **int64 { return &c.Thoughts }
func total(c *tokens.Count) **int64    { return &c.Total }
