package filter

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"abl/internal/gateway/meter"
)

// oddForm stands for a tool that cannot be read.
const oddForm = "of another form"

// deepest is how far tools may lie in one another.
const deepest = 3

// object is what the body, or a part of it, holds on its outermost level.
type object map[string]json.RawMessage

// Body decides on the body of a request that has passed so far, and fills in
// the model where the body names it.
func (v *Verdict) Body(body []byte) {
	p := v.Provider
	if p.Key != "" && bytes.Contains(body, []byte(p.Key)) {
		v.refuse(http.StatusForbidden, "the body holds the provider's key")
		return
	}
	members, err := members(body)
	if errors.Is(err, meter.ErrForm) {
		err = errors.New("the body is not a JSON object")
	}
	if err != nil {
		v.refuse(http.StatusBadRequest, err.Error())
		return
	}
	if !strings.Contains(v.Route.Path, inPath) {
		model := text(members["model"])
		if v.Model = clip(model); !slices.Contains(p.Models, model) {
			v.refuse(http.StatusForbidden, p.otherModel(model))
			return
		}
	}
	v.MaxTokens = maxTokens(members)
	if why := p.oddField(members); why != "" {
		v.refuse(http.StatusForbidden, why)
	} else if tool := p.providersTool(members); tool != "" {
		v.refuse(http.StatusForbidden, fmt.Sprintf("the tool %q is none that the agent runs itself; the agent has to do without it", clip(tool)))
	}
}

// otherModel says that a request asks for another model than the call's.
func (p *Provider) otherModel(model string) string {
	return fmt.Sprintf("the model %q is not this call's, which is %q; models in .abl/config.yaml names it in full", clip(model), strings.Join(p.Models, ", "))
}

// maxTokens is how many an answer may have, as far as its request says.
func maxTokens(o object) (n int64) {
	if inner, err := members(o["generationConfig"]); err == nil {
		o = inner
	}
	for _, name := range []string{"max_tokens", "max_output_tokens", "max_completion_tokens", "maxOutputTokens"} {
		if json.Unmarshal(o[name], &n) == nil {
			return n
		}
	}
	return 0
}

// oddField says why a field may not pass, "" when all may.
func (p *Provider) oddField(o object) string {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		values, bound := usual[name]
		switch value := o[name]; {
		case !slices.Contains(p.Fields, name):
			return fmt.Sprintf("the field %q is none that passes (docs/gateway.md); the agent has to leave it out", clip(name))
		case bound && !none(value) && !slices.Contains(values, string(value)):
			return fmt.Sprintf("the field %q may not be %s, only %s", name, clip(string(value)), strings.Join(values, ", "))
		}
	}
	return ""
}

// providersTool names the first tool of a request that its client would not run, ""
// when there is none. Later models of Anthropic and OpenAI are told of tools amid the
// conversation, too.
func (p *Provider) providersTool(o object) string {
	tool := func(o object) string { return p.oddTool(o, deepest) }
	if odd := each(o["tools"], tool); odd != "" {
		return odd
	}
	switch p.Kind {
	case meter.Anthropic:
		return each(o["messages"], func(turn object) string {
			if !begins(turn["content"], '[') {
				return ""
			}
			return each(turn["content"], func(block object) string {
				if none(block["tool"]) {
					return ""
				}
				return one(block["tool"], func(added object) string {
					if text(added["type"]) == "tool_reference" {
						return ""
					}
					return one(added["definition"], tool)
				})
			})
		})
	case meter.Responses:
		if begins(o["input"], '"') {
			return ""
		}
		return each(o["input"], func(item object) string {
			if kind := text(item["type"]); kind == "item_reference" { // to what the provider has stored
				return kind
			}
			return each(item["tools"], tool)
		})
	}
	return ""
}

// oddTool names a tool that the client does not run.
func (p *Provider) oddTool(o object, depth int) string {
	names := []string{text(o["type"])}
	if p.Kind == meter.Gemini {
		names = slices.Sorted(maps.Keys(o))
	} else if depth == 0 || names[0] == "" && o["type"] != nil {
		return oddForm
	}
	for _, name := range names {
		own := func(t string) bool { return t == name || strings.HasSuffix(t, "_") && strings.HasPrefix(name, t) }
		if !slices.ContainsFunc(p.Tools, own) {
			return cmp.Or(name, oddForm)
		}
	}
	return each(o["tools"], func(inner object) string { return p.oddTool(inner, depth-1) })
}

// each looks at the objects of a list until one is odd.
func each(raw json.RawMessage, odd func(object) string) (name string) {
	if none(raw) {
		return ""
	}
	err := meter.Values(raw, '[', func(_ string, entry []byte) error {
		if name == "" {
			name = one(entry, odd)
		}
		return nil
	})
	if err != nil {
		return oddForm
	}
	return name
}

// one looks at an object.
func one(raw json.RawMessage, odd func(object) string) string {
	o, err := members(raw)
	if err != nil {
		return oddForm
	}
	return odd(o)
}

// members takes an object apart. A name that is there twice is refused: programs
// differ in which one they take.
func members(text []byte) (object, error) {
	found := object{}
	err := meter.Values(text, '{', func(name string, value []byte) error {
		if found[name] != nil {
			return fmt.Errorf("the body has the field %q twice", clip(name))
		}
		found[name] = value
		return nil
	})
	return found, err
}

// none is a value that stands for a field that is not there.
func none(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

func begins(value json.RawMessage, with byte) bool { return len(value) > 0 && value[0] == with }

// text is a value when it is one, else "".
func text(raw json.RawMessage) (s string) {
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}
