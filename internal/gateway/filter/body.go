package filter

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"abl/internal/gateway/meter"
)

// Body decides on the body of a request that has passed so far, and fills in
// the model where the body names it.
func (v *Verdict) Body(body []byte) {
	p := v.Provider
	if p.Key != "" && bytes.Contains(body, []byte(p.Key)) {
		v.refuse(http.StatusForbidden, "the body holds the provider's key")
		return
	}
	members, err := members(body)
	if errors.Is(err, errForm) {
		err = errors.New("the body is not a JSON object")
	}
	if err != nil {
		v.refuse(http.StatusBadRequest, err.Error())
		return
	}
	if !v.Route.InPath {
		var model string
		known := json.Unmarshal(members["model"], &model) == nil && slices.Contains(p.Models, model)
		if v.Model = clip(model); !known {
			v.refuse(http.StatusForbidden, p.otherModel(model))
			return
		}
	}
	v.MaxTokens = maxTokens(members)
	if why := oddField(p.Kind, members); why != "" {
		v.refuse(http.StatusForbidden, why)
	} else if tool := providersTool(p.Kind, members); tool != "" {
		v.refuse(http.StatusForbidden, fmt.Sprintf("the tool %q is none that the agent runs itself; the agent has to do without it", clip(tool)))
	}
}

// maxTokens is how many an answer may have, as far as its request says.
func maxTokens(members map[string]json.RawMessage) (n int64) {
	if inner, odd := membersOf(members["generationConfig"]); odd == "" {
		members = inner
	}
	for _, name := range []string{"max_tokens", "max_output_tokens", "max_completion_tokens", "maxOutputTokens"} {
		if json.Unmarshal(members[name], &n) == nil {
			return n
		}
	}
	return 0
}

// oddField says why a field may not pass, "" when all may.
func oddField(kind meter.API, members map[string]json.RawMessage) string {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		switch value := members[name]; {
		case !slices.Contains(fields[kind], name):
			return fmt.Sprintf("the field %q is none that passes (docs/gateway.md); the agent has to leave it out", clip(name))
		case oddValue(name, value):
			return fmt.Sprintf("the field %q may not be %s, only %s", name, clip(string(value)), strings.Join(usual[name], ", "))
		}
	}
	return ""
}

// otherModel says that a request asks for another model than the call's.
func (p *Provider) otherModel(model string) string {
	return fmt.Sprintf("the model %q is not this call's, which is %q; models in .abl/config.yaml names it in full", clip(model), strings.Join(p.Models, ", "))
}
