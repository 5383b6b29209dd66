package modelserver

import (
	"encoding/json"
	"strings"
)

// conversation is what requests of Anthropic's Messages and of OpenAI's Chat have
// in common: the turns so far, each with the role whose it is.
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

// words are the user's.
func (c *conversation) words() string {
	var b strings.Builder
	for _, one := range c.Messages {
		if one.Role == "user" {
			b.WriteString(texts(one.Content))
		}
	}
	return b.String()
}
