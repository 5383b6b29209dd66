package modelserver

import (
	"encoding/json"
	"strings"
)

// The largest depth and size of an instance.
const (
	maxSchema = 32
	maxItems  = 4
)

// schema is the part of JSON Schema that the clients of this API use.
type schema struct {
	Type       any                `json:"type"`
	Enum       []any              `json:"enum"`
	Const      any                `json:"const"`
	Properties map[string]*schema `json:"properties"`
	Items      *schema            `json:"items"`
	AnyOf      []schema           `json:"anyOf"`
	MinItems   json.Number        `json:"minItems"`
	Minimum    *float64           `json:"minimum"`
}

// instance returns a small value that matches the schema.
func (s *schema) instance(depth int) any {
	switch {
	case s == nil || depth > maxSchema:
		return nil
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.AnyOf) > 0:
		return s.AnyOf[0].instance(depth + 1)
	}
	switch s.kind() {
	case "array":
		list := []any{}
		n, _ := s.MinItems.Int64() // 0 if it is missing
		for range min(n, maxItems) {
			list = append(list, s.Items.instance(depth+1))
		}
		return list
	case "boolean":
		return false
	case "number", "integer":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 0
	case "null":
		return nil
	case "string":
		return "scripted"
	}
	object := make(map[string]any, len(s.Properties))
	for name, p := range s.Properties {
		object[name] = p.instance(depth + 1)
	}
	return object
}

// kind returns the type in lower case, because one API writes it in upper case. If there are
// several types, it returns the first.
func (s *schema) kind() string {
	switch t := s.Type.(type) {
	case string:
		return strings.ToLower(t)
	case []any:
		if len(t) > 0 {
			word, _ := t[0].(string)
			return strings.ToLower(word)
		}
	}
	return ""
}
