package config

import (
	"cmp"
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

// source says where the value of a key comes from: from its own place, or from that of
// one value that was given for all of its part.
func (l *Loaded) source(key string) Source {
	for at := key; at != ""; at = yamlfile.Above(at) {
		src, ok := l.Sources[at]
		if ok && (at != "loop.no_progress" || key == at+".failed") { // a number alone is about failures
			return src
		}
	}
	return Source{Name: "default"}
}

// mistake is an error about the value of a key, at the place that it is from: that of
// a missing value is the line of what it is missing in.
func (l *Loaded) mistake(key, hint, format string, args ...any) error {
	at := l.source(key)
	for above := key; at.Name == "default"; above = yamlfile.Above(above) {
		if line, ok := l.lines[above]; ok || above == "" {
			at = Source{cmp.Or(l.File, File), line}
		}
	}
	if strings.HasSuffix(key, "]") { // the line says which item
		key = yamlfile.Above(key)
	}
	return &yamlfile.Error{File: at.Name, Line: at.Line, Msg: key + ": " + fmt.Sprintf(format, args...), Hint: hint}
}
