package model

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"google.golang.org/genai"

	"abl/internal/gateway/meter"
)

// Names of the providers, whose APIs models are asked through.
const (
	Google = "gemini"
	OpenAI = "openai"
)

// Catalog says whose API each model is asked through.
type Catalog map[string]string

// Known are the models that can always be asked.
func Known() Catalog { return Catalog{Gemini: Google, GPT: OpenAI} }

// Names are the models in a catalog, sorted.
func (c Catalog) Names() []string { return slices.Sorted(maps.Keys(c)) }

// Providers are those that there are, sorted.
func Providers() []string { return slices.Sorted(maps.Keys(providers)) }

var modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// With adds the models that a file lists: a line has a name and its provider, and
// one that begins with # says nothing.
func (c Catalog) With(file string, data []byte) (Catalog, error) {
	all := maps.Clone(c)
	no := 0
	for line := range strings.Lines(string(data)) {
		no++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		_, known := providers[words[len(words)-1]]
		if len(words) != 2 || !known || !modelName.MatchString(words[0]) {
			return nil, fmt.Errorf("%s line %d: want the name of a model and its provider (%s), such as gemini-3-pro gemini", file, no, strings.Join(Providers(), " or "))
		}
		all[words[0]] = words[1]
	}
	return all, nil
}

var gemini = provider{keyVar: "GEMINI_API_KEY", baseVar: "GOOGLE_GEMINI_BASE_URL", api: meter.Gemini, ask: askGemini}

// askGemini always gives a base address: the SDK would look into the environment.
func askGemini(ctx context.Context, c *Client, by *http.Client, prompt, _ string) (a Answer, err error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: c.Key, Backend: genai.BackendGeminiAPI, HTTPClient: by,
		HTTPOptions: genai.HTTPOptions{BaseURL: cmp.Or(c.Base, "https://generativelanguage.googleapis.com/")},
	})
	if err != nil {
		return a, err
	}
	resp, err := client.Models.GenerateContent(ctx, c.name, genai.Text(prompt), nil)
	if err != nil {
		return a, err
	}
	a.Model = resp.ModelVersion
	if len(resp.Candidates) == 0 {
		return a, errors.New("there is no candidate in it")
	}
	if said := resp.Candidates[0].Content; said != nil {
		for _, part := range said.Parts {
			if part != nil && !part.Thought {
				a.Text += part.Text
			}
		}
	}
	return a, nil
}

var openAI = provider{keyVar: "OPENAI_API_KEY", baseVar: "OPENAI_BASE_URL", api: meter.Chat, ask: askOpenAI}

// askOpenAI makes the service alone, not the SDK's client, which takes more from
// the environment than anybody asked for. Further tries are ours.
func askOpenAI(ctx context.Context, c *Client, by *http.Client, prompt, once string) (a Answer, err error) {
	chat := openai.NewChatCompletionService(
		option.WithAPIKey(c.Key), option.WithBaseURL(openAIBase(c.Base)), option.WithHTTPClient(by),
		option.WithMaxRetries(0), option.WithHeader("Idempotency-Key", once),
	)
	resp, err := chat.New(ctx, openai.ChatCompletionNewParams{
		Model:    c.name,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(prompt)},
	})
	if err != nil {
		return a, err
	}
	if len(resp.Choices) == 0 {
		return a, errors.New("there is no choice in it")
	}
	a.Text, a.Model = resp.Choices[0].Message.Content, resp.Model
	return a, nil
}

// openAIBase ends in /v1/ unless the person gave a path of their own.
func openAIBase(base string) string {
	if base == "" {
		return "https://api.openai.com/v1/"
	}
	if u, err := url.Parse(base); err == nil && strings.Trim(u.Path, "/") == "" {
		return u.JoinPath("v1").String() + "/"
	}
	return strings.TrimRight(base, "/") + "/"
}
