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

// rules are what an API's documents ask of every request. They are this server's
// own and not those of abl's gateway, so that each finds out what the other missed.
type rules struct {
	headers []string // that have to be there
	fields  []string // all of the outermost level
	beta    []string // those of them that the header anthropic-beta opens
	needs   []string // those of them that have to be there
	unknown string   // what the API says of another, given its name
	missing string   // and of one that is not there
	more    func(r *http.Request, body []byte) string
}

// strict is the refusal with which the real API would answer a request, nil where
// it would take it.
func (l rules) strict(r *http.Request, body []byte) *apiError {
	for _, name := range l.headers {
		if r.Header.Get(name) == "" {
			return invalid("%s: header is required", name)
		}
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return invalid("Unsupported content type: '%s'. This API method only accepts 'application/json' requests", r.Header.Get("Content-Type"))
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

// reasoning are OpenAI's models that think before they answer, which refuse what
// the others take.
var reasoning = regexp.MustCompile(`^(o[1-9]|gpt-[5-9])`)

// set are the settings that such a model refuses.
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

// refused says which setting the model of a request refuses.
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

// calls are those of tools whose results are still to come.
type calls map[string]bool

// answer takes a result; false when nobody called for it.
func (c calls) answer(id string) bool {
	if !c[id] {
		return false
	}
	delete(c, id)
	return true
}
