package roles

import (
	"os"
	"runtime"
	"strconv"
	"strings"
)

// mountPoints lists where something is mounted, as this process sees it.
func mountPoints() ([]string, error) {
	if runtime.GOOS != "linux" {
		return nil, nil // there the engine has a kernel of its own, with its own mounts
	}
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var all []string
	for line := range strings.Lines(string(data)) {
		const point = 4 // the fifth field
		if f := strings.Fields(line); len(f) > point {
			all = append(all, unescape(f[point]))
		}
	}
	return all, nil
}

// unescape undoes how the kernel writes a space and its like: \040.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
