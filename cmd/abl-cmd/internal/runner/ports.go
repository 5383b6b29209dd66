package runner

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"abl/internal/proc"
)

// listening are the TCP ports of this network namespace on which somebody listens.
func listening() map[int]bool {
	ports := map[int]bool{}
	all, _ := proc.Sockets(os.Getpid())
	for _, s := range all {
		ports[s.Port] = true
	}
	return ports
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
