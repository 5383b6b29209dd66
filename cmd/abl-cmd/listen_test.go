//go:build linux

package main

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The port on which this process listens is reported.
func TestListening(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if all := listening(); !slices.Contains(strings.Fields(all), port) && len(strings.Fields(all)) < 20 {
		t.Fatalf("listening ports: got %q, want %s among them", all, port)
	}
}
