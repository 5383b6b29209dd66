package prompt

import (
	"fmt"
	"path"
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

// Map is a rendered list.
type Map struct {
	Lines []string // sorted by path; no line holds a line end or a control character
	Total int      // files in the workspace, shown or not
	Bytes int64    // their sizes together
}

// RenderMap lists the files of a workspace. When they do not all fit, the folders
// that hold the most files are shown as one line with a count, then smaller ones, until
// the list fits; whatever still does not is counted in a last line.
func RenderMap(files []File) Map { return render(files, limits{2000, 64 << 10}) }

func render(files []File, limit limits) Map {
	m := Map{Total: len(files)}
	m.Lines = list(files, func(string) bool { return false })
	direct, most := map[string]int{}, 0
	for _, f := range files {
		m.Bytes += max(f.Size, 0)
		folder := path.Dir(f.Path)
		direct[folder]++
		most = max(most, direct[folder])
	}
	for at := most; at > 0 && limit.head(m.Lines) < len(m.Lines); at /= 2 {
		m.Lines = list(files, func(folder string) bool { return direct[folder] >= at })
	}
	m.Lines = limit.cut(m.Lines)
	return m
}

// String is the map as project_map.txt holds it for one role.
func (m Map) String() string {
	head := fmt.Sprintf("%d files, %d bytes", m.Total, m.Bytes)
	return strings.Join(append([]string{head}, m.Lines...), "\n") + "\n"
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

// topmost is the first folder on the way down to a file that hide names.
func topmost(path string, hide func(folder string) bool) (string, bool) {
	for i := range len(path) {
		if path[i] == '/' && hide(path[:i]) {
			return path[:i], true
		}
	}
	return "", false
}

// limits bound a map, so that a prompt does not drown in names.
type limits struct{ lines, bytes int } // line ends included

// head is the number of lines from the first on that are within the limits.
func (l limits) head(lines []string) int {
	size := 0
	for i, line := range lines {
		size += len(line) + 1
		if i >= l.lines || size > l.bytes {
			return i
		}
	}
	return len(lines)
}

// cut keeps what fits and says how much it left out, in a line within the limits.
func (l limits) cut(lines []string) []string {
	if l.head(lines) == len(lines) {
		return lines
	}
	const room = 40 // bytes of the line that says so
	n := limits{l.lines - 1, l.bytes - room}.head(lines)
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
