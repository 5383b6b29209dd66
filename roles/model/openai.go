package model

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"

	"abl/internal/gateway/meter"
)

var openAI = provider{keyVar: "OPENAI_API_KEY", baseVar: "OPENAI_BASE_URL", api: meter.Chat, ask: askOpenAI}

// askOpenAI makes the service alone, not the SDK's client, which takes more from
// the environment than anybody asked for. Further tries are ours.
func askOpenAI(ctx context.Context, c call) (a Answer, err error) {
	chat := openai.NewChatCompletionService(
		option.WithAPIKey(c.key), option.WithBaseURL(openAIBase(c.base)), option.WithHTTPClient(c.http),
		option.WithMaxRetries(0), option.WithHeader("Idempotency-Key", c.once),
	)
	resp, err := chat.New(ctx, openai.ChatCompletionNewParams{
		Model:    c.model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(c.prompt)},
	})
	if err != nil {
		return a, err
	}
	if len(resp.Choices) == 0 {
		return a, errors.New("there is no choice in it")
	}
	said := resp.Choices[0]
	a.Text, a.Model, a.Reason = said.Message.Content, resp.Model, said.FinishReason
	if said.Message.Refusal != "" {
		a.Reason = "refusal"
	}
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
