//go:build linux

package main

import (
	"os"
	"slices"
	"strconv"
	"strings"
)

// listening are the TCP ports of this network namespace on which somebody listens.
func listening() map[int]bool {
	ports := map[int]bool{}
	for _, table := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue // a kernel without IPv6
		}
		for line := range strings.Lines(string(data)) {
			if port, ok := listener(line); ok {
				ports[port] = true
			}
		}
	}
	return ports
}

// listener reads a line of the kernel's table: the second field is the local
// address, hexadecimal, the fourth the state.
func listener(line string) (port int, ok bool) {
	const state, listens = 3, "0A"
	f := strings.Fields(line)
	if len(f) <= state || f[state] != listens {
		return 0, false
	}
	_, hex, _ := strings.Cut(f[1], ":")
	n, err := strconv.ParseUint(hex, 16, 16)
	return int(n), err == nil
}

// maxPorts bounds how many ports are told.
const maxPorts = 20

// newPorts are those that were not there before.
func newPorts(before, now map[int]bool) string {
	var ports []int
	for p := range now {
		if !before[p] {
			ports = append(ports, p)
		}
	}
	slices.Sort(ports)
	var words []string
	for _, p := range ports[:min(len(ports), maxPorts)] {
		words = append(words, strconv.Itoa(p))
	}
	return strings.Join(words, " ")
}
