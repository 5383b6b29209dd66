package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/textproto"
	"strings"

	"abl/internal/gateway/meter"
	"abl/internal/redact"
)

// api is what a provider's HTTP interface looks like, and what passes of it.
type api struct {
	Kind    meter.API
	Base    string   // where the provider itself serves it
	Strip   string   // what the paths of its clients begin with and Base ends in
	Auth    string   // header that holds the key
	Scheme  string   // stands before the key there
	Routes  []route  // everything else is refused
	Longest int64    // tokens of the longest answer of any of its models, as documented
	Context int      // tokens of the longest prompt, likewise
	List    string   // path of the list of models, which the gateway answers itself
	Queries []string // names of parameters that may be passed on
	// Names that may be passed on besides the common ones; "X-*" stands for all that begin with it.
	Headers []string

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
	// Below the provider's name; {model} stands for a model's name, which else is in the body.
	Path  string
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
		Longest: 65_536, Context: 2_097_152, List: "/v1beta/models", Queries: []string{"alt"}, Headers: []string{"X-Goog-Api-Client"},
		Fields: []string{"contents", "generationConfig", "safetySettings", "systemInstruction", "toolConfig", "tools"},
		Tools:  []string{"functionDeclarations", "function_declarations"},
	},
	meter.Anthropic: {
		Kind: meter.Anthropic, Base: "https://api.anthropic.com", Auth: "X-Api-Key",
		Routes:  []route{{"/v1/messages", "messages", false}, {"/v1/messages/count_tokens", "count", true}},
		Longest: 128_000, Context: 1_000_000, List: "/v1/models", Queries: []string{"beta"},
		Headers: []string{"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access", "X-App", "X-Claude-*"},
		Fields: []string{
			"cache_control", "context_management", "max_tokens", "messages", "metadata", "model", "output_config", "service_tier", "speed",
			"stop_sequences", "stream", "system", "temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
		},
		Tools: []string{"", "custom", "bash_", "text_editor_", "memory_", "computer_"}, // one without a type is the client's, too
	},
	meter.Responses: {
		Kind: meter.Responses, Base: openAI, Strip: "/v1", Auth: "Authorization", Scheme: "Bearer ",
		Routes:  []route{{"/v1/responses", "responses", false}},
		Longest: 128_000, Context: 1_050_000, List: "/v1/models", Headers: []string{"Openai-Beta", "Originator", "Version", "Session-Id", "Session_id", "Thread-Id", "X-Codex-*"},
		Fields: []string{
			"background", "client_metadata", "include", "input", "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model",
			"parallel_tool_calls", "prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream",
			"stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
		},
		Tools: []string{"function", "custom", "local_shell", "namespace"},
	},
	meter.Chat: {
		Kind: meter.Chat, Base: openAI, Strip: "/v1", Auth: "Authorization", Scheme: "Bearer ",
		Routes:  []route{{"/v1/chat/completions", "chat", false}},
		Longest: 128_000, Context: 1_050_000, List: "/v1/models", Headers: []string{"Openai-Beta", "Openai-Intent", "X-Initiator"},
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

// What stands between a gateway and a server on abl's machine says with this header
// of an error that the server gave no answer, and whether it may have been asked.
const (
	NoAnswer = "Abl-No-Answer"
	Asked    = "asked"
	NotAsked = "not asked"
)

type object map[string]any

// statusWords are the APIs' names of the statuses with which the gateway itself answers;
// 4 and 5 stand for all others that begin so.
var statusWords = map[meter.API]map[int]string{
	meter.Gemini: {
		401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
		4: "INVALID_ARGUMENT", 5: "INVALID_ARGUMENT",
	},
	meter.Anthropic: {
		401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large", 503: "overloaded_error",
		4: "invalid_request_error", 5: "api_error",
	},
	meter.Chat: {401: "authentication_error", 403: "permission_error", 4: "invalid_request_error", 5: "server_error"},
}

// errorWords is the body of an error answer as the provider itself would word it, so
// that its client shows the message instead of choking on it. Clients of an
// unknown API get OpenAI's form, the most copied one.
func errorWords(kind meter.API, status int, message string) []byte {
	if statusWords[kind] == nil {
		kind = meter.Chat
	}
	word := cmp.Or(statusWords[kind][status], statusWords[kind][status/100])
	switch kind {
	case meter.Gemini:
		return encodeJSON(object{"error": object{"code": status, "message": message, "status": word}})
	case meter.Anthropic:
		return encodeJSON(object{"type": "error", "error": object{"type": word, "message": message}})
	}
	return encodeJSON(object{"error": object{"message": message, "type": word, "param": nil, "code": nil}})
}

// modelList is the answer to the question which models there are. Every API's clients
// find what they look for in the same list.
func modelList(models []string) []byte {
	all := make([]object, len(models))
	for i, m := range models {
		all[i] = object{
			"object": "model", "type": "model", "id": m, "display_name": m, "owned_by": "abl",
			"name": "models/" + m, "displayName": m, "supportedGenerationMethods": []string{"generateContent", "countTokens"},
		}
	}
	return encodeJSON(object{"object": "list", "data": all, "models": all, "has_more": false})
}

func encodeJSON(v object) []byte {
	data, _ := json.Marshal(v) // strings and numbers always encode
	return data
}

// outward returns the headers with which a request goes to its provider: those of the client's
// that the provider's API knows, of which none holds a token, the setup's, and the key.
func outward(from http.Header, p *provider) http.Header {
	to := http.Header{
		"Accept-Encoding": {"identity"}, // usage could not be read out of anything else
		"User-Agent":      {""},         // without one net/http would name itself
	}
	for name, values := range from {
		if listed(name, common) || listed(name, p.Headers) {
			to[name] = values
		}
	}
	for name, value := range p.Extra {
		to.Set(name, string(value))
	}
	if key := p.held.Load().key; key != "" {
		to.Set(p.Auth, p.Scheme+string(key))
	}
	return to
}

// listed looks a header's name up; "X-*" in the list stands for all that begin so.
func listed(name string, list []string) bool {
	for _, entry := range list {
		prefix, many := strings.CutSuffix(entry, "*")
		if name == entry || many && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// ours are the headers of an answer that concern the connection with the provider,
// or that an agent has no business with.
var ours = []string{
	"Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding",
	"Upgrade", "Content-Length", "Set-Cookie", "Alt-Svc", "Strict-Transport-Security", "Clear-Site-Data",
}

// inward copies an answer's headers for the client. A value with the key in it is
// left out.
func inward(to, from http.Header, secret *redact.Redactor) {
	drop := append([]string(nil), ours...)
	for _, v := range from.Values("Connection") {
		for name := range strings.SplitSeq(v, ",") {
			drop = append(drop, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	for name, values := range from {
		if listed(name, drop) || secret.Holds([]byte(strings.Join(values, "\n"))) {
			continue
		}
		to[name] = values
	}
}
