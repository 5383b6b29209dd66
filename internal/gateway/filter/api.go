package filter

import "abl/internal/gateway/meter"

// API is what a provider's HTTP interface looks like.
type API struct {
	Kind    meter.API
	Base    string   // where the provider itself serves it
	Auth    string   // header that holds the key; see Bearer
	Routes  []Route  // everything else is refused
	List    string   // path of the list of models, which the gateway answers itself
	Queries []string // names of parameters that may be passed on
	Headers []string // names that may be passed on besides the common ones; "X-*" stands for all that begin with it
}

// Bearer as Auth stands for "Authorization: Bearer KEY".
const Bearer = "bearer"

// Route is one request that an agent may make, by POST.
type Route struct {
	Path   string // below the provider's name; {model} stands for a model's name
	To     string // below the upstream's base
	Class  string // its name in the log
	InPath bool   // the path names the model; else the body does
	Free   bool   // it makes no tokens
}

// Common are the headers that every provider's clients send and that say nothing of
// who calls.
var Common = []string{"Accept", "Content-Type", "User-Agent", "X-Stainless-*", "X-Client-Request-Id", "Traceparent"}

const (
	geminiModel = "/v1beta/models/{model}:"
	openAI      = "https://api.openai.com/v1"
	messages    = "/v1/messages"
)

// APIs are the four. Base is as in the variable with which each one's own clients
// override it: OpenAI's ends in the version, the others' do not.
var APIs = map[meter.API]API{
	meter.Gemini: {
		Kind: meter.Gemini, Base: "https://generativelanguage.googleapis.com", Auth: "X-Goog-Api-Key",
		Routes: []Route{
			{geminiModel + "streamGenerateContent", geminiModel + "streamGenerateContent", "stream", true, false},
			{geminiModel + "generateContent", geminiModel + "generateContent", "generate", true, false},
			{geminiModel + "countTokens", geminiModel + "countTokens", "count", true, true},
		},
		List: "/v1beta/models", Queries: []string{"alt"}, Headers: []string{"X-Goog-Api-Client"},
	},
	meter.Anthropic: {
		Kind: meter.Anthropic, Base: "https://api.anthropic.com", Auth: "X-Api-Key",
		Routes: []Route{
			{messages, messages, "messages", false, false},
			{messages + "/count_tokens", messages + "/count_tokens", "count", false, true},
		},
		List: "/v1/models", Queries: []string{"beta"},
		Headers: []string{"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access", "X-App", "X-Claude-*"},
	},
	meter.Responses: {
		Kind: meter.Responses, Base: openAI, Auth: Bearer,
		Routes: []Route{{"/v1/responses", "/responses", "responses", false, false}},
		List:   "/v1/models", Headers: []string{"Openai-Beta", "Originator", "Version", "Session-Id", "Session_id", "Thread-Id", "X-Codex-*"},
	},
	meter.Chat: {
		Kind: meter.Chat, Base: openAI, Auth: Bearer,
		Routes: []Route{{"/v1/chat/completions", "/chat/completions", "chat", false, false}},
		List:   "/v1/models", Headers: []string{"Openai-Beta", "Openai-Intent", "X-Initiator"},
	},
}
