package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

var errNoObject = errors.New("the body is not a JSON object")

// members returns the named members of a JSON object. A name that is there twice,
// or in another case, is refused: programs differ in which one they take.
func members(body []byte, names ...string) (map[string]json.RawMessage, error) {
	found := map[string]json.RawMessage{}
	var odd error
	s := scan{text: body, member: func(key, value []byte) {
		if err := note(found, names, key, value); odd == nil {
			odd = err
		}
	}}
	if !s.document() {
		return nil, errNoObject
	}
	if odd != nil {
		return nil, odd
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
