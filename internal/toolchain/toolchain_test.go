package toolchain

import (
	"slices"
	"strings"
	"testing"
)

func TestFind(t *testing.T) {
	for _, tt := range []struct{ name, version, want string }{
		{"go", "1.26", "1.26.10"},
		{"go", "1.26.1", "1.26.1"},
		{"go", "1.24", ""},
		{"go", "1.24.1", ""},
		{"go", "1.26rc1", ""},
		{"go", "1.26.1; rm", ""},
		{"go", "1.26.1\n", ""},
		{"go", "", ""},
		{"node", "24", "24.21.0"},
		{"node", "24.9.0", "24.9.0"},
		{"node", "24.9", ""},
		{"node", "20.1.1", ""},
		{"node", "1.26.1", ""},
		{"python", "3.13", "3.13"},
		{"python", "3.13.5", ""},
		{"python", "3.12", ""},
		{"rust", "1.85", "1.85"},
		{"rust", "1.85.0", ""},
		{"java", "21", "21"},
		{"java", "11", ""},
		{"ruby", "3.4", ""},
	} {
		got, ok := Find(tt.name, tt.version)
		if ok != (tt.want != "") || ok && got.Version != tt.want {
			t.Errorf("Find(%q, %q): got %+v, %t, want %q", tt.name, tt.version, got, ok, tt.want)
		}
	}
}

// Each short version has a valid full version. Each Go version has hashes for both architectures, and
// each version from Debian has packages and a check.
func TestLinesAreComplete(t *testing.T) {
	for _, name := range Names() {
		for _, short := range Lines(name) {
			is, ok := Find(name, short)
			if !ok || !strings.HasPrefix(is.Version+".", short+".") || !Named(name+"-"+is.Version) {
				t.Errorf("Find(%q, %q): got %+v, %t, want a full version of it", name, short, is, ok)
			}
			if debian := name != "go" && name != "node"; debian != (is.Packages != "") || debian != (is.Check != "") {
				t.Errorf("%s %s: got packages %q and check %q, want both set: %t",
					name, short, is.Packages, is.Check, debian)
			}
			for _, arch := range []string{"amd64", "arm64"} {
				if sum := is.Sums[arch]; name == "go" && (len(sum) != 47 || !strings.HasPrefix(sum, "h1:")) {
					t.Errorf("hash of go %s on %s: got %q, want h1: and 44 characters", short, arch, sum)
				}
			}
			if exact, ok := Find(name, is.Version); !ok || exact.Pin != is.Pin {
				t.Errorf("Find(%q, %q): got %+v, %t, want the pin %q", name, is.Version, exact, ok, is.Pin)
			}
		}
	}
	if got := (Set{Java: "25", Rust: "1.85", Python: "3.11", Go: "1.27", Node: "26.1.0"}).Names(); !slices.Equal(got,
		[]string{"go 1.27.3", "node 26.1.0", "python 3.11", "rust 1.85", "java 25"}) {
		t.Errorf("names of a set: got %q, want go 1.27.3, node 26.1.0, python 3.11, rust 1.85 and java 25", got)
	}
}
