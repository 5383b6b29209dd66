package gateway

import (
	"slices"
	"testing"
)

// What it finds the gateway takes.
func TestMachineAddrs(t *testing.T) {
	all, err := MachineAddrs()
	if err != nil || !slices.Contains(all, "127.0.0.1") || !slices.IsSorted(all) {
		t.Fatalf("%q, %v", all, err)
	}
	if parsed, err := (Setup{Inside: all}).inside(); err != nil || len(parsed) != len(all) {
		t.Errorf("%v, %v", parsed, err)
	}
}
