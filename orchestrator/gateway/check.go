package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"abl/orchestrator/gateway/api"
	"abl/orchestrator/gateway/filter"
	"abl/orchestrator/gateway/meter"
	"abl/orchestrator/prices"
)

const (
	shortestToken = 16 // characters; a shorter one could be guessed
	longestName   = 100
)

// prices are those of the providers' models.
func (s Setup) prices() map[string]map[string]prices.Price {
	all := map[string]map[string]prices.Price{}
	for _, p := range s.Providers {
		all[p.Name] = p.Prices
	}
	return all
}

// canPrice refuses a budget in money that a model without a price would get around.
func (g *running) canPrice(b Budget) error {
	if !b.inMoney() {
		return nil
	}
	for name, p := range g.providers {
		for _, model := range p.Models {
			if _, known := g.prices[name][model]; !known {
				return fmt.Errorf("cannot hold a budget in US dollars: %q of provider %q has no price", model, name)
			}
		}
	}
	return nil
}

// rules checks a call and returns what it may do with the providers.
func (c Call) rules(providers map[string]*filter.Provider, connect map[string]bool, body int64) (*filter.Rules, error) {
	switch {
	case !filter.Plain(c.ID) || len(c.ID) > longestName:
		return nil, fmt.Errorf("cannot use the call id %q: want letters, digits, . _ - and ~", c.ID)
	case len(c.Token) < shortestToken || !filter.Plain(string(c.Token)):
		return nil, fmt.Errorf("cannot use the call's token: want %d or more letters and digits", shortestToken)
	case c.Deadline <= 0:
		return nil, errors.New("cannot serve a call without a deadline")
	}
	return &filter.Rules{Call: c.ID, Token: filter.Hash(string(c.Token)), Providers: providers, Connect: connect, MaxBody: body}, nil
}

// providers checks all of them. Errors name no value that may be a key.
func (s Setup) providers() (map[string]*filter.Provider, error) {
	all := map[string]*filter.Provider{}
	for i, p := range s.Providers {
		if !filter.Plain(p.Name) || all[p.Name] != nil {
			return nil, fmt.Errorf("cannot use provider %d: its name is missing, odd or there twice", i+1)
		}
		one, err := p.compile()
		if err != nil {
			return nil, fmt.Errorf("cannot use provider %q: %v", p.Name, err)
		}
		all[p.Name] = one
	}
	return all, nil
}

func (p Provider) compile() (*filter.Provider, error) {
	kind := meter.API(p.API)
	if kind == "" {
		kind = meter.API(p.Name)
	}
	a, known := api.Of(kind)
	if !known && (p.API != "" || len(p.Routes) == 0 || p.Upstream == "" || p.Auth == "") {
		return nil, errors.New("its API is unknown; one with routes, upstream and auth of its own needs none")
	}
	upstream, err := base(either(p.Upstream, a.Base))
	if err != nil {
		return nil, err
	}
	routes := p.Routes
	if len(routes) == 0 {
		routes = a.Routes
	}
	f := &filter.Provider{
		Name: p.Name, API: kind, Upstream: upstream, Key: string(p.Key), Auth: either(p.Auth, a.Auth), Models: p.Models,
		Routes: routes, Lists: a.Lists, Queries: append(p.Queries, a.Queries...),
	}
	for _, h := range append(p.Headers, a.Headers...) {
		f.Headers = append(f.Headers, http.CanonicalHeaderKey(h))
	}
	return f, p.check(routes)
}

// check refuses what would let more through than it seems to.
func (p Provider) check(routes []api.Route) error {
	if strings.ContainsAny(string(p.Key), "\r\n\x00") || strings.TrimSpace(string(p.Key)) != string(p.Key) {
		return errors.New("its key has a line break, or a space at an end")
	}
	for _, m := range p.Models {
		if m == "" || len(m) > longestName {
			return errors.New("a model has no name, or too long a one")
		}
	}
	for _, r := range routes {
		if r.Method == "" || !strings.HasPrefix(r.Path, "/") || r.Class == "" {
			return fmt.Errorf("the route %q lacks a method, a path or a class", r.Path)
		}
		inPath := strings.Count(r.Path, "{model}") == 1
		if inPath != (r.Model == api.InPath) || r.Model != api.InPath && r.Model != api.InBody && r.Model != api.Nowhere {
			return fmt.Errorf("the route %q does not say rightly where its model is", r.Path)
		}
		if r.Model != api.Nowhere && len(p.Models) == 0 {
			return errors.New("it has no models")
		}
	}
	return nil
}

func base(address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimRight(address, "/"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return nil, errors.New("its upstream is not an http or https address") // which may hold a password
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.RawPath != "" {
		return nil, errors.New("its upstream has a user, a query or an encoded path")
	}
	return u, nil
}

// tunnels checks the registries.
func (s Setup) tunnels() (map[string]bool, error) {
	all := map[string]bool{}
	for _, target := range s.Connect {
		host, port, err := net.SplitHostPort(target)
		if err != nil || host == "" || port == "" {
			return nil, fmt.Errorf("cannot allow %q: want host:port", target)
		}
		all[strings.ToLower(target)] = true
	}
	return all, nil
}

// inside checks the addresses that no tunnel may lead to.
func (s Setup) inside() ([]netip.Addr, error) {
	var all []netip.Addr
	for _, text := range s.Inside {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return nil, fmt.Errorf("cannot refuse %q: want an address", text)
		}
		all = append(all, addr.Unmap().WithZone(""))
	}
	return all, nil
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
