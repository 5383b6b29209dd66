//go:build !linux || portable

package proc

import (
	"fmt"
	"os/exec"
	"strings"

	"golang.org/x/sys/unix"
)

// Adopt does nothing. Without a subreaper, EndOrphans misses processes that have left their parent,
// group and session.
func Adopt() error { return nil }

// list asks ps for all processes except zombies.
func list() (all []process) {
	args := strings.Fields("ps -A -o pid= -o ppid= -o pgid= -o stat=")
	ps := exec.Cmd{Path: "/bin/ps", Args: args, Env: []string{"LC_ALL=C"}}
	out, _ := ps.Output()
	for line := range strings.Lines(string(out)) {
		var p process
		var state string
		if _, err := fmt.Sscan(line, &p.pid, &p.parent, &p.group, &state); err != nil || state[0] == 'Z' {
			continue
		}
		p.session, _ = unix.Getsid(p.pid) // 0 if it has ended; the output of ps for sessions is not portable
		all = append(all, p)
	}
	return all
}

// Name returns the program that a process was started as, "" if it is not known.
func Name(pid int) string {
	ps := exec.Cmd{Path: "/bin/ps", Args: []string{"ps", "-p", fmt.Sprint(pid), "-o", "comm="}, Env: []string{"LC_ALL=C"}}
	out, _ := ps.Output()
	return strings.TrimSpace(string(out))
}

// environ returns "": it is not available here.
func environ(int) string { return "" }
