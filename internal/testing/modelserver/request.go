package modelserver

import (
	"encoding/json"
	"strings"
)

// request is the part of a request that the server reads.
type request struct {
	Contents []struct {
		Role  string `json:"role"`
		Parts []struct {
			Text             string          `json:"text"`
			FunctionResponse json.RawMessage `json:"functionResponse"`
		} `json:"parts"`
	} `json:"contents"`
	Tools []struct {
		FunctionDeclarations []struct {
			Name string `json:"name"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	GenerationConfig struct {
		ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
		ResponseSchema     json.RawMessage `json:"responseSchema"`
	} `json:"generationConfig"`
}

// prompt returns the user's texts, in order.
func (r *request) prompt() string {
	var b strings.Builder
	for _, c := range r.Contents {
		if c.Role == "model" {
			continue
		}
		for _, p := range c.Parts {
			b.WriteString(p.Text)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// done returns the number of executed functions.
func (r *request) done() int {
	n := 0
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			if len(p.FunctionResponse) > 0 {
				n++
			}
		}
	}
	return n
}

// schema returns the JSON schema that the response must match, or nil.
func (r *request) schema() json.RawMessage {
	if s := r.GenerationConfig.ResponseJSONSchema; len(s) > 0 {
		return s
	}
	return r.GenerationConfig.ResponseSchema
}

// size returns the number of bytes of all texts.
func (r *request) size() int {
	n := 0
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			n += len(p.Text) + len(p.FunctionResponse)
		}
	}
	return n
}
