package call

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"abl/internal/redact"
)

// MapFile is one file of a workspace.
type MapFile struct {
	Path string // slash-separated, relative to the workspace
	Size int64  // bytes
}

// ProjectMap is the rendered list of a workspace's files.
type ProjectMap struct {
	Lines []string // sorted by path, without line ends and control characters
	Total int      // files in the workspace, shown or not
	Bytes int64    // sum of their sizes
}

// RenderMap lists the files of a workspace. If they do not all fit, it lists the folders with
// the number of files in each instead. A last line counts the entries that do not fit either.
func RenderMap(files []MapFile) ProjectMap { return render(files, limits{2000, 64 << 10}) }

func render(files []MapFile, limit limits) ProjectMap {
	m := ProjectMap{Total: len(files)}
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

// String returns the text of project_map.txt.
func (m ProjectMap) String() string {
	head := fmt.Sprintf("%d files, %d bytes", m.Total, m.Bytes)
	return strings.Join(append([]string{head}, m.Lines...), "\n") + "\n"
}

// limits bound the size of a map in a prompt.
type limits struct{ lines, bytes int } // line ends included

// head returns how many of the first lines are within the limits.
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

// cut returns the lines that fit. If some do not, its last line says how many are left out.
func (l limits) cut(lines []string) []string {
	if l.head(lines) == len(lines) {
		return lines
	}
	const room = 40 // bytes of that last line
	n := limits{l.lines - 1, l.bytes - room}.head(lines)
	return append(slices.Clone(lines[:n]), fmt.Sprintf("and %d more lines", len(lines)-n))
}

// name returns a path as the map shows it: quoted if it contains characters with which it could
// look like several lines, a count, or anything other than a name.
func name(path string) string {
	plain := path != "" && !strings.ContainsFunc(path, func(r rune) bool {
		return r == unicode.ReplacementChar || !unicode.IsPrint(r) || !redact.Plain(r) || strings.ContainsRune(" \"'`\\<>()", r)
	})
	if plain {
		return path
	}
	return redact.Whole(strconv.QuoteToGraphic(path))
}
