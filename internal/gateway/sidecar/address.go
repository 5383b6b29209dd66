package sidecar

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// Override reads the address that a person gives instead of a provider's own, in
// the variable name. One that is local is on this machine's loopback, so that a
// Forwarder has to pass on to it. Errors show no part of it, since it may hold a password.
func Override(name, raw string) (target *url.URL, local bool, err error) {
	if target, err = readAddress(raw); err == nil {
		local, err = isLocal(strings.TrimSuffix(target.Hostname(), "."))
	}
	if err != nil {
		return nil, false, fmt.Errorf("cannot use %s: %w", name, err)
	}
	return target, local, nil
}

// readAddress wants an address to which a path can be appended.
func readAddress(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	odd := func(r rune) bool { return r <= ' ' || r >= 0x7f || strings.ContainsRune(`\%#?`, r) }
	switch {
	case strings.ContainsFunc(raw, odd) || err != nil || u.Opaque != "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("want a plain address such as https://proxy.example/v1: nothing encoded, nothing behind its path")
	case u.User != nil:
		return nil, errors.New("it holds a user name or password: give the key in its own variable")
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); (err != nil || n == 0) && (u.Port() != "" || strings.HasSuffix(u.Host, ":")) {
		return nil, errors.New("its port is not one of 1 to 65535")
	}
	u.Host = strings.ToLower(u.Host)
	if u.Path = strings.TrimRight(u.Path, "/"); u.Path != "" && path.Clean(u.Path) != u.Path {
		return nil, errors.New("its path has an empty or dotted part")
	}
	return u, nil
}

// isLocal decides by the host alone: no name is resolved.
func isLocal(host string) (bool, error) {
	addr, err := netip.ParseAddr(host)
	addr = addr.Unmap()
	last := host[strings.LastIndexByte(host, '.')+1:]
	switch {
	case err == nil && addr.IsUnspecified():
		return false, errors.New("its host is an address to listen at: for this machine give 127.0.0.1")
	case err == nil && (addr.IsLinkLocalUnicast() || addr.IsMulticast()):
		return false, errors.New("its host is a link-local or multicast address, which a container cannot reach")
	case err == nil || last == "localhost":
		return err != nil || addr.IsLoopback(), nil
	case last == "" || strings.Contains(host, "..") || strings.ContainsAny(host, ":[]") || last[0] >= '0' && last[0] <= '9':
		// 127.1 and the like mean different things to different programs.
		return false, errors.New("its host is neither a name nor an address such as 127.0.0.1 or [::1]")
	}
	return false, nil
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
