package sandboxtest

import (
	"path/filepath"
	"strings"

	"abl/internal/sandbox"
)

// Host returns the host path of a path in a container, by its bind mounts. It returns "" if no
// bind mount contains the path. Scripts read and write through it.
func Host(container sandbox.ContainerConfig, inside string) string {
	host, longest := "", -1
	for _, m := range container.Mounts {
		rest, ok := strings.CutPrefix(inside, m.Target)
		if !ok || rest != "" && !strings.HasPrefix(rest, "/") || len(m.Target) <= longest {
			continue
		}
		longest, host = len(m.Target), filepath.Join(m.Source, filepath.FromSlash(rest))
		if m.What.IsVolume() {
			host = "" // an engine's volume has no host path that a test could use
		}
	}
	return host
}
