package helper

import (
	"fmt"
	"strings"

	"abl/internal/hostfs"
)

// spaces are the tmpfs mounts of a container, with the settings of their sizes.
var spaces = []struct{ dir, setting string }{
	{"/tmp", "limits.tmp"}, {Home, "limits.home"}, {"/dev/shm", "limits.shm"},
}

// FullPlaces lists the full tmpfs mounts of this container with their settings, "" if none is full.
func FullPlaces() string {
	const fewBytes, fewInodes = 64 << 10, 8 // a mount with less counts as full
	var full []string
	for _, s := range spaces {
		left, err := hostfs.FreeSpace(s.dir)
		if err == nil && left.Of > 0 && (left.Bytes < fewBytes || left.All > 0 && left.Inodes < fewInodes) {
			full = append(full, fmt.Sprintf("its %s is full (%s)", s.dir, s.setting))
		}
	}
	return strings.Join(full, ", ")
}
