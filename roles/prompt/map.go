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

// RenderMap lists the files of a workspace. When they do not all fit, it lists the folders
// that hold some instead, with a count; whatever still does not fit is counted in a last line.
func RenderMap(files []File) Map { return render(files, limits{2000, 64 << 10}) }

func render(files []File, limit limits) Map {
	m := Map{Total: len(files)}
	folders := map[string]int{}
	for _, f := range files {
		m.Bytes += max(f.Size, 0)
		m.Lines = append(m.Lines, name(f.Path))
		folders[path.Dir(f.Path)]++
	}
	if limit.head(m.Lines) < len(m.Lines) {
		m.Lines = nil
		for folder, n := range folders {
			m.Lines = append(m.Lines, fmt.Sprintf("%s (%d files)", name(folder+"/"), n))
		}
	}
	slices.Sort(m.Lines)
	m.Lines = limit.cut(m.Lines)
	return m
}

// String is the map as project_map.txt holds it for one role.
func (m Map) String() string {
	head := fmt.Sprintf("%d files, %d bytes", m.Total, m.Bytes)
	return strings.Join(append([]string{head}, m.Lines...), "\n") + "\n"
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
