package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// refers reports whether a body names a file or an address, at any depth, with content that the
// provider adds to the prompt. It returns true for a body that is not valid JSON.
func refers(body []byte) bool {
	type level struct {
		list      bool
		name, key string // the name of the value, and of the member that is being read
	}
	d, at, stack := json.NewDecoder(bytes.NewReader(body)), level{list: true}, []level(nil)
	d.UseNumber() // of any size
	for {
		token, err := d.Token()
		if err != nil {
			return !errors.Is(err, io.EOF) || len(stack) > 0
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				stack = append(stack, at)
				at = level{list: token == '[', name: at.key}
				if at.list {
					at.key = at.name // its entries have its name
				}
				continue
			}
			at, stack = stack[len(stack)-1], stack[:len(stack)-1]
		case string:
			if !at.list && at.key == "" {
				at.key = "." + token // an empty name is not ""
				continue
			}
			if isReference(at.name, at.key, token) {
				return true
			}
		}
		if !at.list {
			at.key = ""
		}
	}
}

// isReference reports whether a text refers to content elsewhere, by its name and by the name of the
// object that contains it. Each name begins with a point.
func isReference(of, name, text string) bool {
	switch name {
	case ".fileUri", ".file_uri", ".file_url", ".file_id": // Gemini; OpenAI; OpenAI and Anthropic
		return text != ""
	case ".url":
		return (of == ".image_url" || of == ".source") && !strings.HasPrefix(text, "data:") // Chat; Anthropic
	case ".image_url":
		return !strings.HasPrefix(text, "data:") // Responses
	}
	return false
}
