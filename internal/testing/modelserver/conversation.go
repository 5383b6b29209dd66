package modelserver

import (
	"encoding/json"
	"strings"
)

// conversation is the common part of requests to Anthropic's Messages and OpenAI's Chat: the
// model, and the turns so far, each with its role.
type conversation struct {
	Model    string   `json:"model"`
	Stream   bool     `json:"stream"`
	Tools    declared `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

func (c *conversation) asked() (string, bool) { return c.Model, c.Stream }

// prompt returns the texts of the user.
func (c *conversation) prompt() string {
	var b strings.Builder
	for _, one := range c.Messages {
		if one.Role == "user" {
			b.WriteString(texts(one.Content))
		}
	}
	return b.String()
}
