package model

import (
	"cmp"
	"context"
	"errors"

	"google.golang.org/genai"

	"abl/internal/gateway/meter"
)

var gemini = provider{keyVar: "GEMINI_API_KEY", baseVar: "GOOGLE_GEMINI_BASE_URL", api: meter.Gemini, ask: askGemini}

// askGemini always gives a base address: the SDK would look into the environment.
func askGemini(ctx context.Context, c call) (a Answer, err error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: c.key, Backend: genai.BackendGeminiAPI, HTTPClient: c.http,
		HTTPOptions: genai.HTTPOptions{BaseURL: cmp.Or(c.base, "https://generativelanguage.googleapis.com/")},
	})
	if err != nil {
		return a, err
	}
	resp, err := client.Models.GenerateContent(ctx, c.model, genai.Text(c.prompt), nil)
	if err != nil {
		return a, err
	}
	a.Model = resp.ModelVersion
	switch {
	case resp.PromptFeedback != nil && resp.PromptFeedback.BlockReason != "":
		a.Reason = string(resp.PromptFeedback.BlockReason)
		return a, nil
	case len(resp.Candidates) == 0:
		return a, errors.New("there is no candidate in it")
	}
	said := resp.Candidates[0]
	a.Reason = string(said.FinishReason)
	if said.Content == nil {
		return a, nil
	}
	for _, part := range said.Content.Parts {
		if part != nil && !part.Thought {
			a.Text += part.Text
		}
	}
	return a, nil
}
