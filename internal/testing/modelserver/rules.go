package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

var anthropicRules = rules{
	headers: []string{"anthropic-version"},
	fields: []string{
		"cache_control", "container", "context_management", "inference_geo", "max_tokens", "mcp_servers", "messages", "metadata", "model", "output_config", "output_format",
		"service_tier", "speed", "stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
	},
	beta:    []string{"container", "context_management", "mcp_servers", "output_format", "speed"},
	needs:   []string{"model", "max_tokens", "messages"},
	unknown: "%s: Extra inputs are not permitted",
	missing: "%s: Field required",
	more:    oddMessages,
}

// block is a part of an Anthropic message.
type block struct {
	Type string  `json:"type"`
	Text *string `json:"text"`
	ID   string  `json:"id"`
	Use  string  `json:"tool_use_id"`
}

// oddMessages returns the error in the turns of a request to Anthropic, or "".
func oddMessages(r *http.Request, body []byte) string {
	var c struct {
		MaxTokens float64 `json:"max_tokens"`
		Thinking  struct {
			Type   string  `json:"type"`
			Budget float64 `json:"budget_tokens"`
		} `json:"thinking"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return err.Error()
	}
	if c.MaxTokens < 1 {
		return "max_tokens: Input should be greater than or equal to 1"
	}
	if c.Thinking.Type == "enabled" && (c.Thinking.Budget < 1024 || c.Thinking.Budget >= c.MaxTokens) {
		return "`max_tokens` must be greater than `thinking.budget_tokens`, which must be at least 1024"
	}
	open := calls{}
	for i, m := range c.Messages {
		known := m.Role == "user" || i > 0 && m.Role == "assistant" || i > 0 && m.Role == "system" &&
			r.Header.Get("Anthropic-Beta") != ""
		if !known {
			return fmt.Sprintf("messages.%d: unexpected role %q", i, m.Role)
		}
		if content := string(m.Content); content == "" || content == "null" || content == `""` || content == "[]" && m.Role == "user" {
			return fmt.Sprintf("messages.%d: %s messages must have non-empty content", i, m.Role)
		}
		var parts []block
		_ = json.Unmarshal(m.Content, &parts) // a string has no call and no result
		if why := oddBlocks(i, m.Role, parts, open); why != "" {
			return why
		}
	}
	return ""
}

// oddBlocks returns the error in the blocks of a message, or "". open holds the calls that wait
// for results.
func oddBlocks(i int, role string, parts []block, open calls) string {
	begun := false
	var made []string
	for _, p := range parts {
		switch {
		case p.Type == "text" && (p.Text == nil || *p.Text == ""):
			return fmt.Sprintf("messages.%d: text content blocks must be non-empty", i)
		case p.Type == "tool_result" && (role != "user" || begun || !open.answer(p.Use)):
			return fmt.Sprintf("messages.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s", i, p.Use)
		case p.Type == "tool_use" && role != "assistant":
			return fmt.Sprintf("messages.%d: `tool_use` blocks can only be in `assistant` messages", i)
		case p.Type == "tool_use":
			made = append(made, p.ID)
		}
		begun = begun || p.Type != "tool_result"
	}
	for id := range open {
		return fmt.Sprintf("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s", i, id)
	}
	for _, id := range made {
		open[id] = true
	}
	return ""
}

var chatRules = rules{
	fields: []string{
		"audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "messages", "metadata", "modalities",
		"model", "n", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "response_format",
		"safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user",
		"verbosity", "web_search_options",
	},
	needs:   []string{"model", "messages"},
	unknown: "Unrecognized request argument supplied: %s",
	missing: "Missing required parameter: '%s'.",
	more:    oddChat,
}

// oddChat returns the error in a request to OpenAI's Chat, or "".
func oddChat(_ *http.Request, body []byte) string {
	if why := refused(body); why != "" {
		return why
	}
	var c struct {
		Stream        bool            `json:"stream"`
		StreamOptions json.RawMessage `json:"stream_options"`
		Messages      []struct {
			Role  string `json:"role"`
			Call  string `json:"tool_call_id"`
			Calls []struct {
				ID string `json:"id"`
			} `json:"tool_calls"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return err.Error()
	}
	if !c.Stream && len(c.StreamOptions) > 0 {
		return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	}
	open := calls{}
	for i, m := range c.Messages {
		switch {
		case !slices.Contains([]string{"developer", "system", "user", "assistant", "tool", "function"}, m.Role):
			return fmt.Sprintf("Invalid value: '%s' for messages[%d].role.", m.Role, i)
		case m.Role == "tool" && !open.answer(m.Call):
			return "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
		case m.Role != "tool" && len(open) > 0:
			return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
		}
		for _, call := range m.Calls {
			open[call.ID] = true
		}
	}
	if len(open) > 0 {
		return "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'."
	}
	return ""
}

