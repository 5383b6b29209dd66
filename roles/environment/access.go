package environment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"abl/internal/cacerts"
	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/helper"
	"abl/internal/prices"
	"abl/internal/redact"
	"abl/roles/agent"
)

// Access is what the calls of a role may reach: a provider, whose key the gateway
// alone is told, and the hosts of network.allow.
type Access struct {
	Place  string      // whose network the role's boxes join
	Agent  agent.Agent // zero for none
	Models []string
	Prices map[string]*prices.Price
	Fetch  bool                                      // the hosts of network.allow
	Budget func(call string) (gateway.Budget, error) // nil for none
	Spent  func(gateway.Sum)                         // hears what a call has used, while it runs and in the end; or nil
}

// caFile is in helper.In of a box whose tools have to trust more than its image does.
const caFile = "ca.pem"

// Gate puts a gateway between a role and what it may reach; nil where that is nothing,
// and the role has no way out at all.
func (e *Environment) Gate(ctx context.Context, a Access) (*Gate, error) {
	vars := a.Agent.Provider
	served := vars.API != ""
	fetches := a.Fetch && len(e.Conf.Network.Allow) > 0
	if !served && !fetches {
		return nil, nil
	}
	image, err := e.Images.Gateway(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot make the gateway's image: %w", err)
	}
	if a.Budget == nil {
		a.Budget = func(string) (gateway.Budget, error) { return gateway.Budget{}, nil }
	}
	g := &Gate{Boxes: e.Boxes, Access: a, Project: e.Project, Sidecar: image, heard: &e.heard}
	certs, err := e.trusted().Bundle()
	if err != nil {
		return nil, &Error{Unavailable, "install ca-certificates, or name a file in network.ca_cert", fmt.Errorf("the gateway cannot check whom it talks to: %w", err)}
	}
	g.Setup.CA = string(certs)
	if served {
		agents := Agents{Conf: e.Conf, Root: e.Root}
		key, _ := e.Conf.Key(vars.KeyVar)
		if g.Key = agents.keyCommand(a.Agent.Name); g.Key != nil {
			g.Key.safe, key = e.Safe, ""
		} else if key == "" && vars.KeyVar != "" {
			return nil, Missing(vars)
		}
		if e.Safe != nil && len(key) >= redact.Shortest {
			e.Safe.Hide(key) // a key of the user's own agent may have any name
		}
		one := gateway.Provider{
			Name:      vars.API,
			Key:       gateway.Secret(key),
			KeyHeader: vars.Header,
			KeyScheme: vars.Scheme,
			Models:    a.Models,
			Prices:    pricesOf(vars, a.Prices),
		}
		if one.Extra, one.Query, err = agents.fixed(a.Agent.Name); err != nil {
			return nil, err
		}
		if one.Upstream, err = e.upstream(ctx, vars); err != nil {
			return nil, err
		}
		g.Setup.Providers = []gateway.Provider{one}
	}
	if g.Setup.Proxies, err = e.proxies(ctx); err != nil {
		return nil, err
	}
	if fetches {
		if err := e.allow(g, certs); err != nil {
			return nil, err
		}
	}
	e.Boxes.Gated[a.Place] = true
	return g, nil
}

// pricesOf returns the prices of a login's models, by the names that requests have for them.
func pricesOf(vars agent.Provider, all map[string]*prices.Price) map[string]*prices.Price {
	if vars.Plan {
		return nil
	}
	named := maps.Clone(all)
	for model, price := range all {
		named[vars.Prefix+model] = price
	}
	return named
}

// allow lets the tools of a role's boxes through to what network.allow lists. Those
// need g.Files in their helper.In for that.
func (e *Environment) allow(g *Gate, certs []byte) (err error) {
	g.Hosts, g.Setup.Private = allowedHosts(e.Conf.Network.Allow)
	g.Setup.Connect = g.Hosts
	if g.Setup.Inside, err = gateway.MachineAddrs(); err != nil {
		return err
	}
	if e.trusted().Own() {
		g.Certs = certEnv(filepath.Join(helper.In, caFile))
		g.Files = map[string][]byte{caFile: certs}
	}
	return nil
}

// trusted is whom this machine, and this person, trust.
func (e *Environment) trusted() cacerts.Finder {
	return cacerts.Finder{Env: os.Getenv, Extra: cmp.Or(e.CACert, Path(e.Root, e.Conf.Network.CACert))}
}

// near are the names that tools reach without a proxy, whoever they mean by them.
var near = []string{"localhost", ".localhost", "127.0.0.1", "::1", "[::1]", "0.0.0.0"}

// proxyEnv is the environment in which a role's tools find the gateway as their proxy,
// which is "http://abl:TOKEN@host:port"; inside are the names that are reached
// without one. Plain http goes to the gateway, too, which refuses it at once and
// with a reason, rather than to a name that nobody resolves.
func proxyEnv(proxy string, inside ...string) []string {
	no := strings.Join(slices.Concat(near, inside), ",")
	return []string{
		"HTTPS_PROXY=" + proxy, "https_proxy=" + proxy, "HTTP_PROXY=" + proxy, "http_proxy=" + proxy,
		"NO_PROXY=" + no, "no_proxy=" + no,
		// What tools look up for their own sake.
		"npm_config_update_notifier=false", "PIP_DISABLE_PIP_VERSION_CHECK=1",
	}
}

// certEnv makes a role's tools trust the authorities in a file instead of those
// that their image comes with.
func certEnv(file string) []string {
	var env []string
	for _, name := range []string{
		"SSL_CERT_FILE",       // Go, OpenSSL, Ruby, uv
		"NODE_EXTRA_CA_CERTS", // Node, npm
		"PIP_CERT", "REQUESTS_CA_BUNDLE",
		"CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO",
	} {
		env = append(env, name+"="+file)
	}
	return env
}

// registries are the hosts of the words in network.allow. A mirror is named by its own host.
var registries = map[string][]string{
	"crates": {"index.crates.io:443", "static.crates.io:443"},
	"go":     {"proxy.golang.org:443", "sum.golang.org:443"},
	"maven":  {"repo.maven.apache.org:443"},
	"npm":    {"registry.npmjs.org:443"},
	"pypi":   {"files.pythonhosted.org:443", "pypi.org:443"},
}

// allowedHosts turns network.allow, which config has checked, into hosts, sorted, and those of them
// that may have private addresses.
func allowedHosts(allow []config.Reachable) (hosts, private []string) {
	for _, entry := range allow {
		known, is := registries[entry.Name()]
		if !is {
			known = []string{config.AllowedHost(entry.Name())}
		}
		if hosts = append(hosts, known...); entry.Private() {
			private = append(private, known...)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), private
}
