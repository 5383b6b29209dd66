package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"abl/orchestrator/gateway/api"
)

// usualTiers are the ways of being served that cost what a model's price list says, or less.
var usualTiers = []string{"null", `"auto"`, `"default"`, `"standard"`, `"standard_only"`, `"flex"`}

// Body decides on the body of a request that has passed so far, and fills in
// the model where the body names it.
func (v *Verdict) Body(body []byte) {
	p := v.Provider
	if p.Key != "" && bytes.Contains(body, []byte(p.Key)) {
		v.refuse(http.StatusForbidden, "the body holds the provider's key")
		return
	}
	members, err := members(body, "model", "tools", "mcp_servers", "web_search_options", "background", "service_tier", "speed")
	if err != nil {
		v.refuse(http.StatusBadRequest, err.Error())
		return
	}
	if v.Route.Model == api.InBody {
		var model string
		if json.Unmarshal(members["model"], &model) != nil || !slices.Contains(p.Models, model) {
			v.refuse(http.StatusForbidden, fmt.Sprintf("the model %q is not one of this call's", clip(model)))
		}
		v.Model = clip(model)
	}
	if b := string(members["background"]); b != "" && b != "false" && b != "null" {
		v.refuse(http.StatusForbidden, "an answer that the provider gives in the background tells nobody here what it costs")
	}
	for _, name := range []string{"service_tier", "speed"} {
		if tier := string(members[name]); tier != "" && !slices.Contains(usualTiers, tier) {
			v.refuse(http.StatusForbidden, fmt.Sprintf("the %s %s may cost more than what the budget counts", name, clip(tier)))
		}
	}
	if v.Refused() || p.ServerTools {
		return
	}
	if tool := serverTool(p.API, members["tools"]); tool != "" {
		v.refuse(http.StatusForbidden, fmt.Sprintf("%q is a tool that the provider runs itself, beyond the boundary of this call", clip(tool)))
	} else if search := string(members["web_search_options"]); search != "" && search != "null" {
		v.refuse(http.StatusForbidden, "a search of the web by the provider is beyond the boundary of this call")
	} else if servers := string(members["mcp_servers"]); servers != "" && servers != "[]" && servers != "null" {
		v.refuse(http.StatusForbidden, "MCP servers that the provider calls are beyond the boundary of this call")
	}
}
