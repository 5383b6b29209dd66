package environment

import (
	"fmt"

	"abl/internal/gateway"
	"abl/internal/gateway/sidecar"
	"abl/internal/tokens"
	"abl/roles"
	"abl/roles/agent"
)

// trafficOf is what a gateway's log says of a call. What its provider did not tell
// whole, or what has no line, is a row of its own: it keeps every sum a lower bound
// that says so.
func trafficOf(log sidecar.Log, call string) roles.Traffic {
	used := gateway.Usage(log.Entries, call)
	t := roles.Traffic{Requests: used.Requests}
	if used.Untold < used.Requests {
		t.Usage = append(t.Usage, agent.Usage{Model: used.Model, Count: used.Count, Cost: used.Cost})
	}
	if used.Untold > 0 {
		t.Usage = append(t.Usage, agent.Usage{Model: used.Model, Count: used.Part, Part: true})
		t.Notes = append(t.Notes, fmt.Sprintf("the provider told no whole usage for %d of %d answers of %s", used.Untold, used.Requests, used.Model))
	}
	switch {
	case log.Lost > 0:
		t.Usage = append(t.Usage, agent.Usage{Part: true})
		t.Notes = append(t.Notes, fmt.Sprintf("the gateway's log lacks at least %d lines: the usage is a lower bound", log.Lost))
	case used.Requests == 0:
		t.Usage = []agent.Usage{{Count: tokens.None()}} // known: nothing passed
	}
	charged, usd := gateway.Charged(log.Entries, call)
	t.Charged = &roles.Charged{Tokens: charged, USD: usd}
	t.Notes = append(t.Notes, sidecar.Advice(log.Entries)...)
	for _, e := range log.Entries {
		if e.Req != nil && e.Req.Over {
			t.Over = e.Reason
		}
	}
	last := gateway.LastTrouble(log.Entries, call)
	t.Fault, t.Waiting, t.Finish = last.Fault, last.Waiting, last.Finish
	return t
}
