// Package tunnel connects a role with a package registry: it resolves the name
// itself, looks at what it resolved to, connects with exactly that, and lets only
// so much pass for so long.
package tunnel

import "net/netip"

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

// Public says whether an address is one of the internet's. Private, loopback,
// link-local (the clouds' metadata among them), multicast and reserved ones are not.
func Public(a netip.Addr) bool {
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
		return Public(to)
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
