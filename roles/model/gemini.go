package model

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"google.golang.org/genai"

	"abl/internal/tokens"
)

func gemini() provider {
	return provider{keyVar: "GEMINI_API_KEY", baseVar: "GOOGLE_GEMINI_BASE_URL", ask: askGemini, read: readGemini}
}

func askGemini(ctx context.Context, c call) (string, error) {
	client, err := genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: c.key, Backend: genai.BackendGeminiAPI, HTTPClient: c.http, HTTPOptions: genai.HTTPOptions{BaseURL: geminiBase(c.base)},
	})
	if err != nil {
		return "", err
	}
	resp, err := client.Models.GenerateContent(ctx, c.model, genai.Text(c.prompt), nil)
	if err != nil || len(resp.Candidates) == 0 || resp.Candidates[0].Content == nil {
		return "", err
	}
	var text strings.Builder
	for _, part := range resp.Candidates[0].Content.Parts {
		if part != nil && !part.Thought {
			text.WriteString(part.Text)
		}
	}
	return text.String(), nil
}

// geminiBase is never empty: the SDK would look into the environment.
func geminiBase(base string) string {
	if base == "" {
		return "https://generativelanguage.googleapis.com/"
	}
	return base
}

// readGemini reads by itself what the SDK would make a zero of.
func readGemini(body []byte) (reading, error) {
	var doc struct {
		Candidates     []struct{ FinishReason string }
		PromptFeedback struct{ BlockReason string }
		ModelVersion   string
		UsageMetadata  struct {
			PromptTokenCount, CandidatesTokenCount, CachedContentTokenCount, ThoughtsTokenCount, ToolUsePromptTokenCount, TotalTokenCount *int64
		}
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return reading{}, err
	}
	u := doc.UsageMetadata
	r := reading{model: doc.ModelVersion, usage: tokens.Count{
		Input: u.PromptTokenCount, Candidates: u.CandidatesTokenCount, Cached: u.CachedContentTokenCount,
		Thoughts: u.ThoughtsTokenCount, Tool: u.ToolUsePromptTokenCount, Total: u.TotalTokenCount,
	}}
	switch {
	case doc.PromptFeedback.BlockReason != "":
		r.finish, r.reason = Blocked, doc.PromptFeedback.BlockReason
	case len(doc.Candidates) == 0:
		return r, errors.New("there is no candidate in it")
	default:
		r.reason = doc.Candidates[0].FinishReason
		r.finish = geminiFinish(r.reason)
	}
	return r, nil
}

func geminiFinish(reason string) Finish {
	blocked := []string{"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"}
	switch {
	case reason == "STOP":
		return Whole
	case slices.Contains(blocked, reason):
		return Blocked
	}
	return Cut
}
