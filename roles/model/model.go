// Package model asks the APIs of models through their makers' own SDKs, one
// question at a time: what was sent and what came back are kept as they were on
// the wire, an answer that is not whole says so, and trouble that passes is
// waited out. No prompt, agent or budget may be in it.
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
	"time"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"
	"google.golang.org/genai"

	"abl/internal/gateway"
	"abl/internal/gateway/meter"
	"abl/internal/tokens"
)

// Finish says whether an answer is whole.
type Finish string

// The ways an answer ends. Whatever a provider says that is not known to mean a
// whole answer is one of the others.
const (
	Whole   Finish = "whole"
	Cut     Finish = "cut"     // it reached a limit, or nothing says that it is whole
	Blocked Finish = "blocked" // a filter or the model itself refused
)

// Answer is what a model said.
type Answer struct {
	Text   string
	Finish Finish
	Reason string // the provider's own word for how it ended
	Model  string // as the provider names it, else as it was asked
	Usage  tokens.Count
	Body   []byte // of the response, as received
	Tries  int
}

// Names of the models that are known.
const (
	Gemini = "gemini-2.5-pro"
	GPT    = "gpt-5"
)

// provider is what differs between APIs.
type provider struct {
	keyVar, baseVar string
	api             meter.API
	// ask makes one try, once being the same for each try of a question. It returns the
	// SDK's error, or what the SDK understood of an answer.
	ask func(ctx context.Context, c *Client, by *http.Client, prompt, once string) (Answer, error)
}

// providers are those whose APIs models are asked through.
var providers = map[string]provider{Google: gemini, OpenAI: openAI}

// KeyVar is the variable that holds the key for a provider, and BaseVar the one
// that gives another address.
func KeyVar(provider string) string { return providers[provider].keyVar }

// BaseVar is the variable that gives another address for a provider.
func BaseVar(provider string) string { return providers[provider].baseVar }

// Config is how a model is asked.
type Config struct {
	Provider  string // one of Providers
	Key       string
	Base      string // another address than the provider's own
	Transport http.RoundTripper
	Retries   int           // further tries after trouble that passes
	Patience  time.Duration // for one try
	// Wait is told why the next try has to wait and how long, and does so.
	Wait func(ctx context.Context, why error, d time.Duration) error
}

// Client asks one model.
type Client struct {
	Config
	name string
	p    provider
}

// New is a client of the model of that name.
func New(name string, c Config) (_ *Client, err error) {
	p := providers[c.Provider]
	if c.Base, err = address(c.Base, p.baseVar); err != nil {
		return nil, err
	}
	c.Transport = cmp.Or(c.Transport, http.DefaultTransport)
	return &Client{c, name, p}, nil
}

// Name is the model's name.
func (c *Client) Name() string { return c.name }

// address checks the address that a person gives instead of the provider's own.
// The key goes there, so it has to be encrypted or stay on this machine.
func address(raw, name string) (string, error) {
	if raw == "" {
		return "", nil
	}
	base, local, err := gateway.ParseAddress(raw)
	if err != nil {
		return "", fmt.Errorf("cannot use %s: %w", name, err)
	}
	if base.Scheme == "http" && !local {
		return "", fmt.Errorf("%s would send the key to %s unencrypted: use https", name, base.Hostname())
	}
	return base.String(), nil
}

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
