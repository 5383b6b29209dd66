package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// refers reports whether a body names a file or an address, at any depth, with content that the
// provider adds to the prompt. It returns true for a body that is not valid JSON.
func refers(body []byte) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // of any size
	return refersIn(d, "", "")
}

// refersIn is refers for the next value of d, whose name is name and which is in an object with the
// name of. The entries of a list have the name of the list. Each name begins with a point.
func refersIn(d *json.Decoder, of, name string) bool {
	token, err := d.Token()
	switch token := token.(type) {
	case string:
		return isReference(of, name, token)
	case json.Delim:
		for d.More() {
			member := name
			if token == '{' {
				key, _ := d.Token() // the next call returns an error, too
				member = fmt.Sprint(".", key)
			}
			if refersIn(d, name, member) {
				return true
			}
		}
		_, err = d.Token() // the end
	}
	return err != nil
}

// isReference reports whether a text refers to content elsewhere, by its name and by the name of the
// object that contains it.
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
