package meter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// counts are the places of the counts of each API, in the order of tokens.Count.Numbers: input, cached,
// candidates, thoughts, tool, total, written, written for an hour.
var counts = map[API][]string{
	Gemini: {
		"usageMetadata.promptTokenCount", "usageMetadata.cachedContentTokenCount", "usageMetadata.candidatesTokenCount",
		"usageMetadata.thoughtsTokenCount", "usageMetadata.toolUsePromptTokenCount", "usageMetadata.totalTokenCount",
	},
	Anthropic: {
		"usage.input_tokens", "usage.cache_read_input_tokens", "usage.output_tokens", unreported, unreported, unreported,
		"usage.cache_creation_input_tokens", "usage.cache_creation.ephemeral_1h_input_tokens",
	},
	Responses: {
		"usage.input_tokens", "usage.input_tokens_details.cached_tokens", "usage.output_tokens",
		"usage.output_tokens_details.reasoning_tokens", unreported, "usage.total_tokens",
		"usage.input_tokens_details.cache_write_tokens",
	},
	Chat: {
		"usage.prompt_tokens", "usage.prompt_tokens_details.cached_tokens", "usage.completion_tokens",
		"usage.completion_tokens_details.reasoning_tokens", unreported, "usage.total_tokens",
		"usage.prompt_tokens_details.cache_write_tokens",
	},
}

// unreported is the place of a count that an API does not report.
const unreported = "-"

// endings are the places of the finish reason. The value is true if the reason is final: the reason
// replaces a status, and both occur in either order.
var endings = map[string]bool{
	"candidates.finishReason": false, "promptFeedback.blockReason": true, // Gemini
	"stop_reason": false, "delta.stop_reason": false, // Anthropic
	"status": false, "incomplete_details.reason": true, // Responses
	"choices.finish_reason": false, // Chat
}

// lastEvents are the types of the events that end a response of the Responses API, with the status of
// the response in them.
var lastEvents = map[string]string{
	"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed",
}

// refusals are the places of a refusal in a complete response of OpenAI.
var refusals = map[string]bool{"output.content.refusal": true, "choices.message.refusal": true,
	"choices.delta.refusal": true}

// isCall reports whether the value at a place is a call of one of the client's tools.
func isCall(place string, value []byte) bool {
	switch place {
	case "candidates.content.parts.functionCall": // Gemini
		return true
	case "content.type", "content_block.type": // Anthropic
		return Text(value) == "tool_use"
	case "output.type", "item.type": // Responses
		return strings.HasSuffix(Text(value), "_call")
	case "choices.message.tool_calls", "choices.delta.tool_calls": // Chat
		return bytes.HasPrefix(value, []byte("[")) && !bytes.Equal(bytes.TrimSpace(value[1:]), []byte("]"))
	}
	return false
}

// Calls reports whether the response calls a tool of the client.
func (m *Meter) Calls() bool { return m.calls }

// readPart reads one of several documents. An error in an earlier document stays until a later one
// has a finish reason.
func (m *Meter) readPart(text []byte) {
	was, ends := m.failure, m.ends
	m.failure = failure{}
	m.read(text)
	if !m.failure.is && m.ends == ends {
		m.failure = was
	}
}

// read reads one JSON document: an event, or a whole response. It ignores members of an unexpected
// type.
func (m *Meter) read(text []byte) {
	if frames[m.api] == 0 {
		return
	}
	_ = Walk("", text, func(place string, value []byte) bool {
		inner := strings.TrimPrefix(strings.TrimPrefix(place, "response."), "message.")
		final, end := endings[inner]
		count := slices.Index(counts[m.api], inner)
		m.calls = m.calls || isCall(inner, value)
		switch {
		case place == "message.usage.output_tokens": // the first tokens, in message_start
			report(&m.first, value)
		case count >= 0:
			report(m.usage.Numbers()[count], value)
		case end:
			m.ended(Text(value), final)
		case inner == "error":
			m.failure = readFailure(value)
		case place == "type" && Text(value) == "error" && !m.failure.is:
			m.failure = readFailure(text)
		case place == "type":
			m.ended(lastEvents[Text(value)], false)
		case refusals[inner] && Text(value) != "":
			m.ended("refusal", true)
		}
		return slices.Contains(parents, inner)
	})
}

// parents are the places that contain one of the places above.
var parents = strings.Fields(`response message usageMetadata candidates promptFeedback delta incomplete_details
	usage usage.input_tokens_details usage.output_tokens_details usage.prompt_tokens_details usage.completion_tokens_details
	usage.cache_creation
	candidates.content candidates.content.parts content content_block item
	output output.content choices choices.message choices.delta`)

// ended records a finish reason. A final one is never replaced.
func (m *Meter) ended(word string, final bool) {
	if word == "" || word == "in_progress" || word == "queued" {
		return
	}
	m.ends++
	if !m.final {
		m.finish, m.final = word, final
	}
}

// Finish returns the finish reason in the API's own term, "" without one.
func (m *Meter) Finish() string {
	m.flush()
	return m.finish
}

// ErrForm means that a text is not JSON, or not a value of the expected kind.
var ErrForm = errors.New("it is not JSON of the expected form")

// Values calls show with each value of an object or a list that begins with begin: its name, "" in a
// list, and its text. It fails if the text is not JSON, or if a name occurs twice, because programs
// differ in the value that they use.
func Values(text []byte, begin json.Delim, show func(name string, value []byte) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != begin {
		return ErrForm
	}
	seen := map[string]bool{}
	for d.More() {
		name := ""
		if begin == '{' {
			key, err := d.Token()
			if err != nil {
				return ErrForm
			}
			if name = key.(string); seen[name] {
				return fmt.Errorf("the body has the field %.100q twice", name)
			}
			seen[name] = true
		}
		from := d.InputOffset()
		if d.Decode(&skipped{}) != nil {
			return ErrForm
		}
		if err := show(name, bytes.TrimLeft(text[from:d.InputOffset()], ":, \t\r\n")); err != nil {
			return err
		}
	}
	_, err := d.Token()
	if _, end := d.Token(); err != nil || !errors.Is(end, io.EOF) {
		return ErrForm
	}
	return nil
}

// skipped is a value that is not copied: a body is a whole conversation, and copies of it would fill
// the gateway's memory.
type skipped struct{}

// UnmarshalJSON accepts any value.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// Walk calls show with each value of an object or a list, and with its place: the names that lead to
// it from at, joined by points. The entries of a list have the place of the list. If show returns
// true, Walk continues into the value. It fails at a list within a list.
func Walk(at string, text []byte, show func(place string, value []byte) (into bool)) error {
	text = bytes.TrimLeft(text, " \t\r\n")
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return nil
	}
	return Values(text, json.Delim(text[0]), func(name string, value []byte) error {
		place := at
		if text[0] == '{' {
			if place != "" {
				place += "."
			}
			place += name
		}
		switch {
		case !show(place, value):
			return nil
		case text[0] == '[' && value[0] == '[':
			return ErrForm
		}
		return Walk(place, value, show)
	})
}

// Text returns a value that is a JSON string, "" for any other.
func Text(value []byte) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}
