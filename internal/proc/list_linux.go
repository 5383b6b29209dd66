//go:build !portable

package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Adopt makes this process the parent of orphaned descendants, so that EndOrphans finds them in any
// group and session.
func Adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("cannot become subreaper: %w", err)
	}
	return nil
}

// list returns all processes except zombies.
func list() (all []process) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		stat, err := os.ReadFile(folder + "/stat")
		if p, ok := parseStat(stat); err == nil && ok {
			all = append(all, p)
		}
	}
	return all
}

// environ returns the initial environment of a process, "" if it cannot be read.
func environ(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return string(data)
}

// Name returns the program that a process was started as, "" if it is not known.
func Name(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	name, _, _ := bytes.Cut(data, []byte{0})
	return string(name)
}

// parseStat parses "pid (name) state parent group session …". The name may contain spaces and
// parentheses.
func parseStat(stat []byte) (p process, ok bool) {
	end := bytes.LastIndexByte(stat, ')')
	if end < 0 {
		return p, false
	}
	var state string
	head, _ := fmt.Sscan(string(stat), &p.pid)
	rest, _ := fmt.Sscan(string(stat[end+1:]), &state, &p.parent, &p.group, &p.session)
	return p, head+rest == 5 && state != "Z" && state != "X"
}
