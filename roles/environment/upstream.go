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
	"abl/internal/hostfs"
	"abl/roles/agent"
)

// AddressOf returns the address that the user gives instead of the provider's own, unparsed, and
// where it is set.
func AddressOf(vars agent.Provider, conf *config.Loaded) (raw, from string) {
	if vars.Own {
		return vars.Base, "the settings"
	}
	return conf.Key(vars.BaseVar)
}

// Override returns the address that the user gives instead of the provider's own, nil without one.
// local is true for an address of this machine's loopback, which needs a forwarder. An address in
// .env with a key from elsewhere is an error: a file of the project must not decide who gets it.
func Override(vars agent.Provider, conf *config.Loaded) (target *url.URL, local bool, err error) {
	raw, from := AddressOf(vars, conf)
	if raw == "" {
		return nil, false, nil
	}
	if _, key := conf.Key(vars.KeyVar); from == config.EnvFile && key != from && key != "" {
		err = fmt.Errorf("cannot use %s from %s with %s from %s", vars.BaseVar, from, vars.KeyVar, key)
		return nil, false, &Error{Usage,
			"put both into .env or both into the environment: abl sends only keys from .env to an address in .env", err}
	}
	target, local, err = gateway.ParseAddress(raw)
	if err != nil {
		err = fmt.Errorf("cannot use %s: %w", vars.BaseVar, err)
		return nil, false, &Error{Usage,
			"correct it in .env or in the environment, or remove it to use the provider's own address", err}
	}
	if target.Path == "" {
		target.Path = vars.Path
	}
	return target, local, nil
}

// upstream returns where the gateway reaches the provider: the user's address, the address of a
// forwarder to this machine's loopback, or "" for the provider's own address.
func (e *Environment) upstream(ctx context.Context, vars agent.Provider) (string, error) {
	target, local, err := Override(vars, e.Conf)
	switch {
	case err != nil || target == nil:
		return vars.Upstream, err
	case !local:
		return target.String(), nil
	case !e.Info.Near:
		err = fmt.Errorf("cannot use %s: it is on this machine's loopback, and the engine runs elsewhere", vars.BaseVar)
		return "", &Error{Usage, "give an address that the engine's machine reaches", err}
	}
	one, err := e.forwarder(ctx, vars.BaseVar, target, forwardServer)
	if err != nil {
		return "", err
	}
	return one.URL(), nil
}

// listen starts a forwarder to a server.
type listen func(context.Context, listening, *url.URL, *x509.CertPool) (*forwarder, error)

// forwarder returns the forwarder to target, and starts it if necessary. name is shown in errors.
func (e *Environment) forwarder(
	ctx context.Context, name string, target *url.URL, by listen,
) (*forwarder, error) {
	if one := e.forwards[target.String()]; one != nil {
		return one, nil
	}
	one, err := e.forward(ctx, name, target, by)
	if err != nil {
		return nil, err
	}
	e.forwards[target.String()] = one
	return one, nil
}

// forward listens on the gateways' egress network. If possible it uses the address of an earlier
// abl, because a gateway that still runs connects there.
func (e *Environment) forward(
	ctx context.Context, name string, target *url.URL, by listen,
) (*forwarder, error) {
	if err := e.Containers.EnsureEgress(ctx); err != nil {
		return nil, err
	}
	addr, err := e.hostAddress(ctx)
	if err != nil {
		return nil, err
	}
	note, was := e.Project.Forwards(), map[string]listening{}
	data, _ := hostfs.Read(e.Project.Root, e.Project.Rel(note), 1<<20)
	_ = json.Unmarshal(data, &was) // without the file, only a running call loses its provider
	var roots *x509.CertPool
	if target.Scheme == "https" {
		if roots, err = e.trusted().Pool(); err != nil {
			err = fmt.Errorf("cannot verify the certificate of %s: %w", name, err)
			return nil, &Error{Unavailable, "install ca-certificates, or set network.ca_cert to a file", err}
		}
	}
	alive := context.WithoutCancel(ctx) // until Close
	if at := was[target.String()]; at.Addr.Addr() == addr {
		if one, err := by(alive, at, target, roots); err == nil {
			return one, nil
		}
	}
	one, err := by(alive, listening{Addr: netip.AddrPortFrom(addr, 0)}, target, roots)
	if err != nil {
		return nil, fmt.Errorf("cannot forward to %s for the gateway: %w", name, err)
	}
	was[target.String()] = one.At
	if data, err = json.Marshal(was); err == nil {
		err = hostfs.Write(note, append(data, '\n'), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot record where abl listens: %w", err), one.Close())
	}
	return one, nil
}

// hostAddress returns the address at which gateways reach this machine: its address on the egress
// network, or the source address of its own packets if the engine is in a virtual machine.
func (e *Environment) hostAddress(ctx context.Context) (netip.Addr, error) {
	if e.Info.Local {
		network := e.Containers.EgressEndpoint().Network
		subnets, err := e.Engine.Subnets(ctx, []string{network})
		if err != nil {
			return netip.Addr{}, err
		}
		for _, s := range subnets {
			if s.Host.IsValid() {
				return s.Host, nil
			}
		}
		return netip.Addr{}, fmt.Errorf("network %q has no address of this machine", network)
	}
	const nobody = "192.0.2.1:9" // reserved for documentation (RFC 5737); no packet is sent
	conn, err := new(net.Dialer).DialContext(ctx, "udp4", nobody)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cannot find an address of this machine for gateways: %w", err)
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).AddrPort().Addr(), nil
}
