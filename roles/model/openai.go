package model

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"

	"github.com/openai/openai-go"
	"github.com/openai/openai-go/option"

	"abl/internal/tokens"
)

func openAI() provider {
	return provider{keyVar: "OPENAI_API_KEY", baseVar: "OPENAI_BASE_URL", ask: askOpenAI, read: readOpenAI}
}

// askOpenAI makes the service alone, not the SDK's client, which takes more from
// the environment than anybody asked for. Further tries are ours.
func askOpenAI(ctx context.Context, c call) (string, error) {
	chat := openai.NewChatCompletionService(
		option.WithAPIKey(c.key), option.WithBaseURL(openAIBase(c.base)), option.WithHTTPClient(c.http),
		option.WithMaxRetries(0), option.WithHeader("Idempotency-Key", c.once),
	)
	resp, err := chat.New(ctx, openai.ChatCompletionNewParams{
		Model:    c.model,
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(c.prompt)},
	})
	if err != nil || len(resp.Choices) == 0 {
		return "", err
	}
	return resp.Choices[0].Message.Content, nil
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

func readOpenAI(body []byte) (reading, error) {
	var doc struct {
		Model   string
		Choices []struct {
			FinishReason string `json:"finish_reason"`
			Message      struct{ Refusal string }
		}
		Usage struct {
			Prompt     *int64 `json:"prompt_tokens"`
			Completion *int64 `json:"completion_tokens"`
			Total      *int64 `json:"total_tokens"`
			Input      struct {
				Cached *int64 `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
			Output struct {
				Reasoning *int64 `json:"reasoning_tokens"`
			} `json:"completion_tokens_details"`
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return reading{}, err
	}
	if len(doc.Choices) == 0 {
		return reading{}, errors.New("there is no choice in it")
	}
	u := doc.Usage
	r := reading{model: doc.Model, reason: doc.Choices[0].FinishReason, finish: Cut, usage: tokens.Count{
		Input: u.Prompt, Candidates: u.Completion, Cached: u.Input.Cached, Thoughts: u.Output.Reasoning, Total: u.Total,
	}}
	r.usage = r.usage.WithoutThoughts()
	switch {
	case doc.Choices[0].Message.Refusal != "":
		r.finish, r.reason = Blocked, "refusal"
	case r.reason == "content_filter":
		r.finish = Blocked
	case r.reason == "stop":
		r.finish = Whole
	}
	return r, nil
}
