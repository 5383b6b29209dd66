package gateway

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
const oddForm = "unreadable"

// deepest is the number of levels of nested tools.
const deepest = 3

// fields are the top-level fields of a body, or of a part of it.
type fields map[string]json.RawMessage

// read checks the body of a request that was allowed so far. It sets the model if the body names it.
func (v *verdict) read(body []byte) {
	p := v.provider
	all, err := fieldsOf(body)
	if errors.Is(err, meter.ErrForm) {
		err = errors.New("the body is not a JSON object")
	}
	model := v.Model
	if model == "" { // the path does not name it
		model = meter.Text(all["model"])
		v.Model = clip(model)
	}
	if err == nil {
		v.MaxTokens, v.answers, err = answerLimits(all)
		v.refers = refers(body)
	}
	why := p.oddField(all)
	tool, offers := p.providersTool(all)
	v.Aside = !offers
	switch {
	case p.secret().Holds(body):
		v.deny(http.StatusForbidden, "the body contains the provider's key")
	case err != nil:
		v.deny(http.StatusBadRequest, err.Error())
	case !slices.Contains(p.Models, model):
		v.deny(http.StatusForbidden, p.otherModel(model))
	case why != "":
		v.deny(http.StatusForbidden, why)
	case tool != "":
		v.deny(http.StatusForbidden, fmt.Sprintf("the tool %q is not allowed: the provider would run it, not the agent",
			clip(tool)))
	}
}

// otherModel returns why a request for another model is refused.
func (p *provider) otherModel(model string) string {
	return fmt.Sprintf("the model %q is not allowed: this call uses %q, from models in .abl/config.yaml", clip(model),
		strings.Join(p.Models, ", "))
}

// answerLimits returns the limits that the request sets: the tokens of a response, and the number of
// responses, 0 without a limit. Of several limits the largest counts.
func answerLimits(all fields) (length, number int64, err error) {
	const config = "generationConfig"
	if !none(all[config]) {
		if all, err = fieldsOf(all[config]); err != nil {
			return 0, 0, fmt.Errorf("%s: %w", config, err)
		}
	}
	largest := func(names ...string) (n int64) {
		for _, name := range names {
			var one int64
			if json.Unmarshal(all[name], &one) == nil {
				n = max(n, one)
			}
		}
		return n
	}
	length = largest("max_tokens", "max_output_tokens", "max_completion_tokens", "maxOutputTokens")
	return length, largest("n", "candidateCount", "candidate_count"), nil
}

// oddField returns why a field is not allowed, "" if all are.
func (p *provider) oddField(all fields) string {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		values, bound := usual[name]
		switch value := all[name]; {
		case !slices.Contains(p.Fields, name):
			return fmt.Sprintf("the field %q is not allowed (docs/gateway.md)", clip(name))
		case bound && !none(value) && !slices.Contains(values, string(value)):
			return fmt.Sprintf("the field %q must not be %s, only %s", name, clip(string(value)), strings.Join(values, ", "))
		}
	}
	return ""
}

// providersTool returns the first tool of a request that its client would not run, "" without one,
// and reports whether the request has any tools. Newer models of Anthropic and OpenAI also get tools
// in the middle of the conversation.
func (p *provider) providersTool(all fields) (odd string, offers bool) {
	odd = p.oddTools(all["tools"], deepest)
	offers = isFilled(all["tools"]) || isFilled(all["functions"])
	for _, at := range []string{"messages", "input"} {
		err := meter.Walk(at, all[at], func(place string, value []byte) bool {
			found := ""
			switch place {
			case "input.tools":
				found = p.oddTools(value, deepest)
				offers = offers || isFilled(value)
			case "input.type":
				if meter.Text(value) == "item_reference" { // to stored content
					found = "item_reference"
				}
			case "messages.content.tool":
				switch added, err := fieldsOf(value); {
				case none(value):
				case err != nil:
					found = oddForm
				case meter.Text(added["type"]) != "tool_reference":
					found = p.oddTool(added["definition"], deepest)
				}
			}
			odd = cmp.Or(odd, found)
			return place == at || place == "messages.content"
		})
		if err != nil {
			odd = cmp.Or(odd, oddForm)
		}
	}
	return odd, offers
}

// oddTools returns the first tool of a list that the client does not run.
func (p *provider) oddTools(list json.RawMessage, depth int) (odd string) {
	if none(list) {
		return ""
	}
	err := meter.Values(list, '[', func(_ string, tool []byte) error {
		odd = cmp.Or(odd, p.oddTool(tool, depth))
		return nil
	})
	if err != nil {
		return oddForm
	}
	return odd
}

// oddTool returns the name of a tool that the client does not run, "" if it runs it.
func (p *provider) oddTool(tool json.RawMessage, depth int) string {
	all, err := fieldsOf(tool)
	names := []string{meter.Text(all["type"])}
	switch {
	case err != nil:
		return oddForm
	case p.Kind == meter.Gemini:
		names = slices.Sorted(maps.Keys(all))
	case depth == 0 || names[0] == "" && all["type"] != nil:
		return oddForm
	}
	for _, name := range names {
		own := func(t string) bool { return t == name || strings.HasSuffix(t, "_") && strings.HasPrefix(name, t) }
		if !slices.ContainsFunc(p.Tools, own) {
			return cmp.Or(name, oddForm)
		}
	}
	return p.oddTools(all["tools"], depth-1)
}

// fieldsOf returns the fields of an object.
func fieldsOf(text []byte) (fields, error) {
	all := fields{}
	err := meter.Values(text, '{', func(name string, value []byte) error {
		all[name] = value
		return nil
	})
	return all, err
}

// isFilled reports whether a value is a list with at least one entry.
func isFilled(list json.RawMessage) bool {
	inside, isList := bytes.CutPrefix(list, []byte("["))
	return isList && !bytes.HasPrefix(bytes.TrimSpace(inside), []byte("]"))
}

// none reports whether a value means that the field is missing.
func none(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }
