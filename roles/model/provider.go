package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"abl/internal/config"
	"abl/internal/gateway/meter"
	"abl/roles/agent"
)

// Provider is the API of a provider.
type Provider struct {
	Name            string // also names the file with its key
	KeyVar, BaseVar string // variables for its key, and for another address
	Model           string // its default model
	names           *regexp.Regexp
	api             meter.API
	protocol        protocol
}

// protocol is how a provider's API streams an answer to one question.
type protocol struct {
	// path returns the path of a request below the API's address.
	path func(model string) string
	// header sets the headers with the key. once is the same for each try of a question.
	header func(h http.Header, key, once string)
	// body returns the request as a document.
	body func(model, prompt string) any
	// read reads an event of the answer: the provider's name of the model, and the next piece of text.
	read func(event []byte) (model, text string, err error)
}

// providers have the variables and default models of the agents of the same vendors.
var providers = []Provider{
	of("gemini", "gemini", `^gemini-`, generateContent),
	of("anthropic", "claude", `^claude-`, messages),
	of("openai", "codex", `^(gpt-|o[1-9])`, responses),
}

// of returns the provider that one of abl's agents uses.
func of(name, agentName, names string, p protocol) Provider {
	a, _ := agent.Find(agentName) // cannot fail for abl's own agents
	login := a.Logins[0]
	return Provider{
		Name:     name,
		KeyVar:   login.KeyVar,
		BaseVar:  login.BaseVar,
		Model:    a.DefaultModel,
		names:    regexp.MustCompile(names),
		api:      meter.API(login.API),
		protocol: p,
	}
}

// chat returns the provider OpenAI with the Chat API, for servers without the Responses API.
func (p Provider) chat() Provider {
	p.api, p.protocol = meter.Chat, chatCompletions
	return p
}

// Providers returns the providers.
func Providers() []Provider { return providers }

// Default returns the default model, which is also that of the default agent.
func Default() string {
	a, _ := agent.Find(config.Default().Agent.Builder) // cannot fail
	return a.DefaultModel
}

var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]*$`)

// Of returns the provider of a model: the one in the text of a file with models, or else the vendor of
// models with such a name. It returns the zero Provider for an unknown model. Each line of the file
// has a model and one of Words. Empty lines and lines that begin with # are ignored.
func Of(model, file string, text []byte) (of Provider, err error) {
	if i := slices.IndexFunc(providers, func(p Provider) bool { return p.names.MatchString(model) }); i >= 0 {
		of = providers[i]
	}
	for i, line := range bytes.Split(text, []byte("\n")) {
		words := strings.Fields(string(line))
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		p := byWord(words[len(words)-1])
		if len(words) != 2 || p.Name == "" || !modelName.MatchString(words[0]) {
			const want = "want a model and its provider (" + Words + "), such as gemini-3-pro gemini"
			return of, fmt.Errorf("%s line %d: %s", file, i+1, want)
		}
		if words[0] == model {
			of = p
		}
	}
	return of, nil
}

// Words are the names of providers in a file with models.
const Words = "gemini, anthropic, openai, or openai-chat for a server without OpenAI's Responses API"

// byWord returns the provider with a name in a file with models, or a Provider without a name.
func byWord(word string) Provider {
	for _, p := range providers {
		switch {
		case word == p.Name:
			return p
		case word == string(meter.Chat) && p.api == meter.Responses:
			return p.chat()
		}
	}
	return Provider{}
}

// object is a JSON object of a request.
type object = map[string]any

// generateContent is the API of Gemini.
var generateContent = protocol{
	path: func(model string) string {
		if !strings.Contains(model, "/") { // such as tunedModels/NAME
			model = "models/" + model
		}
		return "v1beta/" + model + ":streamGenerateContent?alt=sse"
	},
	header: func(h http.Header, key, _ string) { h.Set("X-Goog-Api-Key", key) },
	body: func(_, prompt string) any {
		return object{"contents": []object{{"role": "user", "parts": []object{{"text": prompt}}}}}
	},
	read: func(event []byte) (model, text string, err error) {
		var e struct {
			ModelVersion string
			Candidates   []struct {
				Content struct {
					Parts []struct {
						Text    string
						Thought bool
					}
				}
			}
		}
		err = json.Unmarshal(event, &e)
		for _, c := range e.Candidates {
			for _, part := range c.Content.Parts {
				if !part.Thought {
					text += part.Text
				}
			}
		}
		return e.ModelVersion, text, err
	},
}

// maxOutput is the number of tokens up to which a model of Anthropic answers. The API requires it,
// and models have different limits. It is what Claude Code requests from each model.
const maxOutput = 32_000

// messages is Anthropic's Messages API.
var messages = protocol{
	path: func(string) string { return "v1/messages" },
	header: func(h http.Header, key, _ string) {
		h.Set("X-Api-Key", key)
		h.Set("Anthropic-Version", "2023-06-01")
	},
	body: func(model, prompt string) any {
		return object{
			"model":      model,
			"max_tokens": maxOutput,
			"messages":   []object{{"role": "user", "content": prompt}},
			"stream":     true,
		}
	},
	read: func(event []byte) (model, text string, err error) {
		var e struct {
			Message struct{ Model string }
			Delta   struct{ Text string }
		}
		err = json.Unmarshal(event, &e)
		return e.Message.Model, e.Delta.Text, err
	},
}

// bearer sets the headers of OpenAI's APIs.
func bearer(h http.Header, key, once string) {
	h.Set("Authorization", "Bearer "+key)
	h.Set("Idempotency-Key", once)
}

// responses is OpenAI's Responses API.
var responses = protocol{
	path:   func(string) string { return "responses" },
	header: bearer,
	body: func(model, prompt string) any {
		return object{"model": model, "input": prompt, "store": false, "stream": true}
	},
	read: func(event []byte) (model, text string, err error) {
		var e struct {
			Type     string
			Delta    any // an object in other events
			Response struct{ Model string }
		}
		err = json.Unmarshal(event, &e)
		if e.Type == "response.output_text.delta" {
			text, _ = e.Delta.(string)
		}
		return e.Response.Model, text, err
	},
}

// chatCompletions is OpenAI's Chat API.
var chatCompletions = protocol{
	path:   func(string) string { return "chat/completions" },
	header: bearer,
	body: func(model, prompt string) any {
		return object{
			"model":          model,
			"messages":       []object{{"role": "user", "content": prompt}},
			"stream":         true,
			"stream_options": object{"include_usage": true},
		}
	},
	read: func(event []byte) (model, text string, err error) {
		var e struct {
			Model   string
			Choices []struct{ Delta struct{ Content string } }
		}
		err = json.Unmarshal(event, &e)
		for _, c := range e.Choices {
			text += c.Delta.Content
		}
		return e.Model, text, err
	},
}
