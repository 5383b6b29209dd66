// Package toolchain lists the versions of languages that abl can install in an image.
package toolchain

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Set has a version of each tool, "" for the default of abl's image.
type Set struct {
	Go     string `yaml:"go"`
	Node   string `yaml:"node"`
	Python string `yaml:"python"`
	Rust   string `yaml:"rust"`
	Java   string `yaml:"java"`
}

// Tool is a tool with a version.
type Tool struct {
	Name    string            // go, node, python, rust or java
	Version string            // full version; of Debian's tools the short one
	Pin     string            // full version for the short one, "" for Debian's tools
	Sums    map[string]string // for Go: hash of Pin in Go's checksum database, by architecture

	Packages string // of Debian, separated by blanks
	Suite    string // the Debian suite that has them, "" for that of the image
	Check    string // a command that prints the version
}

// later is the Debian suite after that of the image.
const later = "trixie"

func python(version, suite string) Tool {
	return Tool{
		Packages: "python" + version + "-venv python3 python3-venv python3-pip python-is-python3",
		Suite:    suite,
		Check:    "python3 -m venv /tmp/try && /tmp/try/bin/pip --version && rm -rf /tmp/try",
	}
}

func java(version, suite string) Tool {
	return Tool{Packages: "openjdk-" + version + "-jdk-headless maven", Suite: suite, Check: "mvn --version"}
}

// lines maps short versions to tools. Each is available for both architectures.
var lines = map[string]map[string]Tool{
	"go": {
		"1.25": {Pin: "1.25.14", Sums: map[string]string{
			"amd64": "h1:XriDgll2yv4W2YeUo2X/WuUuy+iGJkXGH0CQloMBEXo=",
			"arm64": "h1:tccCYNAEolyjUyQVNxD/wJuly2Sx85m+OUkzGIhO1oY="}},
		"1.26": {Pin: "1.26.10", Sums: map[string]string{
			"amd64": "h1:5VAGHlY8yl8pTPVSNIez3SNMy6fWabs+QMR25f3oMT0=",
			"arm64": "h1:TuAzKmE5TqYnXpnhgY3GtBJCVg4AfNDA/K1gLyX5Hig="}},
		"1.27": {Pin: "1.27.3", Sums: map[string]string{
			"amd64": "h1:r0ub+FnqzZxoWm/dSUOI9DcIqYWn/mNYGFJcv7PyBzs=",
			"arm64": "h1:VY4gDzfxOrsM17J2qtgZgiAIsWhp7XWK1jMfE3kXV0s="}},
	},
	"node":   {"22": {Pin: "22.23.3"}, "24": {Pin: "24.21.0"}, "26": {Pin: "26.10.0"}},
	"python": {"3.11": python("3.11", ""), "3.13": python("3.13", later)},
	"rust":   {"1.85": {Packages: "cargo rustc", Suite: later, Check: "rustc --version"}},
	"java":   {"17": java("17", ""), "21": java("21", later), "25": java("25", later)},
}

// Names returns the names of all tools, sorted.
func Names() []string { return slices.Sorted(maps.Keys(lines)) }

// Lines returns the sorted short versions of a tool.
func Lines(name string) []string { return slices.Sorted(maps.Keys(lines[name])) }

// inFull matches full versions of Go and Node.js.
var inFull = regexp.MustCompile(`^(?:go (1\.\d+)|node (\d+)\.\d+)\.\d+$`)

// Find returns the tool with a short version, or with a full version whose short version is known.
func Find(name, version string) (t Tool, ok bool) {
	if t, ok = lines[name][version]; ok {
		version = cmp.Or(t.Pin, version)
	} else if m := inFull.FindStringSubmatch(name + " " + version); m != nil {
		t, ok = lines[name][m[1]+m[2]]
	}
	t.Name, t.Version = name, version
	return t, ok
}

// Named reports whether an image name is that of a tool.
func Named(image string) bool {
	name, version, _ := strings.Cut(image, "-")
	_, ok := Find(name, version)
	return ok
}

// Tools returns the known tools of the set in the order of their installation.
func (s Set) Tools() (all []Tool) {
	wanted := [][2]string{{"go", s.Go}, {"node", s.Node}, {"python", s.Python}, {"rust", s.Rust}, {"java", s.Java}}
	for _, want := range wanted {
		if t, ok := Find(want[0], want[1]); ok {
			all = append(all, t)
		}
	}
	return all
}

// Names returns the tools with their full versions, for messages.
func (s Set) Names() (all []string) {
	for _, t := range s.Tools() {
		all = append(all, t.Name+" "+t.Version)
	}
	return all
}
