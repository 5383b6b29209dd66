package sidecar

import (
	"net/netip"
	"slices"
	"testing"
)

// What it finds are addresses, as the gateway takes them.
func TestMachineAddrs(t *testing.T) {
	all, err := MachineAddrs()
	if err != nil || !slices.Contains(all, "127.0.0.1") || !slices.IsSorted(all) {
		t.Fatalf("%q, %v", all, err)
	}
	for _, a := range all {
		if _, err := netip.ParseAddr(a); err != nil {
			t.Error(err)
		}
	}
}
