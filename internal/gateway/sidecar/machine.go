package sidecar

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// MachineAddrs are this machine's own addresses, for the Inside of a setup: a machine may
// have a public one, behind which all its services listen.
func MachineAddrs() ([]string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("cannot find out this machine's addresses: %w", err)
	}
	var all []string
	for _, a := range addrs {
		if p, err := netip.ParsePrefix(a.String()); err == nil {
			all = append(all, p.Addr().Unmap().WithZone("").String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
