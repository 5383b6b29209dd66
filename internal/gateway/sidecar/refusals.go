package sidecar

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/gateway/filter"
)

// RefusedHost is a host that a role's tools asked for in vain.
type RefusedHost struct {
	Host  string // "host:port"
	Count int
	Why   string // "" when nobody has allowed it, and somebody may
}

// mostHosts is how many refused hosts are named.
const mostHosts = 20

// RefusedHosts finds them in a log, the one asked for most at first. What a role
// writes in a request's target is a host here only if it could be one.
func RefusedHosts(entries []gateway.Entry) []RefusedHost {
	found := map[string]RefusedHost{}
	for _, e := range entries {
		if e.Req == nil || !e.Req.Refused || e.Req.Host == "" {
			continue
		}
		h := found[e.Req.Host]
		h.Host, h.Count, h.Why = e.Req.Host, h.Count+1, why(e)
		found[e.Req.Host] = h
	}
	return slices.SortedFunc(maps.Values(found), func(a, b RefusedHost) int {
		return cmp.Or(b.Count-a.Count, strings.Compare(a.Host, b.Host))
	})
}

func why(e gateway.Entry) string {
	switch {
	case e.Kind == gateway.Requested:
		return "plain http; only https passes"
	case strings.Contains(e.Reason, gateway.ErrInside.Error()):
		return "it has no public address, and no other passes"
	case !strings.HasSuffix(e.Reason, filter.NotAllowed):
		return e.Reason
	case !config.Allowable(e.Req.Host):
		return "no name of a host in a domain"
	}
	return ""
}

// Advice words the refused hosts for the person, with the line that allows those
// that may be.
func Advice(hosts []RefusedHost) []string {
	var open []string
	var notes []string
	for i, h := range hosts {
		if i == mostHosts {
			notes = append(notes, fmt.Sprintf("the gateway refused %d more hosts", len(hosts)-mostHosts))
			break
		}
		note := fmt.Sprintf("the gateway refused %s", h.Host)
		if h.Count > 1 {
			note += fmt.Sprintf(", %d times", h.Count)
		}
		if h.Why != "" {
			note += ": " + h.Why
		} else {
			open = append(open, h.Host)
		}
		notes = append(notes, note)
	}
	if len(open) > 0 {
		notes = append(notes, "to allow what the gateway refused, add to .abl/config.yaml: network: {allow: ["+strings.Join(open, ", ")+"]}")
	}
	return notes
}
