package gateway

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"abl/internal/gateway/meter"
	"abl/internal/redact"
)

// api describes the HTTP API of a provider, and the requests that the gateway allows.
type api struct {
	Kind    meter.API
	Base    string   // the provider's own address
	Strip   string   // a prefix of the clients' paths with which Base ends
	Auth    string   // the header of the key
	Scheme  string   // precedes the key in the header
	Routes  []route  // everything else is refused
	Longest int64    // tokens of the longest response of any model, as documented
	Context int      // tokens of the longest prompt of any model, as documented
	List    string   // the path of the list of models, which the gateway serves itself
	Queries []string // allowed query parameters
	// Allowed headers in addition to the common ones. "X-*" allows every name with this prefix.
	Headers []string

	// Fields are the allowed top-level fields of a request: the fields that the CLIs send, and
	// fields that only shape the response. Fields for further models, for tools of the provider or
	// for stored content would bypass this filter.
	Fields []string

	// Tools are the types of the tools that the client runs itself. An entry that ends in "_" is
	// the prefix of a type with a date. Tools that the provider runs can reach the web, so they
	// would bypass the network rules. A tool of Gemini has no type: each of its members is a kind
	// of tool.
	Tools []string
}

// route is one request that an agent may make, by POST.
type route struct {
	// The path below the provider's name. Without {model} the body names the model.
	Path  string
	Class string // the name in the log
	Free  bool   // the request uses no tokens
}

// common are the headers that the clients of every provider send and that do not identify the
// caller.
var common = strings.Fields("Accept Content-Type User-Agent X-Stainless-* X-Client-Request-Id Traceparent")

const openAI = "https://api.openai.com/v1"

// apis are the supported APIs. Base has the form of the variable with which the clients of the API
// override it: OpenAI's base ends in the version, the others do not.
var apis = map[meter.API]api{
	meter.Gemini: {
		Kind: meter.Gemini,
		Base: "https://generativelanguage.googleapis.com",
		Auth: "X-Goog-Api-Key",
		Routes: []route{
			{"/v1beta/models/{model}:streamGenerateContent", "stream", false},
			{"/v1beta/models/{model}:generateContent", "generate", false},
			{"/v1beta/models/{model}:countTokens", "count", true},
		},
		Longest: 65_536,
		Context: 2_097_152,
		List:    "/v1beta/models",
		Queries: []string{"alt"},
		Headers: []string{"X-Goog-Api-Client"},
		Fields:  strings.Fields("contents generationConfig safetySettings systemInstruction toolConfig tools"),
		Tools:   []string{"functionDeclarations", "function_declarations"},
	},
	meter.Anthropic: {
		Kind:    meter.Anthropic,
		Base:    "https://api.anthropic.com",
		Auth:    "X-Api-Key",
		Routes:  []route{{"/v1/messages", "messages", false}, {"/v1/messages/count_tokens", "count", true}},
		Longest: 128_000,
		Context: 1_000_000,
		List:    "/v1/models",
		Queries: []string{"beta"},
		Headers: strings.Fields("Anthropic-Version Anthropic-Beta Anthropic-Dangerous-Direct-Browser-Access " +
			"X-App X-Claude-*"),
		Fields: strings.Fields("cache_control context_management max_tokens messages metadata model " +
			"output_config service_tier speed stop_sequences stream system temperature thinking tool_choice " +
			"tools top_k top_p"),
		Tools: []string{"", "custom", "bash_", "text_editor_", "memory_", "computer_"}, // a tool without a type is run by the client
	},
	meter.Responses: {
		Kind:    meter.Responses,
		Base:    openAI,
		Strip:   "/v1",
		Auth:    "Authorization",
		Scheme:  "Bearer ",
		Routes:  []route{{"/v1/responses", "responses", false}},
		Longest: 128_000,
		Context: 1_050_000,
		List:    "/v1/models",
		Headers: strings.Fields("Openai-Beta Originator Version Session-Id Session_id Thread-Id X-Codex-*"),
		Fields: strings.Fields("background client_metadata include input instructions max_output_tokens " +
			"max_tool_calls metadata model parallel_tool_calls prompt_cache_key prompt_cache_retention " +
			"reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice " +
			"tools top_logprobs top_p truncation user"),
		Tools: strings.Fields("function custom local_shell namespace"),
	},
	meter.Chat: {
		Kind:    meter.Chat,
		Base:    openAI,
		Strip:   "/v1",
		Auth:    "Authorization",
		Scheme:  "Bearer ",
		Routes:  []route{{"/v1/chat/completions", "chat", false}},
		Longest: 128_000,
		Context: 1_050_000,
		List:    "/v1/models",
		Headers: strings.Fields("Openai-Beta Openai-Intent X-Initiator"),
		Fields: strings.Fields("frequency_penalty function_call functions logit_bias logprobs " +
			"max_completion_tokens max_tokens messages metadata model n parallel_tool_calls prediction " +
			"presence_penalty prompt_cache_key prompt_cache_retention reasoning reasoning_effort " +
			"response_format safety_identifier seed service_tier stop store stream stream_options temperature " +
			"tool_choice tools top_k top_logprobs top_p user verbosity"),
		Tools: []string{"function", "custom"},
	},
}

