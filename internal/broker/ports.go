package broker

import (
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"abl/internal/helper"
)

// otherPorts returns a text with the ports on which the app listens instead of its own, "" if it listens
// on its own port or on none.
func otherPorts(port int) string {
	ports := listening("/proc/net/tcp", "/proc/net/tcp6")
	if len(ports) == 0 || slices.Contains(ports, port) {
		return ""
	}
	text, s := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ports)), ", "), "[]"), ""
	if len(ports) > 1 {
		s = "s"
	}
	return fmt.Sprintf("; it listens on port%s %s", s, text)
}

// listening returns the TCP ports with a listener in this container, from the kernel's tables. It skips
// the ports of the broker and of the name servers of abl and of the engine.
func listening(tables ...string) (ports []int) {
	const state, listens, names = 3, "0A", 53
	for _, table := range tables {
		data, _ := os.ReadFile(table) // IPv6 may be missing
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) <= state || f[state] != listens {
				continue
			}
			address, number, _ := strings.Cut(f[1], ":")
			port, err := strconv.ParseInt(number, 16, 32)
			ip, herr := hex.DecodeString(address)
			slices.Reverse(ip) // the kernel prints IPv4 addresses in reverse
			if err != nil || herr != nil || port == helper.BrokerPort || port == names || net.IP(ip).Equal(net.IPv4(127, 0, 0, 11)) {
				continue
			}
			ports = append(ports, int(port))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports)
}
