package ground

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"

	"abl/cmd/internal/exit"
	"abl/internal/cacerts"
	"abl/internal/hostfs"
	"abl/internal/sandbox"
	"abl/internal/sandbox/docker"
	"abl/orchestrator/gateway/sidecar"
	"abl/roles"
	"abl/roles/agent"
)

// Override is the address that the person gives instead of the provider's own;
// target is nil when raw, the value of the provider's variable, is empty.
func Override(vars agent.Provider, raw string) (way sidecar.Way, target *url.URL, err error) {
	if raw == "" {
		return sidecar.Direct, nil, nil
	}
	way, target, err = sidecar.Override(vars.BaseVar, raw)
	if err != nil {
		return way, nil, exit.With(exit.Usage, err, "correct it in .env or in the environment, or take it away to use the provider's own address")
	}
	return way, target, nil
}

// Forwards lets gateways come to model servers on this machine's loopback.
type Forwards struct {
	Engine  *docker.Engine
	Info    sandbox.Info
	Site    *roles.Site
	Note    string         // file that remembers where abl listens
	Trusted cacerts.Finder // whom a target with TLS has to be known to
	open    map[string]*sidecar.Forwarder
}

// Upstream is where the gateway finds the provider: the person's address, one at
// which abl forwards to this machine's loopback, or "" for the provider's own.
func (f *Forwards) Upstream(ctx context.Context, vars agent.Provider, raw string) (string, error) {
	way, target, err := Override(vars, raw)
	switch {
	case err != nil || target == nil:
		return "", err
	case way == sidecar.Direct:
		return target.String(), nil
	case !f.Info.Local:
		return "", exit.With(exit.Usage, fmt.Errorf("cannot use %s: it is this machine's loopback, and the engine runs elsewhere", vars.BaseVar), "give an address that the engine's machine reaches")
	}
	if f.open == nil {
		f.open = map[string]*sidecar.Forwarder{}
	}
	one := f.open[target.String()]
	if one == nil {
		if one, err = f.forward(ctx, vars.BaseVar, target); err != nil {
			return "", err
		}
		f.open[target.String()] = one
	}
	return one.URL(), nil
}

// forward listens on the gateways' way out, where an earlier abl did if it can: a
// gateway that is still running looks for it there.
func (f *Forwards) forward(ctx context.Context, name string, target *url.URL) (*sidecar.Forwarder, error) {
	if err := f.Site.OpenWay(ctx); err != nil {
		return nil, err
	}
	addr, err := f.Engine.HostAddress(ctx, f.Site.Way().Network)
	if err != nil {
		return nil, err
	}
	was, err := f.noted()
	if err != nil {
		return nil, err
	}
	var roots *x509.CertPool
	if target.Scheme == "https" {
		if roots, err = f.Trusted.Pool(); err != nil {
			return nil, exit.With(exit.Environment, fmt.Errorf("cannot check %s: %w", name, err), "install ca-certificates, or name a file in network.ca_cert")
		}
	}
	alive := context.WithoutCancel(ctx) // until Close
	if at := was[target.String()]; at.Addr.Addr() == addr {
		if one, err := sidecar.Listen(alive, at, target, roots); err == nil {
			return one, nil
		}
	}
	one, err := sidecar.Listen(alive, sidecar.Listening{Addr: netip.AddrPortFrom(addr, 0)}, target, roots)
	if err != nil {
		return nil, fmt.Errorf("cannot let the gateway come to %s: %w", name, err)
	}
	was[target.String()] = one.Listening()
	data, err := json.Marshal(was)
	if err == nil {
		err = hostfs.Write(f.Note, append(data, '\n'), 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot note where abl listens: %w", err), one.Close())
	}
	return one, nil
}

// noted is where an earlier abl listened, by target.
func (f *Forwards) noted() (map[string]sidecar.Listening, error) {
	was := map[string]sidecar.Listening{}
	data, err := os.ReadFile(f.Note)
	if errors.Is(err, fs.ErrNotExist) || err == nil && json.Unmarshal(data, &was) != nil {
		return map[string]sidecar.Listening{}, nil // a broken note costs a call that runs now its provider, and nothing else
	}
	return was, err
}

// Close ends the forwarding.
func (f *Forwards) Close() (err error) {
	if f == nil {
		return nil
	}
	for _, one := range f.open {
		err = errors.Join(err, one.Close())
	}
	f.open = nil
	return err
}
