package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"abl/internal/yamlfile"
)

// Line is one setting as `abl config` shows it.
type Line struct {
	Key    string // dotted
	Value  string
	Source string // default, FILE:LINE, a variable or a flag
}

// Lines lists every setting, sorted by key.
func (l *Loaded) Lines() []Line {
	values := yamlfile.Values(l.Config)
	lines := make([]Line, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		lines = append(lines, Line{key, values[key], l.source(key).String()})
	}
	return lines
}

// String is the source as `abl config` shows it.
func (s Source) String() string {
	if s.Line == 0 {
		return s.Name
	}
	return fmt.Sprintf("%s:%d", s.Name, s.Line)
}

// source says where the value of a key comes from: from its own line, or from
// the one value that was given for both roles.
func (l *Loaded) source(key string) Source {
	if src, ok := l.Sources[key]; ok {
		return src
	}
	whole, _, _ := strings.Cut(key, ".")
	if src, ok := l.Sources[whole]; ok && (whole == "agent" || whole == "models") && !hasParts(l, whole) {
		return src
	}
	const number = "loop.no_progress" // a number alone is about failures
	src, given := l.Sources[number]
	if _, parts := l.Sources[number+".unverified"]; given && !parts && key == number+".failed" {
		return src
	}
	return Source{Name: "default"}
}

// hasParts says whether the file gives the roles of key one by one.
func hasParts(l *Loaded, key string) bool {
	src := l.Sources[key]
	if src.Line == 0 {
		return false
	}
	for _, role := range []string{".builder", ".verifier"} {
		if part, ok := l.Sources[key+role]; ok && part.Line > 0 {
			return true
		}
	}
	return false
}

// mistake is an error about the value of a key, at the place that it is from.
// The key of a list's item or of a missing value is at its nearest parent's
// line.
func (l *Loaded) mistake(key, hint, format string, args ...any) error {
	msg := key + ": " + fmt.Sprintf(format, args...)
	return &yamlfile.Error{File: l.place(key).Name, Line: l.place(key).Line, Msg: msg, Hint: hint}
}

func (l *Loaded) place(key string) Source {
	for at := key; at != ""; at = parent(at) {
		if src, ok := l.Sources[at]; ok {
			return src
		}
	}
	if l.File != "" {
		return Source{Name: l.File}
	}
	return Source{Name: files[0]}
}

func parent(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}
