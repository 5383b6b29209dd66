// Package toolchain knows which versions of Go, Node.js and Python abl can put into an
// image, and what a short version stands for, so that nobody has to be asked.
package toolchain

import (
	"maps"
	"slices"
	"strings"

	"abl/internal/lazyregexp"
)

// Set is a version of each, "" for what abl's tools have anyway.
type Set struct {
	Go     string `yaml:"go"`
	Node   string `yaml:"node"`
	Python string `yaml:"python"`
}

// Tool is one of them.
type Tool struct {
	Name    string            // go, node or python
	Version string            // in full; Debian alone decides on the last number of a Python
	Pin     string            // what its line stands for, as abl knows it
	Sums    map[string]string // a Go's: the pin's hash in Go's checksum database, by architecture
	Suite   string            // a Python's: the Debian that it is from, "" for the image's own
}

// lines are what a short version stands for. Each is there for both architectures.
var lines = map[string]map[string]Tool{
	"go": {
		"1.25": {Pin: "1.25.14", Sums: map[string]string{
			"amd64": "h1:XriDgll2yv4W2YeUo2X/WuUuy+iGJkXGH0CQloMBEXo=", "arm64": "h1:tccCYNAEolyjUyQVNxD/wJuly2Sx85m+OUkzGIhO1oY="}},
		"1.26": {Pin: "1.26.10", Sums: map[string]string{
			"amd64": "h1:5VAGHlY8yl8pTPVSNIez3SNMy6fWabs+QMR25f3oMT0=", "arm64": "h1:TuAzKmE5TqYnXpnhgY3GtBJCVg4AfNDA/K1gLyX5Hig="}},
		"1.27": {Pin: "1.27.3", Sums: map[string]string{
			"amd64": "h1:r0ub+FnqzZxoWm/dSUOI9DcIqYWn/mNYGFJcv7PyBzs=", "arm64": "h1:VY4gDzfxOrsM17J2qtgZgiAIsWhp7XWK1jMfE3kXV0s="}},
	},
	"node":   {"22": {Pin: "22.23.3"}, "24": {Pin: "24.21.0"}, "26": {Pin: "26.10.0"}},
	"python": {"3.11": {Pin: "3.11"}, "3.13": {Pin: "3.13", Suite: "trixie"}},
}

// Lines are the short versions of a tool, sorted.
func Lines(name string) []string { return slices.Sorted(maps.Keys(lines[name])) }

// inFull are the versions of which the line tells whether they can be had: not Debian's.
var inFull = lazyregexp.New(`^(?:go (1\.\d+)|node (\d+)\.\d+)\.\d+$`)

// Find is the tool at a version: at a short one, or in full at any of a line that is known.
func Find(name, version string) (t Tool, ok bool) {
	if t, ok = lines[name][version]; ok {
		version = t.Pin
	} else if m := inFull().FindStringSubmatch(name + " " + version); m != nil {
		t, ok = lines[name][m[1]+m[2]]
	}
	t.Name, t.Version = name, version
	return t, ok
}

// Named says whether an image of that name is one of a tool.
func Named(image string) bool {
	name, version, _ := strings.Cut(image, "-")
	_, ok := Find(name, version)
	return ok
}

// Tools are those of the set that abl knows, in the order in which they are put on top of each other.
func (s Set) Tools() (all []Tool) {
	for _, want := range [][2]string{{"go", s.Go}, {"node", s.Node}, {"python", s.Python}} {
		if t, ok := Find(want[0], want[1]); ok {
			all = append(all, t)
		}
	}
	return all
}

// Names are the tools for people, with versions in full.
func (s Set) Names() (all []string) {
	for _, t := range s.Tools() {
		all = append(all, t.Name+" "+t.Version)
	}
	return all
}
