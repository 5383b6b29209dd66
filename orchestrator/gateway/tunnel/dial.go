package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
)

// ErrInside is what a name is refused with that leads to no public address.
var ErrInside = errors.New("it resolves to no public address")

// maxTries is how many addresses of one name are tried.
const maxTries = 4

// Dialer resolves and connects. The zero Dialer does it with the system's means.
type Dialer struct {
	Not    []netip.Addr // refused although they may be public: the engine's machine
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
}

// Open connects with "host:port" at a public address of its own choosing, so that
// a second answer of the name's server cannot lead elsewhere.
func (d Dialer) Open(ctx context.Context, target string) (net.Conn, error) {
	host, service, err := net.SplitHostPort(target)
	if err != nil {
		return nil, fmt.Errorf("cannot read the target %q", target)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil || port == 0 {
		return nil, fmt.Errorf("cannot read the port of %q", target)
	}
	addrs, err := d.lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("cannot resolve %q: %v", host, err)
	}
	open := d.choose(addrs)
	if len(open) == 0 {
		return nil, fmt.Errorf("cannot connect with %q: %w", host, ErrInside)
	}
	var failed error
	for _, a := range open {
		conn, err := d.dial(ctx, netip.AddrPortFrom(a, uint16(port)))
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	return nil, fmt.Errorf("cannot connect with %q: %v", host, failed)
}

// choose keeps the public addresses that are nobody's in Not, a few of them.
func (d Dialer) choose(addrs []netip.Addr) []netip.Addr {
	var open []netip.Addr
	for _, a := range addrs {
		a = a.Unmap()
		if to, _ := carried(a); Public(a) && !slices.Contains(d.Not, to) && len(open) < maxTries {
			open = append(open, a)
		}
	}
	return open
}

func (d Dialer) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	if d.Lookup != nil {
		return d.Lookup(ctx, host)
	}
	return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
}

func (d Dialer) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	if d.Dial != nil {
		return d.Dial(ctx, to)
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
}
