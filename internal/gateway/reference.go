package gateway

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// refers reports whether a body names a file or an address whose content the provider adds to
// the prompt, wherever that is. A body that cannot be read to its end counts as one that does.
func refers(body []byte) bool {
	type level struct {
		list      bool
		name, key string // under which it is, and of its member that is read
	}
	d, at, stack := json.NewDecoder(bytes.NewReader(body)), level{list: true}, []level(nil)
	d.UseNumber() // which may be of any size
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
					at.key = at.name // of what is in it, too
				}
				continue
			}
			at, stack = stack[len(stack)-1], stack[:len(stack)-1]
		case string:
			if !at.list && at.key == "" {
				at.key = "." + token // so that an empty name is one
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

// isReference reports whether a text stands for content elsewhere, by its name and by that of
// what it is a member of, each behind a point.
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
