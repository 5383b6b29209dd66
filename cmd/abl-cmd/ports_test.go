//go:build linux

package main

import "testing"

func TestPorts(t *testing.T) {
	if got := newPorts(map[int]bool{53: true}, map[int]bool{53: true, 8080: true, 3000: true}); got != "3000 8080" {
		t.Errorf("%q", got)
	}
}
