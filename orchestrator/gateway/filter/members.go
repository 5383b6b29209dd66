package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

var errNoObject = errors.New("the body is not a JSON object")

// members returns the named members of a JSON object. A name that is there twice,
// or in another case, is refused: programs differ in which one they take.
func members(body []byte, names ...string) (map[string]json.RawMessage, error) {
	at := space(body, 0)
	if at == len(body) || body[at] != '{' || !json.Valid(body) {
		return nil, errNoObject
	}
	found := map[string]json.RawMessage{}
	for at = space(body, at+1); body[at] != '}'; {
		key := body[at:endOfString(body, at)]
		from := space(body, space(body, at+len(key))+1) // behind the colon
		at = endOfValue(body, from)
		if err := note(found, names, key, body[from:at]); err != nil {
			return nil, err
		}
		if at = space(body, at); body[at] == ',' {
			at = space(body, at+1)
		}
	}
	return found, nil
}

// note keeps a member that is asked for.
func note(found map[string]json.RawMessage, names []string, key, value []byte) error {
	var name string
	if err := json.Unmarshal(key, &name); err != nil {
		return errNoObject
	}
	for _, want := range names {
		if !strings.EqualFold(name, want) {
			continue
		}
		if found[want] != nil || name != want {
			return fmt.Errorf("the body has %q twice or in another spelling", want)
		}
		found[want] = value
	}
	return nil
}

// The rest walks JSON that is known to be valid.

func space(body []byte, at int) int {
	for at < len(body) && (body[at] == ' ' || body[at] == '\t' || body[at] == '\r' || body[at] == '\n') {
		at++
	}
	return at
}

func endOfString(body []byte, at int) int {
	for at++; ; at += 2 { // past a backslash and what it escapes
		at += bytes.IndexAny(body[at:], `"\`)
		if body[at] == '"' {
			return at + 1
		}
	}
}

func endOfValue(body []byte, at int) int {
	depth := 0
	for {
		switch body[at] {
		case '"':
			if at = endOfString(body, at); depth == 0 {
				return at
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',', ' ', '\t', '\r', '\n':
			if depth == 0 { // behind a number or a word
				return at
			}
			if body[at] == '}' || body[at] == ']' {
				if depth--; depth == 0 {
					return at + 1
				}
			}
		}
		at++
	}
}
