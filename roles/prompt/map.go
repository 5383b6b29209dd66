package prompt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"abl/internal/redact"
)

// File is one file of a workspace.
type File struct {
	Path string // slash-separated, relative to the workspace
	Size int64  // bytes
}

// MapLimit bounds a map.
type MapLimit struct {
	Lines int // lines below the header
	Bytes int // bytes of all lines, line ends included
}

// DefaultMapLimit is what a prompt can carry without drowning in names.
func DefaultMapLimit() MapLimit { return MapLimit{Lines: 2000, Bytes: 64 << 10} }

// Map is a rendered list.
type Map struct {
	Lines []string // sorted by path; no line holds a line end or a control character
	Total int      // files in the workspace, shown or not
	Bytes int64    // their sizes together
}

// RenderMap lists the files of a workspace. When they do not all fit, the folders
// that hold the most files are shown as one line with a count, then smaller
// ones, then all below some depth, until the list fits; whatever still does not
// is counted in a last line.
func RenderMap(files []File, limit MapLimit) Map {
	m := Map{Total: len(files)}
	for _, f := range files {
		m.Bytes += max(f.Size, 0)
	}
	m.Lines = list(files, func(string) bool { return false })
	direct, most, deepest := measure(files)
	for at := most; at > 0 && !limit.fits(m.Lines); at /= 2 {
		m.Lines = list(files, func(folder string) bool { return direct[folder] >= at })
	}
	for depth := deepest; depth > 0 && !limit.fits(m.Lines); depth-- {
		m.Lines = list(files, func(folder string) bool { return strings.Count(folder, "/")+1 >= depth })
	}
	m.Lines = limit.cut(m.Lines)
	return m
}

// Header is the first line of a map on disk and in a prompt.
func (m Map) Header() string { return fmt.Sprintf("%d files, %d bytes", m.Total, m.Bytes) }

// String is the map as project_map.txt holds it for one role.
func (m Map) String() string {
	return strings.Join(append([]string{m.Header()}, m.Lines...), "\n") + "\n"
}

// measure counts the files that lie directly in each folder, the most that one
// of them holds, and how deep the deepest lies.
func measure(files []File) (direct map[string]int, most, deepest int) {
	direct = map[string]int{}
	for _, f := range files {
		i := strings.LastIndexByte(f.Path, '/')
		if i < 0 {
			continue
		}
		folder := f.Path[:i]
		direct[folder]++
		most = max(most, direct[folder])
		deepest = max(deepest, strings.Count(folder, "/")+1)
	}
	return direct, most, deepest
}

// list has a line for each file, or for the topmost folder above it that hide
// names, with the number of files below that folder.
func list(files []File, hide func(folder string) bool) []string {
	folders := map[string]int{}
	var lines []string
	for _, f := range files {
		if folder, ok := topmost(f.Path, hide); ok {
			folders[folder]++
		} else {
			lines = append(lines, name(f.Path))
		}
	}
	for folder, n := range folders {
		lines = append(lines, fmt.Sprintf("%s (%d files)", name(folder+"/"), n))
	}
	slices.Sort(lines)
	return lines
}

// topmost is the first folder on the way down to path that hide names.
func topmost(path string, hide func(folder string) bool) (string, bool) {
	for i := range len(path) {
		if path[i] == '/' && hide(path[:i]) {
			return path[:i], true
		}
	}
	return "", false
}

// fits reports whether all lines are within the limit.
func (l MapLimit) fits(lines []string) bool { return l.head(lines) == len(lines) }

// head is the number of lines from the first on that are within the limit.
func (l MapLimit) head(lines []string) int {
	size := 0
	for i, line := range lines {
		size += len(line) + 1
		if i >= l.Lines || size > l.Bytes {
			return i
		}
	}
	return len(lines)
}

// cut keeps what fits and says how much it left out, in a line within the limit.
func (l MapLimit) cut(lines []string) []string {
	if l.fits(lines) {
		return lines
	}
	const room = 40 // bytes of the line that says so
	n := MapLimit{Lines: l.Lines - 1, Bytes: l.Bytes - room}.head(lines)
	return append(slices.Clone(lines[:n]), fmt.Sprintf("and %d more lines", len(lines)-n))
}

// name is a path as it is shown: as it is when it is plain, quoted otherwise, so
// that it cannot pass for several lines, for a count, or for anything but a name.
func name(path string) string {
	plain := path != "" && !strings.ContainsFunc(path, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r) || !redact.Plain(r) || strings.ContainsRune(" \"'`\\<>()", r)
	})
	if plain {
		return path
	}
	return redact.Whole(strconv.QuoteToGraphic(path))
}