var responsesRules = rules{
	fields: []string{
		"background", "client_metadata", "context_management", "conversation", "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model",
		"parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store",
		"stream", "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
	},
	needs:   []string{"model", "input"},
	unknown: "Unknown parameter: '%s'.",
	missing: "Missing required parameter: '%s'.",
	more:    oddInput,
}

// oddInput returns the error in a request to OpenAI's Responses, or "".
func oddInput(_ *http.Request, body []byte) string {
	if why := refused(body); why != "" {
		return why
	}
	var c struct {
		Max     *float64        `json:"max_output_tokens"`
		Stream  bool            `json:"stream"`
		Options json.RawMessage `json:"stream_options"`
		Input   items           `json:"input"`
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return err.Error()
	}
	if !c.Stream && len(c.Options) > 0 {
		return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
	}
	if c.Max != nil && *c.Max < 16 {
		return "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16."
	}
	open := calls{}
	for i, item := range c.Input {
		switch {
		case item.Role != "" && !slices.Contains([]string{"user", "assistant", "system", "developer"}, item.Role):
			return fmt.Sprintf("Invalid value: '%s' for input[%d].role.", item.Role, i)
		case strings.HasSuffix(item.Type, "_call_output") && !open.answer(item.Call):
			return "No tool call found for function call output with call_id " + item.Call + "."
		case item.Type == "function_call" || item.Type == "custom_tool_call":
			open[item.Call] = true
		}
	}
	for id := range open {
		return "No tool output found for function call " + id + "."
	}
	return ""
}

var geminiRules = rules{
	fields: []string{
		"cachedContent", "contents", "generationConfig", "safetySettings", "serviceTier",
		"store", "systemInstruction", "toolConfig", "tools",
	},
	needs:   []string{"contents"},
	unknown: "Invalid JSON payload received. Unknown name \"%s\": Cannot find field.",
	missing: "* GenerateContentRequest.%s: contents is not specified",
	more:    oddContents,
}

// oddContents returns the error in the turns of a request to Gemini, or "".
func oddContents(_ *http.Request, body []byte) string {
	var c struct {
		Contents []struct {
			Role  string `json:"role"`
			Parts []struct {
				Call     json.RawMessage `json:"functionCall"`
				Response json.RawMessage `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(body, &c); err != nil {
		return err.Error()
	}
	before := 0 // calls of the previous turn
	for i, turn := range c.Contents {
		made, answered := 0, 0
		for _, p := range turn.Parts {
			made += min(len(p.Call), 1)
			answered += min(len(p.Response), 1)
		}
		switch {
		case turn.Role != "user" && turn.Role != "model" && !(turn.Role == "" && len(c.Contents) == 1):
			return "Please use a valid role: user, model."
		case len(turn.Parts) == 0:
			return fmt.Sprintf("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
		case made > 0 && (turn.Role != "model" || i == 0 || c.Contents[i-1].Role != "user"):
			return "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
		case answered != before:
			return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
		}
		before = made
	}
	return ""
}
