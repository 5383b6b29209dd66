package gateway

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// ParseAddress reads the base address of an upstream, to which a path can be appended. One
// that is local is on this machine's loopback, by its host alone: no name is resolved. Errors
// show no part of it, since it may hold a password.
func ParseAddress(raw string) (base *url.URL, local bool, err error) {
	base, err = url.Parse(strings.TrimRight(raw, "/"))
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Hostname() == "" || base.User != nil || strings.ContainsAny(raw, "?#%") {
		return nil, false, errors.New("want a plain address such as https://proxy.example/v1: no user or password in it, nothing encoded, and nothing behind its path")
	}
	base.Host = strings.ToLower(base.Host)
	host := strings.TrimSuffix(base.Hostname(), ".")
	addr, _ := netip.ParseAddr(host) // or it is a name
	addr = addr.Unmap()
	local = addr.IsLoopback() || addr.IsUnspecified() || host == "localhost" || strings.HasSuffix(host, ".localhost")
	return base, local, nil
}

// MachineAddrs are this machine's own addresses, for the Inside of a setup: a machine may
// have a public one, behind which all its services listen.
func MachineAddrs() (all []netip.Addr, err error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("cannot find out this machine's addresses: %w", err)
	}
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p.Addr().Unmap().WithZone(""))
		}
	}
	return all, nil
}
