// Package api says what the providers' HTTP interfaces look like: which paths
// an agent needs, where they say the model, which headers matter to them and how
// they word an error. It is all data.
package api

import (
	"net/http"

	"abl/orchestrator/gateway/meter"
)

// API is one provider's interface.
type API struct {
	Kind    meter.API
	Base    string   // where the provider itself serves it
	Auth    string   // header that holds the key; see Bearer
	Routes  []Route  // everything else is refused
	Lists   []string // paths of the list of models, which the gateway answers itself
	Queries []string // names of parameters that may be passed on
	Headers []string // names that may be passed on; "x-*" stands for all that begin with it
}

// Bearer as Auth stands for "Authorization: Bearer KEY".
const Bearer = "bearer"

// Route is one request that an agent may make.
type Route struct {
	Method string     `json:"method"`
	Path   string     `json:"path"`         // below the provider's name; {model} stands for a model's name
	To     string     `json:"to,omitempty"` // below the upstream's base, "" when it is the same
	Class  string     `json:"class"`        // its name in the log
	Model  ModelPlace `json:"model"`        // where a request says its model
	Free   bool       `json:"free"`         // it makes no tokens
}

// ModelPlace is where a request names its model.
type ModelPlace string

// The places.
const (
	InPath  ModelPlace = "path"
	InBody  ModelPlace = "body"
	Nowhere ModelPlace = "none"
)

// common are the headers that every provider's clients send and that say
// nothing of who calls.
var common = []string{"Accept", "Content-Type", "User-Agent", "X-Stainless-*", "X-Client-Request-Id", "Traceparent"}

// Of returns the API of that kind, and whether there is one.
func Of(kind meter.API) (API, bool) {
	a, ok := known[kind]
	a.Headers = append(append([]string(nil), common...), a.Headers...)
	return a, ok
}

func post(path, to, class string, model ModelPlace, free bool) Route {
	return Route{Method: http.MethodPost, Path: path, To: to, Class: class, Model: model, Free: free}
}

// known are the four. Base is as in the variable with which each one's own
// clients override it: OpenAI's ends in the version, the others' do not.
var known = map[meter.API]API{
	meter.Gemini: {
		Kind: meter.Gemini, Base: "https://generativelanguage.googleapis.com", Auth: "X-Goog-Api-Key",
		Routes: []Route{
			post("/v1beta/models/{model}:streamGenerateContent", "", "stream", InPath, false),
			post("/v1beta/models/{model}:generateContent", "", "generate", InPath, false),
			post("/v1beta/models/{model}:countTokens", "", "count", InPath, true),
		},
		Lists: []string{"/v1beta/models"}, Queries: []string{"alt"}, Headers: []string{"X-Goog-Api-Client"},
	},
	meter.Anthropic: {
		Kind: meter.Anthropic, Base: "https://api.anthropic.com", Auth: "X-Api-Key",
		Routes: []Route{
			post("/v1/messages", "", "messages", InBody, false),
			post("/v1/messages/count_tokens", "", "count", InBody, true),
		},
		Lists: []string{"/v1/models"}, Queries: []string{"beta"},
		Headers: []string{"Anthropic-Version", "Anthropic-Beta", "Anthropic-Dangerous-Direct-Browser-Access", "X-App", "X-Claude-*"},
	},
	meter.Responses: {
		Kind: meter.Responses, Base: "https://api.openai.com/v1", Auth: Bearer,
		Routes: []Route{post("/v1/responses", "/responses", "responses", InBody, false)},
		Lists:  []string{"/v1/models"}, Headers: []string{"Openai-Beta", "Originator", "Version", "Session-Id", "Session_id", "Thread-Id", "X-Codex-*"},
	},
	meter.Chat: {
		Kind: meter.Chat, Base: "https://api.openai.com/v1", Auth: Bearer,
		Routes: []Route{post("/v1/chat/completions", "/chat/completions", "chat", InBody, false)},
		Lists:  []string{"/v1/models"}, Headers: []string{"Openai-Beta", "Openai-Intent", "X-Initiator"},
	},
}
