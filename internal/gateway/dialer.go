package gateway

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

// Dialer connects with registries: it resolves the name itself, looks at what it
// resolved to, and connects with exactly that. The zero Dialer does it with the
// system's means.
type Dialer struct {
	Not    []netip.Addr // refused although they may be public: the engine's machine
	Lookup func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Dial   func(ctx context.Context, network, to string) (net.Conn, error)
}

// Open connects with "host:port" at a public address of its own choosing, so that
// a second answer of the name's server cannot lead elsewhere.
func (d Dialer) Open(ctx context.Context, target string) (net.Conn, error) {
	lookup, dial := d.Lookup, d.Dial
	if lookup == nil {
		lookup = net.DefaultResolver.LookupNetIP
	}
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	host, service, err := net.SplitHostPort(target)
	port, perr := strconv.ParseUint(service, 10, 16)
	if err != nil || perr != nil || port == 0 {
		return nil, fmt.Errorf("cannot read the target %q", target)
	}
	addrs, err := lookup(ctx, "ip", host)
	if err != nil {
		return nil, fmt.Errorf("cannot resolve %q: %v", host, err)
	}
	open := d.choose(addrs)
	if len(open) == 0 {
		return nil, fmt.Errorf("cannot connect with %q: %w", host, ErrInside)
	}
	var failed error
	for _, a := range open {
		conn, err := dial(ctx, "tcp", netip.AddrPortFrom(a, uint16(port)).String())
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
		if to, _ := carried(a); isPublic(a) && !slices.Contains(d.Not, to) && len(open) < maxTries {
			open = append(open, a)
		}
	}
	return open
}

// inside are addresses that lead back into a machine, its network or its cloud,
// beyond those that netip knows as such. The ranges for documentation are no part
// of it: they lead nowhere, but for laboratories that have their registries there.
var inside = prefixes(
	"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.88.99.0/24", "198.18.0.0/15", "240.0.0.0/4",
	"168.63.129.16/32", // a cloud's host, at a public address
	"100::/64", "2001::/23", "5f00::/16", "fec0::/10",
)

// carriers are IPv6 ranges whose addresses hold an IPv4 one that they lead to, and
// the byte at which it stands.
var carriers = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12},
	{netip.MustParsePrefix("64:ff9b:1::/48"), 12},
	{netip.MustParsePrefix("2002::/16"), 2},
	{netip.MustParsePrefix("::/96"), 12},
}

// isPublic says whether an address is one of the internet's. Private, loopback,
// link-local (the clouds' metadata among them), multicast and reserved ones are not.
func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range inside {
		if p.Contains(a) {
			return false
		}
	}
	if to, ok := carried(a); ok {
		return isPublic(to)
	}
	return true
}

// carried is the IPv4 address that an IPv6 one leads to, if it is such a one.
func carried(a netip.Addr) (to netip.Addr, ok bool) {
	for _, c := range carriers {
		if c.prefix.Contains(a) {
			b := a.As16()
			return netip.AddrFrom4([4]byte(b[c.at : c.at+4])), true
		}
	}
	return a, false
}

func prefixes(all ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(all))
	for i, s := range all {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}
