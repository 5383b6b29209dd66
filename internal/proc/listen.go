package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Socket is a TCP port on which somebody listens.
type Socket struct {
	Port  int
	Inode string // by which the kernel names it among a process's files
}

// Sockets are those of the network namespace that the process is in; false where
// the kernel does not tell.
func Sockets(pid int) (all []Socket, known bool) {
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			continue // a kernel without IPv6
		}
		known = true
		for line := range bytes.Lines(data) {
			if s, ok := listener(string(line)); ok {
				all = append(all, s)
			}
		}
	}
	return all, known
}

// listener reads a line of the kernel's table: the second field is the local
// address, hexadecimal, the fourth the state, the tenth the inode.
func listener(line string) (s Socket, ok bool) {
	const state, inode, listens = 3, 9, "0A"
	f := strings.Fields(line)
	if len(f) <= inode || f[state] != listens {
		return s, false
	}
	_, hex, _ := strings.Cut(f[1], ":")
	n, err := strconv.ParseUint(hex, 16, 16)
	return Socket{int(n), f[inode]}, err == nil
}
