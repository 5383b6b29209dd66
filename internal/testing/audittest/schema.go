// Package audittest validates JSON documents against a JSON Schema. It supports the keywords that
// the schemas in docs/ use. Any other keyword is an error, so that no rule of a schema is
// ignored.
package audittest

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"abl/internal/yamlfile"
)

// FromYAML converts a YAML document to JSON. An empty document becomes an empty object.
func FromYAML(name string, data []byte) ([]byte, error) {
	doc := map[string]any{}
	if err := yamlfile.Decode(name, data, &doc); err != nil {
		return nil, err
	}
	return json.Marshal(doc)
}

// Violations returns the places where doc does not match schema, and why. If one of the two is
// not valid JSON, that is the only violation.
func Violations(schema, doc []byte) []string {
	var root map[string]any
	var value any
	if err := json.Unmarshal(schema, &root); err != nil {
		return []string{"invalid schema: " + err.Error()}
	}
	if err := json.Unmarshal(doc, &value); err != nil {
		return []string{"invalid document: " + err.Error()}
	}
	c := checker{root: root}
	c.check("$", root, value)
	return c.wrong
}

type checker struct {
	root  map[string]any
	wrong []string
}

// report adds a violation at a path.
func (c *checker) report(at, format string, args ...any) {
	c.wrong = append(c.wrong, at+": "+fmt.Sprintf(format, args...))
}

// check validates one value against one schema.
func (c *checker) check(at string, schema map[string]any, v any) {
	for keyword, want := range schema {
		switch keyword {
		case "$schema", "$defs", "title", "description", "default", "examples", "additionalProperties":
		case "$ref":
			name := strings.TrimPrefix(want.(string), "#/$defs/")
			def, ok := c.root["$defs"].(map[string]any)[name].(map[string]any)
			if !ok {
				c.report(at, "the schema refers to %v, which it does not define", want)
				continue
			}
			c.check(at, def, v)
		case "type":
			kinds, many := want.([]any)
			if !many {
				kinds = []any{want}
			}
			kind := kindOf(v)
			if !slices.Contains(kinds, any(kind)) && (kind != "integer" || !slices.Contains(kinds, "number")) {
				c.report(at, "%v is not of type %v", v, want)
			}
		case "anyOf":
			c.anyOf(at, want.([]any), v)
		case "const":
			if v != want {
				c.report(at, "%v is not %v", v, want)
			}
		case "enum":
			if !slices.Contains(want.([]any), v) {
				c.report(at, "%q is not one of %v", v, want)
			}
		case "minimum", "maximum":
			c.limit(at, keyword, want.(float64), v)
		case "propertyNames":
			o, _ := v.(map[string]any)
			for name := range o {
				c.check(at+"."+name, want.(map[string]any), name)
			}
		case "pattern", "format":
			if s, ok := v.(string); ok {
				c.text(at, keyword, want.(string), s)
			}
		case "items":
			all, _ := v.([]any)
			for i, e := range all {
				c.check(fmt.Sprintf("%s[%d]", at, i), want.(map[string]any), e)
			}
		case "required", "properties":
			if o, ok := v.(map[string]any); ok && keyword == "required" {
				c.required(at, want.([]any), o)
			}
		default:
			c.report(at, "the schema has the unsupported keyword %q", keyword)
		}
	}
	if o, ok := v.(map[string]any); ok {
		c.members(at, schema, o)
	}
}

// limit checks a number against a minimum or a maximum.
func (c *checker) limit(at, keyword string, limit float64, v any) {
	n, ok := v.(float64)
	if ok && (keyword == "minimum" && n < limit || keyword == "maximum" && n > limit) {
		c.report(at, "%v is beyond the %s of %v", n, keyword, limit)
	}
}

// anyOf reports a violation unless the value matches one of the schemas.
func (c *checker) anyOf(at string, schemas []any, v any) {
	var all []string
	for _, s := range schemas {
		one := checker{root: c.root}
		if one.check(at, s.(map[string]any), v); len(one.wrong) == 0 {
			return
		}
		all = append(all, one.wrong...)
	}
	c.wrong = append(c.wrong, all...)
}

// text checks a string against a pattern or a format.
func (c *checker) text(at, keyword, want, s string) {
	switch keyword {
	case "pattern":
		if !regexp.MustCompile(want).MatchString(s) {
			c.report(at, "%q does not match %s", s, want)
		}
	case "format":
		if _, err := time.Parse(time.RFC3339, s); err != nil || want != "date-time" {
			c.report(at, "%q is not a %s", s, want)
		}
	}
}

// required reports each missing member of an object.
func (c *checker) required(at string, names []any, o map[string]any) {
	for _, name := range names {
		if _, ok := o[name.(string)]; !ok {
			c.report(at, "%v is missing", name)
		}
	}
}

// members validates each member of an object against its own schema, or against the schema for
// all other members.
func (c *checker) members(at string, schema, o map[string]any) {
	own, _ := schema["properties"].(map[string]any)
	for name, v := range o {
		if s, ok := own[name].(map[string]any); ok {
			c.check(at+"."+name, s, v)
			continue
		}
		switch others := schema["additionalProperties"].(type) {
		case map[string]any:
			c.check(at+"."+name, others, v)
		case bool:
			if !others {
				c.report(at, "%s is not in the schema", name)
			}
		}
	}
}

// kindOf returns the JSON Schema name of a value's type.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
	}
	return "number"
}