// usualTiers are the service tiers that cost at most the list price.
var usualTiers = []string{`"auto"`, `"default"`, `"standard"`, `"standard_only"`, `"flex"`}

// usual are the allowed values of fields. Other values cost more than the budget counts, or store
// content with the provider that a later request could use.
var usual = map[string][]string{
	"background": {"false"}, "store": {"false"}, "service_tier": usualTiers, "speed": usualTiers,
}

// The forwarder between the gateway and a server on abl's machine sets the header NoAnswer in an
// error response if the server did not respond. The value says whether the server may have read
// the request.
const (
	NoAnswer = "Abl-No-Answer"
	Asked    = "asked"
	NotAsked = "not asked"
)

type object map[string]any

// statusWords are the error types that the APIs use for the statuses of the gateway's own
// responses. The entries 4 and 5 are for all other statuses 4xx and 5xx.
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

// errorBody returns the body of an error response in the form of the API, so that its client shows
// the message. For an unknown API it uses the form of OpenAI, which most servers imitate.
func errorBody(kind meter.API, status int, message string) []byte {
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

// modelList returns the response to a request for the list of models. It has the fields of every
// API.
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

// upstreamHeader returns the headers of a request to a provider: the client's headers that the API
// allows, which contain no token, the headers of the setup, and the key.
func upstreamHeader(from http.Header, p *provider) http.Header {
	to := http.Header{
		"Accept-Encoding": {"identity"}, // the meter cannot read compressed responses
		"User-Agent":      {""},         // otherwise net/http adds its own
	}
	for name, values := range from {
		if listed(name, common) || listed(name, p.Headers) {
			to[name] = values
		}
	}
	for name, value := range p.Extra {
		to.Set(name, string(value))
	}
	if key := p.key.Load().key; key != "" {
		to.Set(p.Auth, p.Scheme+string(key))
	}
	return to
}

// listed reports whether a list contains a header. "X-*" in the list matches every name with this
// prefix.
func listed(name string, list []string) bool {
	for _, entry := range list {
		prefix, many := strings.CutSuffix(entry, "*")
		if name == entry || many && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// hopHeaders are the response headers that concern the connection to the provider, or that no agent
// needs.
var hopHeaders = strings.Fields("Connection Keep-Alive Proxy-Authenticate Proxy-Connection Te Trailer " +
	"Transfer-Encoding Upgrade Content-Length Set-Cookie Alt-Svc Strict-Transport-Security Clear-Site-Data")

// copyHeader copies the headers of a response for the client, except headers that contain the key.
func copyHeader(to, from http.Header, secret *redact.Redactor) {
	drop := slices.Clone(hopHeaders)
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
