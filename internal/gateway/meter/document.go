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

// counts are the places where each API has its counts, in the order of tokens.Count's
// numbers: input, cached, candidates, thoughts, tool, total, written, written for an hour.
var counts = map[API][]string{
	Gemini: {
		"usageMetadata.promptTokenCount", "usageMetadata.cachedContentTokenCount", "usageMetadata.candidatesTokenCount",
		"usageMetadata.thoughtsTokenCount", "usageMetadata.toolUsePromptTokenCount", "usageMetadata.totalTokenCount",
	},
	Anthropic: {
		"usage.input_tokens", "usage.cache_read_input_tokens", "usage.output_tokens", untold, untold, untold,
		"usage.cache_creation_input_tokens", "usage.cache_creation.ephemeral_1h_input_tokens",
	},
	Responses: {
		"usage.input_tokens", "usage.input_tokens_details.cached_tokens", "usage.output_tokens",
		"usage.output_tokens_details.reasoning_tokens", untold, "usage.total_tokens", "usage.input_tokens_details.cache_write_tokens",
	},
	Chat: {
		"usage.prompt_tokens", "usage.prompt_tokens_details.cached_tokens", "usage.completion_tokens",
		"usage.completion_tokens_details.reasoning_tokens", untold, "usage.total_tokens", "usage.prompt_tokens_details.cache_write_tokens",
	},
}

// untold is the place of a count that an API does not tell.
const untold = "-"

// endings are the places where an answer says how it ended, and whether nothing takes that
// back: a status stands beside its reason, in either order.
var endings = map[string]bool{
	"candidates.finishReason": false, "promptFeedback.blockReason": true, // Gemini
	"stop_reason": false, "delta.stop_reason": false, // Anthropic
	"status": false, "incomplete_details.reason": true, // Responses
	"choices.finish_reason": false, // Chat
}

// lastEvents are the types of the events that end an answer of the Responses API, with the
// status that the answer in them has.
var lastEvents = map[string]string{
	"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed",
}

// refusals are the places of a refusal, inside an answer of OpenAI's that is complete.
var refusals = map[string]bool{"output.content.refusal": true, "choices.message.refusal": true, "choices.delta.refusal": true}

// isCall reports whether a value at a place is a call of one of the client's tools, which its answer
// waits for.
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

// Calls reports whether the answer calls a tool of the client's.
func (m *Meter) Calls() bool { return m.calls }

// readPart reads one of several documents. An error that an earlier one reported stays until
// a later one reports the end of the answer.
func (m *Meter) readPart(text []byte) {
	was, ends := m.failure, m.ends
	m.failure = failure{}
	m.read(text)
	if !m.failure.is && m.ends == ends {
		m.failure = was
	}
}

// read reads one JSON document: an event, or an answer that is one piece. A member of
// another type than it should have tells nothing.
func (m *Meter) read(text []byte) {
	if frames[m.api] == 0 {
		return
	}
	_ = Walk("", text, func(place string, value []byte) bool {
		inner := strings.TrimPrefix(strings.TrimPrefix(place, "response."), "message.")
		firm, end := endings[inner]
		count := slices.Index(counts[m.api], inner)
		m.calls = m.calls || isCall(inner, value)
		switch {
		case place == "message.usage.output_tokens": // the first tokens, in message_start
			report(&m.first, value)
		case count >= 0:
			report(m.usage.Numbers()[count], value)
		case end:
			m.ended(Text(value), firm)
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

// parents are the places below which one of those stands.
var parents = strings.Fields(`response message usageMetadata candidates promptFeedback delta incomplete_details
	usage usage.input_tokens_details usage.output_tokens_details usage.prompt_tokens_details usage.completion_tokens_details
	usage.cache_creation
	candidates.content candidates.content.parts content content_block item
	output output.content choices choices.message choices.delta`)

func (m *Meter) ended(word string, firm bool) {
	if word == "" || word == "in_progress" || word == "queued" {
		return
	}
	m.ends++
	if !m.firm {
		m.finish, m.firm = word, firm
	}
}

// Finish is how the answer ended, in the API's own word; "" while it has not said.
func (m *Meter) Finish() string {
	m.settle()
	return m.finish
}

// ErrForm is that of a text which is no JSON, or none of the kind that is asked for.
var ErrForm = errors.New("it is of another form")

// Values shows the values of an object or a list, of which the first character is
// begin, each as it stands in text and with its name, if it has one. A name that is there
// twice is an error: programs differ in which one they take.
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
		if d.Decode(&passedOver{}) != nil {
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

// passedOver is a value of which only the place is wanted: a body is a whole
// conversation, and copies of it would fill the gateway's memory.
type passedOver struct{}

// UnmarshalJSON takes any value.
func (*passedOver) UnmarshalJSON([]byte) error { return nil }

// Walk shows what an object holds, each value with the names that lead to it from the
// place at, joined by points. The entries of a list stand where the list does, so that a
// list within a list is none that can be read. It goes into those values of which show says so.
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

// Text is a value when it is one, else "".
func Text(value []byte) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}
