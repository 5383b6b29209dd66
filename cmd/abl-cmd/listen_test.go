//go:build linux

package main

import (
	"net"
	"testing"
)

// The port on which this process listens is told.
func TestListening(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if all := listening(); !all[port] {
		t.Fatalf("port %d is not among %v", port, all)
	}
}

func TestPorts(t *testing.T) {
	if got := newPorts(map[int]bool{53: true}, map[int]bool{53: true, 8080: true, 3000: true}); got != "3000 8080" {
		t.Errorf("%q", got)
	}
}
