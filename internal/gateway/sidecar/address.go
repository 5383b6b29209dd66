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
	if strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }) {
		return nil, errors.New("it holds a space or another character that no address has")
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Opaque != "":
		return nil, errors.New("it is no address; want one such as https://proxy.example/v1")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("want an address that begins with http:// or https://")
	case u.User != nil:
		return nil, errors.New("it holds a user name or password: give the key in its own variable")
	case u.RawQuery != "" || u.ForceQuery || strings.Contains(raw, "#"):
		return nil, errors.New("it goes on after its path: leave out what begins with ? or #")
	case strings.Contains(raw, "%"):
		return nil, errors.New("its path is percent-encoded: give a plain one")
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
	case err == nil && (addr.IsLinkLocalUnicast() || addr.IsMulticast() || addr.Zone() != ""):
		return false, errors.New("its host is a link-local or multicast address, which a container cannot reach")
	case err == nil || last == "localhost":
		return err != nil || addr.IsLoopback(), nil
	case last == "" || strings.Contains(host, "..") || strings.ContainsAny(host, ":[]"):
		return false, errors.New("it has no host")
	case last[0] >= '0' && last[0] <= '9': // 127.1 and the like mean different things to different programs
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
