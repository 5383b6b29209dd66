package environment

import (
	"fmt"
	"strings"

	"abl/internal/gateway"
	"abl/internal/gateway/meter"
	"abl/internal/gateway/sidecar"
	"abl/internal/outcome"
	"abl/internal/tokens"
	"abl/roles"
	"abl/roles/agent"
)

// trafficOf is what a gateway's log says of a call. What its provider did not tell
// whole, or what has no line, is a row of its own: it keeps every sum a lower bound
// that says so.
func trafficOf(log sidecar.Log, call string) roles.Traffic {
	var t roles.Traffic
	rows := gateway.Usage(log.Entries, call)
	for _, r := range rows {
		t.Requests += r.Requests
		if r.Untold < r.Requests {
			t.Usage = append(t.Usage, agent.Usage{Model: r.Model, Count: r.Count, Cost: r.Cost})
		}
		if r.Untold > 0 {
			t.Usage = append(t.Usage, agent.Usage{Model: r.Model, Count: r.Part, Part: true})
			t.Notes = append(t.Notes, fmt.Sprintf("the provider told no whole usage for %d of %d answers of %s", r.Untold, r.Requests, r.Model))
		}
	}
	switch {
	case log.Lost > 0:
		t.Usage = append(t.Usage, agent.Usage{Part: true})
		t.Notes = append(t.Notes, fmt.Sprintf("the gateway's log lacks at least %d lines: the usage is a lower bound", log.Lost))
	case len(rows) == 0:
		t.Usage = []agent.Usage{{Count: tokens.None()}} // known: nothing passed
	}
	charged, usd := gateway.Charged(log.Entries, call)
	t.Charged = &roles.Charged{Tokens: charged, USD: usd}
	t.Notes = append(t.Notes, sidecar.Advice(sidecar.RefusedHosts(log.Entries))...)
	for _, e := range log.Entries {
		if e.Req != nil && e.Req.Over {
			t.Over = e.Reason
		}
	}
	last := gateway.LastTrouble(log.Entries, call)
	t.Fault, t.Finish = faultOf(last), last.Finish
	return t
}

// classes are what the kinds of a provider's trouble make of a call.
var classes = map[meter.Kind]outcome.Outcome{
	meter.Login: outcome.Refused, meter.Rate: outcome.RateLimited, meter.Quota: outcome.Quota, meter.Credit: outcome.Quota,
	meter.Away: outcome.Unavailable, meter.Silent: outcome.Unavailable, meter.Cut: outcome.Unavailable, meter.Garbled: outcome.Unavailable,
	meter.Network: outcome.Network, meter.Large: outcome.TooLarge, meter.NoModel: outcome.NoModel, meter.Denied: outcome.Denied,
	meter.Length: outcome.Cut, meter.Window: outcome.Cut, meter.Filter: outcome.Filtered,
}

// faultOf words what was wrong with the provider at a call's end.
func faultOf(t gateway.Trouble) roles.Fault {
	f := roles.Fault{Class: classes[t.Kind], Back: t.Back, Paid: t.Kind == meter.Credit, Waiting: t.Waiting}
	if t.Kind == "" {
		return f
	}
	switch {
	case t.Kind == meter.Length && t.Most > 0:
		f.What = fmt.Sprintf("the last answer of %s was cut at %d tokens, which is what the agent allows for one (%s)", t.Model, t.Most, t.Finish)
	case t.Kind == meter.Length:
		f.What = fmt.Sprintf("the last answer of %s was cut at the model's own limit of tokens for one (%s)", t.Model, t.Finish)
	case t.Kind == meter.Window:
		f.What = fmt.Sprintf("the last answer of %s was cut since the conversation fills the model's context (%s)", t.Model, t.Finish)
	case t.Kind == meter.Filter:
		f.What = fmt.Sprintf("%s or its provider's filter declined to answer (%s)", t.Model, t.Finish)
	case t.Kind == meter.Unended:
		f.What = fmt.Sprintf("the last answer of %s does not say that it is finished", t.Model)
	case t.Kind == meter.Denied:
		f.What = "abl's gateway refuses the agent's request: " + t.Words
	case t.Broken:
		f.What = "the provider ends its answer with an error: " + strings.TrimSuffix(t.Words, ".")
	case t.Kind == meter.Garbled && t.Words != "":
		f.What = t.Words
	case t.Kind == meter.Garbled:
		f.What = fmt.Sprintf("the provider answers %d with what is no answer of a model", t.Status)
	case t.Kind == meter.Silent:
		f.What = "the provider fell silent"
	case t.Kind == meter.Cut, t.Kind == meter.Network:
		f.What = t.Words
	default:
		f.What = fmt.Sprintf("the provider answers %d: %s", t.Status, strings.TrimSuffix(t.Words, "."))
	}
	if t.Times > 1 {
		f.What += fmt.Sprintf(" (%d requests in a row had trouble)", t.Times)
	}
	return f
}
