package archtest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const mostWords = 15 // of a package's line in docs/architecture.md

// section returns the part of the page below the heading.
func section(t *testing.T, heading string) string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/architecture.md: got no section %q, want one", heading)
	}
	text, _, _ := strings.Cut(rest, "\n## ")
	return text
}

// docs/architecture.md has one short line for each package outside of tests.
func TestPagePackages(t *testing.T) {
	files, err := parse(os.DirFS("../../.."))
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]bool{}, map[string]bool{}
	for _, f := range files {
		if !f.test && !strings.HasPrefix(f.dir, "internal/testing/") && !strings.HasPrefix(f.dir, "e2e") {
			want[f.dir] = true
		}
	}
	row := regexp.MustCompile("(?m)^- `([^`]+)`: (.+)$")
	for _, m := range row.FindAllStringSubmatch(section(t, "Packages"), -1) {
		got[m[1]] = true
		if n := len(strings.Fields(m[2])); n > mostWords {
			t.Errorf("%s: got %d words, want at most %d", m[1], n, mostWords)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("packages in docs/architecture.md (-want +got):\n%s", diff)
	}
}

// Each function of the call path in docs/architecture.md is in the file next to it.
func TestPageCallPath(t *testing.T) {
	block := strings.Split(section(t, "From main to a container"), "```")
	if len(block) != 3 {
		t.Fatalf("got %d parts around code fences, want 3", len(block))
	}
	path := strings.Split(strings.TrimSpace(block[1]), "\n")
	if len(path) < 15 {
		t.Errorf("got %d functions, want 15 or more", len(path))
	}
	for _, line := range path {
		words := strings.Fields(line)
		source, err := os.ReadFile("../../../" + words[0])
		if err != nil {
			t.Error(err)
			continue
		}
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + words[1] + `\(`).Match(source) {
			t.Errorf("%s: got no function %s, want one", words[0], words[1])
		}
	}
}
