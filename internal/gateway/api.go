package gateway

import "abl/internal/gateway/meter"

// api is what a provider's HTTP interface looks like, and what passes of it.
type api struct {
	Kind    meter.API
	Base    string   // where the provider itself serves it
	Strip   string   // what the paths of its clients begin with and Base ends in
	Auth    string   // header that holds the key
	Scheme  string   // stands before the key there
	Routes  []route  // everything else is refused
	List    string   // path of the list of models, which the gateway answers itself
	Queries []string // names of parameters that may be passed on
	Headers []string // names that may be passed on besides the common ones; "X-*" stands for all that begin with it

	// Fields are what a request may hold on its outermost level: what the CLIs send, and
	// what else only shapes the answer. A field that names further models, tools of the
	// provider's or what it has stored would pass the rest of this filter by.
	Fields []string

	// Tools are the types of tools that the client runs itself; one that ends in "_" begins
	// a type with a date. Tools that a provider runs reach the web from its side, so that
	// "reaches only the model" would mean nothing while a request may ask for them. Gemini's
	// have no type: there each member of a tool is a kind of tool.
	Tools []string
}

// route is one request that an agent may make, by POST.
type route struct {
	Path  string // below the provider's name; {model} stands for a model's name, which else is in the body
	Class string // its name in the log
	Free  bool   // it makes no tokens
}

// common are the headers that every provider's clients send and that say nothing of
// who calls.
var common = []string{"Accept", "Content-Type", "User-Agent", "X-Stainless-*", "X-Client-Request-Id", "Traceparent"}

const openAI = "https://api.openai.com/v1"

// apis are the four. Base is as in the variable with which each one's own clients
// override it: OpenAI's ends in the version, the others' do not.
var apis = map[meter.API]api{
	meter.Gemini: {
		Kind: meter.Gemini, Base: "https://generativelanguage.googleapis.com", Auth: "X-Goog-Api-Key",
		Routes: []route{
			{"/v1beta/models/{model}:streamGenerateContent", "stream", false},
			{"/v1beta/models/{model}:generateContent", "generate", false},
			{"/v1beta/models/{model}:countTokens", "count", true},
		},
		List: "/v1beta/models", Queries: []string{"alt"}, Headers: []string{"X-Goog-Api-Client"},
		Fields: []string{"contents", "generationConfig", "safetySettings", "systemInstruction", "toolConfig", "tools"},
		Tools:  []string{"functionDeclarations", "function_declarations"},
	},
	meter.Anthropic: {
		Kind: meter.Anthropic, Base: "https://api.anthropic.com", Auth: "X-Api-Key",
		Routes: []route{{"/v1/messages", "messages", false}, {"/v1/messages/count_tokens", "count", true}},
		List:   "/v1/models", Queries: []string{"beta"},
		Headers: []string{"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access", "X-App", "X-Claude-*"},
		Fields: []string{
			"cache_control", "context_management", "max_tokens", "messages", "metadata", "model", "output_config", "service_tier", "speed",
			"stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
		},
		Tools: []string{"", "custom", "bash_", "text_editor_", "memory_", "computer_"}, // one without a type is the client's, too
	},
	meter.Responses: {
		Kind: meter.Responses, Base: openAI, Strip: "/v1", Auth: "Authorization", Scheme: "Bearer ",
		Routes: []route{{"/v1/responses", "responses", false}},
		List:   "/v1/models", Headers: []string{"Openai-Beta", "Originator", "Version", "Session-Id", "Session_id", "Thread-Id", "X-Codex-*"},
		Fields: []string{
			"background", "client_metadata", "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model",
			"parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream",
			"stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
		},
		Tools: []string{"function", "custom", "local_shell", "namespace"},
	},
	meter.Chat: {
		Kind: meter.Chat, Base: openAI, Strip: "/v1", Auth: "Authorization", Scheme: "Bearer ",
		Routes: []route{{"/v1/chat/completions", "chat", false}},
		List:   "/v1/models", Headers: []string{"Openai-Beta", "Openai-Intent", "X-Initiator"},
		Fields: []string{
			"frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens", "max_tokens", "messages", "metadata",
			"model", "n", "parallel_tool_calls", "prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning",
			"reasoning_effort", "response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
			"temperature", "tool_choice", "tools", "top_k", "top_logprobs", "top_p", "user", "verbosity",
		},
		Tools: []string{"function", "custom"},
	},
}

// usualTiers are the ways of being served that cost what a model's price list says, or less.
var usualTiers = []string{`"auto"`, `"default"`, `"standard"`, `"standard_only"`, `"flex"`}

// usual are the values that a field may have where others cost more than the budget
// counts, or leave with the provider what a later request could ask for.
var usual = map[string][]string{
	"background": {"false"}, "store": {"false"}, "service_tier": usualTiers, "speed": usualTiers,
}
