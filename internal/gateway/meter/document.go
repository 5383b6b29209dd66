package meter

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"abl/internal/tokens"
)

// counts are the places where each API has its counts, in the order of tokens.Count's
// numbers: input, cached, candidates, thoughts, tool, total, written.
var counts = map[API][]string{
	Gemini: {
		"usageMetadata.promptTokenCount", "usageMetadata.cachedContentTokenCount", "usageMetadata.candidatesTokenCount",
		"usageMetadata.thoughtsTokenCount", "usageMetadata.toolUsePromptTokenCount", "usageMetadata.totalTokenCount",
	},
	Anthropic: {"usage.input_tokens", "usage.cache_read_input_tokens", "usage.output_tokens", untold, untold, untold, "usage.cache_creation_input_tokens"},
	Responses: {
		"usage.input_tokens", "usage.input_tokens_details.cached_tokens", "usage.output_tokens",
		"usage.output_tokens_details.reasoning_tokens", untold, "usage.total_tokens",
	},
	Chat: {
		"usage.prompt_tokens", "usage.prompt_tokens_details.cached_tokens", "usage.completion_tokens",
		"usage.completion_tokens_details.reasoning_tokens", untold, "usage.total_tokens",
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

// refusals are the places of a refusal, inside an answer of OpenAI's that is complete.
var refusals = map[string]bool{"output.content.refusal": true, "choices.message.refusal": true, "choices.delta.refusal": true}

// most is the largest number that is taken for a count: no sum of a few can wrap.
const most = 1_000_000_000_000_000_000

// read takes up one document: an event, or an answer that is one piece. A member of
// another type than it should have tells nothing, and nothing of what is no JSON.
func (m *Meter) read(text []byte) {
	if frames[m.api] == 0 || !json.Valid(text) {
		return
	}
	_ = Walk("", text, func(place string, value []byte) bool {
		inner := strings.TrimPrefix(strings.TrimPrefix(place, "response."), "message.")
		firm, end := endings[inner]
		count := slices.Index(counts[m.api], inner)
		switch {
		case place == "message.usage.output_tokens": // that of message_start is of its first tokens only
		case count >= 0:
			if n, err := strconv.ParseInt(string(value), 10, 64); err == nil && n >= 0 && n <= most {
				*m.usage.Numbers()[count] = &n
			}
		case end:
			m.ended(Text(value), firm)
		case inner == "error":
			m.failure = readFailure(value)
		case place == "type" && Text(value) == "error" && !m.failure.is:
			m.failure = readFailure(text)
		case refusals[inner] && Text(value) != "":
			m.ended("refusal", true)
		case m.api != Anthropic && (inner == "usage" || inner == "usageMetadata") && value[0] == '{':
			m.usage = tokens.Count{} // it replaces the one before; Anthropic's two complete each other
		}
		return slices.Contains(parents, inner)
	})
}

// parents are the places below which one of those stands.
var parents = strings.Fields(`response message usageMetadata candidates promptFeedback delta incomplete_details
	usage usage.input_tokens_details usage.output_tokens_details usage.prompt_tokens_details usage.completion_tokens_details
	output output.content choices choices.message choices.delta`)

func (m *Meter) ended(word string, firm bool) {
	if word != "" && word != "in_progress" && word != "queued" && !m.firm {
		m.finish, m.firm = word, firm
	}
}

// Finish is how the answer ended, in the API's own word; "" while it has not said.
func (m *Meter) Finish() string {
	m.settle()
	return m.finish
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
