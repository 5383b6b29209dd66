package model

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"abl/internal/config"
	"abl/internal/gateway/meter"
	"abl/roles/agent"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"
)

// Provider is the API of a provider.
type Provider struct {
	Name            string // also names the file with its key
	KeyVar, BaseVar string // variables for its key, and for another address
	Model           string // its default model
	names           *regexp.Regexp
	api             meter.API
	// ask makes one try. It calls heard with each piece of the answer, and returns the SDK's error.
	ask func(ctx context.Context, q question) error
}

// question is one try of a question.
type question struct {
	key, base, model, prompt string
	once                     string // the same for each try
	client                   *http.Client
	heard                    func(model, text string)
}

// providers have the variables and default models of the agents of the same vendors.
var providers = []Provider{
	of("gemini", "gemini", `^gemini-`, askGemini),
	of("anthropic", "claude", `^claude-`, askMessages),
	of("openai", "codex", `^(gpt-|o[1-9])`, askResponses),
}

// of returns the provider that one of abl's agents uses.
func of(name, agentName, names string, ask func(context.Context, question) error) Provider {
	a, _ := agent.Find(agentName) // cannot fail for abl's own agents
	login := a.Logins[0]
	return Provider{
		Name:    name,
		KeyVar:  login.KeyVar,
		BaseVar: login.BaseVar,
		Model:   a.DefaultModel,
		names:   regexp.MustCompile(names),
		api:     meter.API(login.API),
		ask:     ask,
	}
}

// chat returns the provider OpenAI with the Chat API, for servers without the Responses API.
func (p Provider) chat() Provider {
	p.api, p.ask = meter.Chat, askChat
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

// askGemini sets the base address in any case, because the SDK would read it from the environment.
func askGemini(ctx context.Context, q question) error {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey:      q.key,
		Backend:     genai.BackendGeminiAPI,
		HTTPClient:  q.client,
		HTTPOptions: genai.HTTPOptions{BaseURL: q.base},
	})
	if err != nil {
		return err
	}
	once := &genai.GenerateContentConfig{AutomaticContinuation: new(false)}
	for event, err := range client.Models.GenerateContentStream(ctx, q.model, genai.Text(q.prompt), once) {
		if err != nil {
			return err
		}
		for _, c := range event.Candidates {
			if c.Content == nil {
				continue
			}
			for _, part := range c.Content.Parts {
				if part != nil && !part.Thought {
					q.heard(event.ModelVersion, part.Text)
				}
			}
		}
	}
	return nil
}

// maxOutput is the number of tokens up to which a model of Anthropic answers. The API requires it,
// and models have different limits. It is what Claude Code requests from each model.
const maxOutput = 32_000

// The SDKs' clients of the other providers read variables of the environment, their services do not.
// The Client does the retries.

// askMessages asks with Anthropic's Messages API.
func askMessages(ctx context.Context, q question) error {
	service := anthropic.NewMessageService(
		anthropicoption.WithAPIKey(q.key), anthropicoption.WithBaseURL(q.base),
		anthropicoption.WithHTTPClient(q.client), anthropicoption.WithMaxRetries(0),
	)
	events := service.NewStreaming(ctx, anthropic.MessageNewParams{
		Model: q.model, MaxTokens: maxOutput,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(q.prompt))},
	})
	for events.Next() {
		e := events.Current()
		q.heard(e.Message.Model, e.Delta.Text)
	}
	return events.Err()
}

func (q question) openAI() []option.RequestOption {
	return []option.RequestOption{
		option.WithAPIKey(q.key), option.WithBaseURL(q.base), option.WithHTTPClient(q.client),
		option.WithMaxRetries(0), option.WithHeader("Idempotency-Key", q.once),
	}
}

// askResponses asks with OpenAI's Responses API.
func askResponses(ctx context.Context, q question) error {
	service := responses.NewResponseService(q.openAI()...)
	events := service.NewStreaming(ctx, responses.ResponseNewParams{
		Model: q.model,
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(q.prompt)},
		Store: openai.Bool(false),
	})
	for events.Next() {
		e, text := events.Current(), ""
		if e.Type == "response.output_text.delta" {
			text = e.Delta
		}
		q.heard(e.Response.Model, text)
	}
	return events.Err()
}

// askChat asks with OpenAI's Chat API.
func askChat(ctx context.Context, q question) error {
	service := openai.NewChatCompletionService(q.openAI()...)
	events := service.NewStreaming(ctx, openai.ChatCompletionNewParams{
		Model:         q.model,
		Messages:      []openai.ChatCompletionMessageParamUnion{openai.UserMessage(q.prompt)},
		StreamOptions: openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)},
	})
	for events.Next() {
		e := events.Current()
		for _, c := range e.Choices {
			q.heard(e.Model, c.Delta.Content)
		}
	}
	return events.Err()
}
