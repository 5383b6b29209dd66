package environment

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"

	"abl/internal/config"
	"abl/internal/gateway"
	"abl/internal/gateway/sidecar"
	"abl/internal/hostfs"
	"abl/roles/agent"
)

// AddressOf returns the address that the user gives instead of the provider's own, as it is
// written, and where.
func AddressOf(vars agent.Provider, conf *config.Loaded) (raw, from string) {
	if vars.Own {
		return vars.Base, "the settings"
	}
	return conf.Key(vars.BaseVar)
}

// Override returns the address that the user gives instead of the provider's own, nil when there
// is none; local is one of this machine's, which needs a forwarder. An address in .env that goes
// with a key from elsewhere is an error: a file of the project may not choose who gets that key.
func Override(vars agent.Provider, conf *config.Loaded) (target *url.URL, local bool, err error) {
	raw, from := AddressOf(vars, conf)
	if raw == "" {
		return nil, false, nil
	}
	if _, key := conf.Key(vars.KeyVar); from == config.EnvFile && key != from && key != "" {
		err = fmt.Errorf("cannot use %s from %s with %s from %s", vars.BaseVar, from, vars.KeyVar, key)
		return nil, false, &Error{Usage, "put both into .env or both into the environment: an address in .env only gets a key from there", err}
	}
	target, local, err = gateway.ParseAddress(raw)
	if err != nil {
		err = fmt.Errorf("cannot use %s: %w", vars.BaseVar, err)
		return nil, false, &Error{Usage, "correct it in .env or in the environment, or take it away to use the provider's own address", err}
	}
	if target.Path == "" {
		target.Path = vars.Path
	}
	return target, local, nil
}

// upstream is where the gateway finds the provider: the person's address, one at
// which abl forwards to this machine's loopback, or "" for the provider's own.
func (e *Environment) upstream(ctx context.Context, vars agent.Provider) (string, error) {
	target, local, err := Override(vars, e.Conf)
	switch {
	case err != nil || target == nil:
		return vars.Upstream, err
	case !local:
		return target.String(), nil
	case !e.Info.Near:
		return "", &Error{Usage, "give an address that the engine's machine reaches", fmt.Errorf("cannot use %s: it is this machine's loopback, and the engine runs elsewhere", vars.BaseVar)}
	}
	one, err := e.forwarder(ctx, vars.BaseVar, target, sidecar.Listen)
	if err != nil {
		return "", err
	}
	return one.URL(), nil
}

// listen begins to forward to a server.
type listen func(context.Context, sidecar.Listening, *url.URL, *x509.CertPool) (*sidecar.Forwarder, error)

// forwarder returns what forwards to target, and begins it if need be. name says who named target.
func (e *Environment) forwarder(ctx context.Context, name string, target *url.URL, by listen) (*sidecar.Forwarder, error) {
	if one := e.forwards[target.String()]; one != nil {
		return one, nil
	}
	one, err := e.forward(ctx, name, target, by)
	if err == nil {
		e.forwards[target.String()] = one
	}
	return one, err
}

// forward listens on the gateways' way out, where an earlier abl did if it can: a
// gateway that is still running looks for it there.
func (e *Environment) forward(ctx context.Context, name string, target *url.URL, by listen) (*sidecar.Forwarder, error) {
	if err := e.Boxes.EnsureEgress(ctx); err != nil {
		return nil, err
	}
	addr, err := e.hostAddress(ctx)
	if err != nil {
		return nil, err
	}
	note, was := e.Project.Forwards(), map[string]sidecar.Listening{}
	data, _ := hostfs.Read(e.Project.Root, e.Project.Rel(note), 1<<20)
	_ = json.Unmarshal(data, &was) // without a note a call that runs now loses its provider, and nothing else happens
	var roots *x509.CertPool
	if target.Scheme == "https" {
		if roots, err = e.trusted().Pool(); err != nil {
			return nil, &Error{Unavailable, "install ca-certificates, or name a file in network.ca_cert", fmt.Errorf("cannot check %s: %w", name, err)}
		}
	}
	alive := context.WithoutCancel(ctx) // until Close
	if at := was[target.String()]; at.Addr.Addr() == addr {
		if one, err := by(alive, at, target, roots); err == nil {
			return one, nil
		}
	}
	one, err := by(alive, sidecar.Listening{Addr: netip.AddrPortFrom(addr, 0)}, target, roots)
	if err != nil {
		return nil, fmt.Errorf("cannot let the gateway come to %s: %w", name, err)
	}
	was[target.String()] = one.At
	if data, err = json.Marshal(was); err == nil {
		err = hostfs.Write(note, append(data, '\n'), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot note where abl listens: %w", err), one.Close())
	}
	return one, nil
}

// hostAddress is where gateways come to this machine: its address on their way out, or
// from a virtual machine the one by which it goes out itself.
func (e *Environment) hostAddress(ctx context.Context) (netip.Addr, error) {
	if e.Info.Local {
		return e.Engine.HostAddress(ctx, e.Boxes.EgressEndpoint().Network)
	}
	const nobody = "192.0.2.1:9" // an address for documents: nothing is sent by this
	conn, err := new(net.Dialer).DialContext(ctx, "udp4", nobody)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cannot find an address of this machine for the engine's: %w", err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr(), nil
}
