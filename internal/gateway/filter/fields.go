package filter

import (
	"encoding/json"
	"slices"

	"abl/internal/gateway/meter"
)

// fields are what a request may hold on its outermost level, by API: what the CLIs
// send, and what else only shapes the answer. A field that names further models,
// tools of the provider's or what it has stored would pass the rest of this filter by.
var fields = map[meter.API][]string{
	meter.Gemini: {"contents", "generationConfig", "safetySettings", "systemInstruction", "toolConfig", "tools"},
	meter.Anthropic: {
		"cache_control", "context_management", "max_tokens", "messages", "metadata", "model", "output_config", "service_tier", "speed",
		"stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
	},
	meter.Responses: {
		"background", "client_metadata", "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model",
		"parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream",
		"stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
	},
	meter.Chat: {
		"frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "messages", "metadata",
		"model", "n", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning",
		"reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
		"temperature", "tool_choice", "tools", "top_k", "top_logprobs", "top_p", "user", "verbosity",
	},
}

// usualTiers are the ways of being served that cost what a model's price list says, or less.
var usualTiers = []string{`"auto"`, `"default"`, `"standard"`, `"standard_only"`, `"flex"`}

// usual are the values that a field may have where others cost more than the budget
// counts, or leave with the provider what a later request could ask for.
var usual = map[string][]string{
	"background": {"false"}, "store": {"false"}, "service_tier": usualTiers, "speed": usualTiers,
}

// oddValue says that a field of which only some values pass has another.
func oddValue(name string, value json.RawMessage) bool {
	all, bound := usual[name]
	return bound && !none(value) && !slices.Contains(all, string(value))
}

// none is a value that stands for a field that is not there.
func none(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }
