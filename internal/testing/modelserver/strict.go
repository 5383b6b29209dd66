package modelserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"regexp"
	"slices"
)

// rules lists what an API's documentation requires of every request. abl's gateway has its own
// rules, so that each can reveal a mistake of the other.
type rules struct {
	headers []string // required
	fields  []string // all top-level fields
	beta    []string // top-level fields that the header anthropic-beta enables
	needs   []string // required top-level fields
	unknown string   // the API's message for an unknown field, given its name
	missing string   // the API's message for a missing field
	more    func(r *http.Request, body []byte) string
}

// strict returns the error with which the real API refuses a request, or nil.
func (l rules) strict(r *http.Request, body []byte) *apiError {
	for _, name := range l.headers {
		if r.Header.Get(name) == "" {
			return invalid("%s: header is required", name)
		}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return invalid("Unsupported content type: '%s'. This API method only accepts 'application/json' requests",
			r.Header.Get("Content-Type"))
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil {
		return invalid("the request is not a JSON object: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(l.fields, name) || slices.Contains(l.beta, name) && r.Header.Get("Anthropic-Beta") == "" {
			return invalid(l.unknown, name)
		}
	}
	for _, name := range l.needs {
		if raw := members[name]; len(raw) == 0 || string(raw) == "null" || string(raw) == "[]" || string(raw) == `""` {
			return invalid(l.missing, name)
		}
	}
	if why := l.more(r, body); why != "" {
		return invalid("%s", why)
	}
	return nil
}

// reasoning matches the OpenAI models with reasoning, which refuse some settings of other models.
var reasoning = regexp.MustCompile(`^(o[1-9]|gpt-[5-9])`)

// set holds the settings that such a model refuses.
type set struct {
	Model     string   `json:"model"`
	MaxTokens *int64   `json:"max_tokens"`
	Heat      *float64 `json:"temperature"`
	TopP      *float64 `json:"top_p"`
	Presence  float64  `json:"presence_penalty"`
	Frequency float64  `json:"frequency_penalty"`
	Reasoning struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Effort string `json:"reasoning_effort"`
}

// refused returns the error for the first setting that the model of a request refuses, or "".
func refused(body []byte) string {
	var s set
	if json.Unmarshal(body, &s) != nil || !reasoning.MatchString(s.Model) {
		return ""
	}
	if s.MaxTokens != nil {
		return "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
	}
	if s.Reasoning.Effort == "none" || s.Effort == "none" {
		return ""
	}
	for name, odd := range map[string]bool{
		"temperature": s.Heat != nil && *s.Heat != 1, "top_p": s.TopP != nil && *s.TopP != 1,
		"presence_penalty": s.Presence != 0, "frequency_penalty": s.Frequency != 0,
	} {
		if odd {
			return fmt.Sprintf("Unsupported value: '%s' does not support another value than the default with this model.", name)
		}
	}
	return ""
}

// calls holds the ids of tool calls without a result.
type calls map[string]bool

// answer removes the call of a result. It returns false if there is no such call.
func (c calls) answer(id string) bool {
	if !c[id] {
		return false
	}
	delete(c, id)
	return true
}
