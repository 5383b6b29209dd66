package call

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func files(paths ...string) []MapFile {
	var fs []MapFile
	for _, p := range paths {
		fs = append(fs, MapFile{Path: p, Size: 10})
	}
	return fs
}

func TestRender(t *testing.T) {
	tree := files("server.js", "lib/store.js", "lib/http/route.js", "lib/http/body.js", "README.md")
	tests := []struct {
		name  string
		tree  []MapFile
		limit limits
		want  string
	}{
		{"all of it", tree, limits{2000, 64 << 10}, "5 files, 50 bytes\nREADME.md\nlib/http/body.js\nlib/http/route.js\nlib/store.js\nserver.js\n"},
		{"the folders where the files do not fit", tree, limits{4, 1000}, "5 files, 50 bytes\n./ (2 files)\nlib/ (1 files)\nlib/http/ (2 files)\n"},
		{"what is left is counted", tree, limits{2, 1000}, "5 files, 50 bytes\n./ (2 files)\nand 2 more lines\n"},
		{"bytes count as well as lines", tree, limits{2000, 60}, "5 files, 50 bytes\n./ (2 files)\nlib/ (1 files)\nlib/http/ (2 files)\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, render(tt.tree, tt.limit).String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestRenderNothing(t *testing.T) {
	if got := render(nil, limits{2000, 64 << 10}).String(); got != "0 files, 0 bytes\n" {
		t.Errorf("map of no files: got %q, want %q", got, "0 files, 0 bytes\n")
	}
}

func TestNamesAreQuoted(t *testing.T) {
	tests := map[string]string{
		"src/plain-name_1.js": "src/plain-name_1.js",
		"grüße.md":            "grüße.md",
		"a\nb":                `"a\nb"`,
		"a b":                 `"a b"`,
		"esc\x1b[31m":         `"esc\x1b[31m"`,
		"bad\xff":             `"bad\xff"`,
		"bidi\u202e":          `"bidi\u202e"`,
		"blank\u3164\u2800":   `"blank\u3164\u2800"`,
		"tag\U000e0041":       `"tag\U000e0041"`,
		"selector\ufe00":      `"selector\ufe00"`,
		"lib/ (9 files)":      `"lib/ (9 files)"`,
		"</files>":            `"</files>"`,
		"":                    `""`,
	}
	for path, want := range tests {
		if got := name(path); got != want {
			t.Errorf("name(%q): got %s, want %s", path, got, want)
		}
	}
}

func TestLargeTreeStaysWithinTheLimit(t *testing.T) {
	var fs []MapFile
	for i := range 10_000 {
		fs = append(fs, MapFile{Path: fmt.Sprintf("a/%d/%d.txt", i%100, i), Size: 1})
	}
	m := render(fs, limits{2000, 64 << 10})
	if m.Total != 10_000 || m.Bytes != 10_000 {
		t.Errorf("map of 10000 files of one byte: got %d files, %d bytes, want 10000 of both", m.Total, m.Bytes)
	}
	if n := len(m.Lines); n != 100 {
		t.Errorf("lines of the map: got %d, want 100", n)
	}
}

func FuzzRender(f *testing.F) {
	f.Add("a/b\nc\x00d/e/f", 3, 100)
	f.Add("\xff\n\u2028/x", 0, 0)
	f.Fuzz(func(t *testing.T, paths string, lines, size int) {
		limit := limits{lines%50 + 50, size%500 + 600}
		m := render(files(strings.Split(paths, "\x00")...), limit)
		total := 0
		for _, line := range m.Lines {
			total += len(line) + 1
			if !utf8.ValidString(line) || strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("line of the map: got %q, want plain text", line)
			}
		}
		if len(m.Lines) > limit.lines || total > limit.bytes {
			t.Errorf("size of the map: got %d lines, %d bytes, want at most %+v", len(m.Lines), total, limit)
		}
	})
}
