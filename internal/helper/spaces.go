package helper

import (
	"fmt"
	"strings"

	"abl/internal/hostfs"
)

// spaces are the places of a container that are in memory, with the settings of their sizes.
var spaces = []struct{ dir, setting string }{
	{"/tmp", "limits.tmp"}, {Home, "limits.home"}, {"/dev/shm", "limits.shm"},
}

// FullPlaces names the places in memory in which nothing more fits, with their settings. It returns ""
// if there are none.
func FullPlaces() string {
	const bytes, files = 64 << 10, 8 // fewer than that are no room
	var full []string
	for _, s := range spaces {
		left, err := hostfs.FreeSpace(s.dir)
		if err == nil && left.Of > 0 && (left.Bytes < bytes || left.All > 0 && left.Inodes < files) {
			full = append(full, fmt.Sprintf("its %s is full (%s)", s.dir, s.setting))
		}
	}
	return strings.Join(full, ", ")
}
