//go:build linux

package probe

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"abl/internal/helper"
	"abl/internal/sandbox"
)

// lookups checks that the resolver is the holder's, and that it knows no name of
// the outside. An answer that does not come proves nothing: the question may be
// on its way to anybody.
func lookups(ctx context.Context, names []string) sandbox.Proof {
	if len(names) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	proof := make(sandbox.Proof, len(names)+1)
	var all sync.WaitGroup
	all.Go(func() { proof[0] = sandbox.Same("resolver inside", "127.0.0.1", lookup(ctx, helper.HolderName)) })
	for i, name := range names {
		all.Go(func() { proof[i+1] = sandbox.Same("name "+name, unknown, lookup(ctx, name)) })
	}
	all.Wait()
	return proof
}

func lookup(ctx context.Context, name string) string {
	r := &net.Resolver{PreferGo: true}
	found, err := r.LookupNetIP(ctx, "ip4", name+".") // the dot keeps it from being completed
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		return unknown
	case err != nil:
		return err.Error()
	}
	var all []string
	for _, ip := range found {
		all = append(all, ip.Unmap().String())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// neighbours are the addresses at which a host can be looked for from here: all
// of a small network, the first of a large one, and the gateways of the routes.
func neighbours() []string {
	const small = 24 // bits
	var all []string
	if text, err := os.ReadFile("/proc/net/route"); err == nil {
		all = gateways(string(text))
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return all
	}
	for _, a := range addrs {
		p, err := netip.ParsePrefix(a.String())
		if err != nil || !p.Addr().Is4() || p.Addr().IsLoopback() {
			continue
		}
		for at := p.Masked().Addr().Next(); p.Contains(at); at = at.Next() {
			if at != p.Addr() {
				all = append(all, at.String())
			}
			if p.Bits() < small {
				break
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// gateways are those of the kernel's table in the form of /proc/net/route, whose
// numbers are little-endian words in hexadecimal.
func gateways(table string) (all []string) {
	for line := range strings.Lines(table) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		raw, err := hex.DecodeString(f[2])
		if err != nil || len(raw) != 4 {
			continue // the heading
		}
		slices.Reverse(raw)
		if at, _ := netip.AddrFromSlice(raw); !at.IsUnspecified() {
			all = append(all, at.String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
