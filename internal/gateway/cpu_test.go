package gateway

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tick is the unit of processor time in /proc, which is the same on every Linux.
const tick = 10 * time.Millisecond

// cpu is the processor time, in user and kernel, that a process and its children
// have used so far. 0 is no process.
func cpu(b *testing.B, pid int) (used time.Duration) {
	b.Helper()
	if pid == 0 {
		return 0
	}
	for _, id := range append(children(b, pid), strconv.Itoa(pid)) {
		data, err := os.ReadFile("/proc/" + id + "/stat")
		if err != nil {
			b.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(data), ") ") // behind the name
		fields := strings.Fields(rest)
		for _, text := range fields[11:13] { // utime and stime
			ticks, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			used += time.Duration(ticks) * tick
		}
	}
	return used
}

// children are the processes that a process has started: nginx works in its own.
func children(b *testing.B, pid int) []string {
	b.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		b.Fatal(err)
	}
	return strings.Fields(string(data))
}
