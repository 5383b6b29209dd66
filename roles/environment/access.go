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

	"abl/images"
	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/helper"
	"abl/internal/redact"
	"abl/internal/usage"
	"abl/roles/agent"
)

// Access lists what the calls of a role may reach: a provider, whose key only the gateway has, and
// the hosts of network.allow.
type Access struct {
	Place  string      // whose network the role's containers join
	Agent  agent.Agent // zero without an agent
	Models []string
	Prices map[string]*usage.Price
	Fetch  bool                                      // allows the hosts of network.allow
	Budget func(call string) (gateway.Budget, error) // nil without a budget
	// receives the usage of a call while it runs and at its end; may be nil
	Spent func(gateway.Sum)
}

// caFile is the name in helper.In of the authorities that a container's tools must trust.
const caFile = "ca.pem"

// Gate returns the gateway of a role, or nil if the role may reach nothing and has no network
// access.
func (e *Environment) Gate(ctx context.Context, a Access) (*Gate, error) {
	vars := a.Agent.Provider
	served := vars.API != ""
	fetches := a.Fetch && len(e.Conf.Network.Allow) > 0
	if !served && !fetches {
		return nil, nil
	}
	image, err := e.Images.Gateway(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot build the gateway's image: %w", err)
	}
	if a.Budget == nil {
		a.Budget = func(string) (gateway.Budget, error) { return gateway.Budget{}, nil }
	}
	g := &Gate{Containers: e.Containers, Access: a, Project: e.Project, Sidecar: image, heard: &e.heard}
	certs, err := e.trusted().Bundle()
	if err != nil {
		err = fmt.Errorf("the gateway cannot verify certificates: %w", err)
		return nil, &Error{Unavailable, "install ca-certificates, or set network.ca_cert to a file", err}
	}
	g.Setup.CA = string(certs)
	if served {
		agents := Agents{Conf: e.Conf, Root: e.Root}
		key, _ := e.Conf.Key(vars.KeyVar)
		g.Key = agents.keyCommand(a.Agent.Name)
		if g.Key != nil {
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
		if err := e.allow(ctx, g, certs); err != nil {
			return nil, err
		}
	}
	e.Containers.Gated[a.Place] = true
	return g, nil
}

// pricesOf returns the prices of a login's models by the names in its requests.
func pricesOf(vars agent.Provider, all map[string]*usage.Price) map[string]*usage.Price {
	if vars.Plan {
		return nil
	}
	named := maps.Clone(all)
	for model, price := range all {
		named[vars.Prefix+model] = price
	}
	return named
}

// allow lets the tools of a role's containers reach the hosts of network.allow. The containers need
// g.Files in their helper.In.
func (e *Environment) allow(ctx context.Context, g *Gate, certs []byte) (err error) {
	g.Hosts, g.Setup.Private = allowedHosts(e.Conf.Network.Allow)
	g.Setup.Connect = g.Hosts
	if g.Setup.Inside, err = e.Containers.HostAddrs(ctx); err != nil {
		return err
	}
	if e.trusted().Own() {
		g.Certs = certEnv(filepath.Join(helper.In, caFile))
		g.Files = map[string][]byte{caFile: certs}
	}
	return nil
}

// trusted returns the certificate authorities that this machine and the user trust.
func (e *Environment) trusted() images.CACerts {
	return images.CACerts{Env: os.Getenv, Extra: cmp.Or(e.CACert, Path(e.Root, e.Conf.Network.CACert))}
}

// near are names that tools reach without a proxy.
var near = []string{"localhost", ".localhost", "127.0.0.1", "::1", "[::1]", "0.0.0.0"}

// proxyEnv returns the variables that make a role's tools use the gateway as their proxy, with its
// token as the password of the user abl. Plain http also goes to the gateway, which refuses it with a
// reason: otherwise it would fail as an unknown host name. Java ignores HTTPS_PROXY: Gradle gets
// system properties, and the settings of Maven in abl's images name ABL_PROXY_TOKEN.
func proxyEnv(token string) []string {
	proxy := fmt.Sprintf("http://abl:%s@%s:%d", token, helper.GatewayAlias, helper.GatewayPort)
	no := strings.Join(slices.Concat(near, []string{helper.GatewayAlias, helper.AppAlias}), ",")
	java := "-Djdk.http.auth.tunneling.disabledSchemes="
	for _, scheme := range []string{"http", "https"} {
		java += fmt.Sprintf(" -D%[1]s.proxyHost=%[2]s -D%[1]s.proxyPort=%[3]d -D%[1]s.proxyUser=abl -D%[1]s.proxyPassword=%[4]s",
			scheme, helper.GatewayAlias, helper.GatewayPort, token)
	}
	return []string{
		"HTTPS_PROXY=" + proxy, "https_proxy=" + proxy, "HTTP_PROXY=" + proxy, "http_proxy=" + proxy,
		"NO_PROXY=" + no, "no_proxy=" + no, "GRADLE_OPTS=" + java, "ABL_PROXY_TOKEN=" + token,
		// Update checks of the tools themselves.
		"npm_config_update_notifier=false", "PIP_DISABLE_PIP_VERSION_CHECK=1",
	}
}

// certEnv returns the variables that make a role's tools trust the authorities in a file instead of
// those in their image.
func certEnv(file string) []string {
	var env []string
	for _, name := range images.CertVariables {
		env = append(env, name+"="+file)
	}
	return env
}

// registries are the hosts of the names in network.allow. A mirror is listed by its host instead.
var registries = map[string][]string{
	"crates": {"index.crates.io:443", "static.crates.io:443"},
	"go":     {"proxy.golang.org:443", "sum.golang.org:443"},
	"maven":  {"repo.maven.apache.org:443"},
	"npm":    {"registry.npmjs.org:443"},
	"pypi":   {"files.pythonhosted.org:443", "pypi.org:443"},
}

// allowedHosts returns the sorted hosts of network.allow, and those of them that may have private
// addresses. Package config has validated the setting.
func allowedHosts(allow []config.Reachable) (hosts, private []string) {
	for _, entry := range allow {
		known, is := registries[entry.Name()]
		if !is {
			known = []string{config.AllowedHost(entry.Name())}
		}
		hosts = append(hosts, known...)
		if entry.Private() {
			private = append(private, known...)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), private
}
