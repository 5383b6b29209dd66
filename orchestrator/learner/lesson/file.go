package lesson

import (
	"strings"

	"abl/orchestrator/learner/answer"
)

// Bounds of memory.txt and mistakes.txt: every prompt holds them whole.
const (
	maxLines = 200
	maxBytes = 48 << 10
	// MaxFile is the largest file that is read; a person may have written more
	// than Merge would.
	MaxFile = 4 << 20
)

// Merged is what became of a file.
type Merged struct {
	Text    string
	Added   []string
	Dropped []Dropped // that the file knows already
	Forgot  int       // the oldest lessons, for which there was no room any more
}

// Merge adds lessons to a file's text. What a person wrote there stays as it is,
// line by line; when there is no more room, the oldest lines go first. Done twice
// it is done once.
func Merge(file string, items []string) Merged {
	var m Merged
	var lines []string
	seen := map[string]bool{}
	for _, line := range answer.Lines(file) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		lines = append(lines, strings.TrimRight(line, " \t"))
		seen[Key(line)] = true
	}
	for _, s := range items {
		s = strings.Join(strings.Fields(answer.Cut(s, maxItem)), " ")
		if seen[Key(s)] {
			m.Dropped = append(m.Dropped, Dropped{answer.Cut(s, 80), "known already"})
			continue
		}
		seen[Key(s)] = true
		lines, m.Added = append(lines, "- "+s), append(m.Added, s)
	}
	for len(lines) > maxLines || size(lines) > maxBytes && len(lines) > 1 {
		lines = lines[1:]
		m.Forgot++
	}
	if len(lines) > 0 {
		m.Text = strings.Join(lines, "\n") + "\n"
	}
	return m
}

func size(lines []string) (n int) {
	for _, l := range lines {
		n += len(l) + 1
	}
	return n
}

// Items are the lessons of a file, without their bullets.
func Items(file string) (items []string) {
	for _, line := range answer.Lines(file) {
		line = strings.TrimSpace(line)
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(line, "- "), "* "))
		if line != "" {
			items = append(items, line)
		}
	}
	return items
}
