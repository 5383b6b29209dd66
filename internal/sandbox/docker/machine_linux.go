//go:build !portable

package docker

import (
	"os"
	"strings"
)

// release is the kernel of this machine, "" where it cannot be read, which is no engine's.
func release() string {
	text, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}
