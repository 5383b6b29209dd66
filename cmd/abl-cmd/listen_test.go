//go:build linux

package main

import (
	"net"
	"testing"
)

func TestListener(t *testing.T) {
	for line, want := range map[string]int{
		"  0: 00000000:0BB8 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0":          3000,
		" 1: 00000000000000000000000000000000:1F90 00000000000000000000000000000000:0000 0A 0:0 0:0 0 0 0 12 1":                    8080,
		"  0: 0100007F:0035 00000000:0000 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0 100 0 0 10 0":          0,
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode                        ": 0,
		" 1: x:zz y 0A 1 2 3 4 5 6": 0,
		"":                          0,
	} {
		if got, ok := listener(line); ok != (want != 0) || got != want {
			t.Errorf("%q: %d, want %d", line, got, want)
		}
	}
}

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
